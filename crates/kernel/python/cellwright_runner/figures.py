"""The matplotlib backend of cells: figures become displays, each shown once.

matplotlib loads this module by name (`module://cellwright_runner.figures`) when the first figure is made.
"""

import io

import matplotlib
from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
from matplotlib.backends.backend_agg import new_figure_manager, new_figure_manager_given_figure

from . import part, running

__all__ = ["FigureCanvas", "new_figure_manager", "new_figure_manager_given_figure", "show"]

MODULE = "module://" + __name__


def show(*_arguments, **_options) -> None:
    """Shows the open figures and closes them: `plt.show()`, and the end of every cell, also of one that failed."""
    if Gcf.figs and matplotlib.rcParams["backend"] == MODULE:  # else nothing new, or a backend of the user's choice
        show_all()


def show_all() -> None:
    display = part("display")
    try:
        for manager in Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            # A figure that the cell has shown already (`fig` on the last line) and left as it was is not shown again.
            shown = getattr(figure, "_cellwright_shown", False) and not figure.stale
            if not shown and len(figure.get_children()) > 1:  # the background is always there
                bundle = part("formats").bundle_of(running(), figure)
                figure._cellwright_shown = True
                figure.stale = False
                display.publish(*bundle, None, False)
    finally:
        Gcf.destroy_all()


# What `%config InlineBackend.figure_format` may say, and how many times the usual dots.
FORMATS = {"png": 1, "retina": 2, "png2x": 2, "svg": 1, "pdf": 1, "jpeg": 1, "jpg": 1}
TYPES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf", "jpeg": "image/jpeg"}
_chosen = ["png"]


def choose_formats(formats) -> None:
    """How figures are shown from here on."""
    formats = list(formats)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError("figure formats are %s, not %s" % (", ".join(sorted(FORMATS)), ", ".join(map(repr, unknown))))
    _chosen[:] = formats


def pictures(figure) -> tuple:
    """(data, metadata) of the figure in the chosen formats."""
    data: dict = {}
    metadata: dict = {}
    for name in _chosen:
        kind = {"retina": "png", "png2x": "png", "jpg": "jpeg"}.get(name, name)
        picture = drawn(figure, kind, figure.dpi * FORMATS[name])
        data[TYPES[kind]] = picture.decode("utf-8") if kind == "svg" else picture
        if FORMATS[name] > 1:
            # As wide as usual, with more dots: where the header of a PNG has its size.
            width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
            metadata[TYPES[kind]] = {"width": width // FORMATS[name], "height": height // FORMATS[name]}
    return data, metadata


def drawn(figure, kind: str, dpi: float) -> bytes:
    """The figure as a file of this kind."""
    target = io.BytesIO()
    if figure.canvas is None or not hasattr(figure.canvas, "print_png"):
        FigureCanvas(figure)
    figure.savefig(
        target, format=kind, bbox_inches="tight", dpi=dpi, facecolor=figure.get_facecolor(), edgecolor="none"
    )
    figure._cellwright_shown = True
    figure.stale = False
    return target.getvalue()
