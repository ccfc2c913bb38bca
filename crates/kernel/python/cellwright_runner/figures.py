"""The matplotlib backend of cells: figures become displays, each shown once.

matplotlib loads this module by name (`module://cellwright_runner.figures`) when the first figure is made.
"""

import io

import matplotlib
from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
from matplotlib.backends.backend_agg import new_figure_manager, new_figure_manager_given_figure

from . import part

__all__ = ["FigureCanvas", "new_figure_manager", "new_figure_manager_given_figure", "show"]

MODULE = "module://" + __name__


def show(*_arguments, **_options) -> None:
    """Shows the open figures and closes them: `plt.show()`, and the end of every cell, also of one that failed."""
    if not Gcf.figs or matplotlib.rcParams["backend"] != MODULE:
        return  # nothing new, or the user switched to a backend of their own
    display = part("display")
    try:
        for manager in Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            # A figure that the cell has shown already (`fig` on the last line) and left as it was is not shown again.
            shown = getattr(figure, "_cellwright_shown", False) and not figure.stale
            if not shown and len(figure.get_children()) > 1:  # the background is always there
                data = {"image/png": picture(figure), "text/plain": repr(figure)}
                display.publish(data, {}, None, False)
    finally:
        Gcf.destroy_all()


def picture(figure) -> bytes:
    """The figure as PNG."""
    target = io.BytesIO()
    if figure.canvas is None or not hasattr(figure.canvas, "print_png"):
        FigureCanvas(figure)
    figure.savefig(
        target, format="png", bbox_inches="tight", dpi=figure.dpi, facecolor=figure.get_facecolor(), edgecolor="none"
    )
    figure._cellwright_shown = True
    figure.stale = False
    return target.getvalue()
