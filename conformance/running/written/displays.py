"""Results and rich displays."""

from .cells import written

# An image of one pixel, so that a display can carry one without a library.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

DISPLAYS = [
    written("the-last-expression-is-the-result", "1\n2", "x = 3", "x;", "(x, 'text', None, 1.5)"),
    written("long-results-are-broken-into-lines", "list(range(100))", "{i: str(i) * 3 for i in range(40)}"),
    written("very-long-results-are-shortened", "list(range(5000))"),
    written("a-string-result-keeps-its-quotes", "'it\\'s'", "'''two\nlines'''", "b'bytes'"),
    written(
        "sets-dates-and-decimals",
        "import datetime, decimal\n{3, 1, 2}, datetime.date(2020, 1, 2), decimal.Decimal('1.10')",
    ),
    written(
        "results-of-earlier-cells-have-names",
        "10",
        "20",
        "_, __, Out[1], sorted(Out)",
        "len(In), In[1]",
    ),
    written(
        "a-class-with-a-repr", "class Point:\n    def __repr__(self):\n        return 'Point(1, 2)'\nPoint()"
    ),
    written(
        "a-class-with-every-representation",
        f"""
        class Rich:
            def __repr__(self): return "plain"
            def _repr_html_(self): return "<b>html</b>"
            def _repr_markdown_(self): return "**markdown**"
            def _repr_latex_(self): return r"$\\alpha$"
            def _repr_svg_(self): return "<svg xmlns='http://www.w3.org/2000/svg'/>"
            def _repr_json_(self): return {{"n": [1, 2.5, None, True]}}
            def _repr_png_(self): return "{PIXEL}"
        Rich()
        """,
        "display(Rich(), Rich())",
    ),
    written(
        "a-class-that-makes-its-own-bundle",
        """
        class Bundle:
            def _repr_mimebundle_(self, include=None, exclude=None):
                return {"text/plain": "bundle", "application/vnd.example+json": {"a": 1}}, {"text/plain": {"k": 1}}
        Bundle()
        """,
    ),
    written(
        "a-representation-that-fails-is-told",
        "class Broken:\n    def __repr__(self):\n        return 'fine'\n    def _repr_html_(self):\n        raise ValueError('no html')\nBroken()",
    ),
    written(
        "a-representation-of-none-is-left-out",
        "class Maybe:\n    def __repr__(self):\n        return 'plain'\n    def _repr_html_(self):\n        return None\nMaybe()",
    ),
    written(
        "numbers-in-json-keep-their-digits",
        """
        import random, struct
        random.seed(1)
        floats = [struct.unpack("<d", random.getrandbits(64).to_bytes(8, "little"))[0] for _ in range(1000)]
        floats = [x for x in floats if x == x and abs(x) != float("inf")] + [0.1, 1e-05, 1e16, 5e-324]
        display({"application/json": {"floats": floats, "big": [10**40, -(2**63) - 1, 2**64]}}, raw=True)
        """,
    ),
    written("html", "from IPython.display import HTML\nHTML('<b>bold</b>')", "display(HTML('<i>x</i>'))"),
    written("markdown", "from IPython.display import Markdown\nMarkdown('# *Title*')"),
    written(
        "latex-and-math",
        r"from IPython.display import Latex, Math"
        "\n"
        r"display(Latex(r'$\alpha$'))"
        "\n"
        r"Math(r'\frac{1}{2}')",
    ),
    written(
        "svg",
        'from IPython.display import SVG\nSVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\')',
    ),
    written(
        "json-stays-json",
        "from IPython.display import JSON\nJSON({'b': [1, 2.0, None, True, 'é'], 'a': {'deep': {}}})",
    ),
    written(
        "geojson", "from IPython.display import GeoJSON\nGeoJSON({'type': 'Point', 'coordinates': [1.5, 2]})"
    ),
    written("javascript", "from IPython.display import Javascript\nJavascript('console.log(1)')"),
    written(
        "an-image-from-bytes",
        f"import base64\nfrom IPython.display import Image\nImage(base64.b64decode('{PIXEL}'))",
    ),
    written(
        "an-image-with-a-size",
        f"import base64\nfrom IPython.display import Image\nImage(base64.b64decode('{PIXEL}'), width=10, alt='dot')",
    ),
    written(
        "audio-and-a-frame",
        "from IPython.display import IFrame, Audio\ndisplay(IFrame('https://example.org', 10, 20))\nAudio(url='https://example.org/a.wav')",
    ),
    written(
        "a-raw-bundle-of-a-type-nobody-knows",
        """
        display({"application/vnd.example.v1+json": {"rows": [[1, 2], [3, 4]]}, "text/plain": "two rows"}, raw=True)
        """,
    ),
    written(
        "metadata-of-a-display",
        "display({'text/plain': 'x'}, raw=True, metadata={'text/plain': {'isolated': True}, 'tag': [1]})",
    ),
    written("several-values-in-one-display", "display(1, 'two', [3])"),
    written("displays-of-a-loop-stay-apart", "for i in range(3):\n    display(i)"),
    written(
        "an-update-in-the-same-cell",
        """
        handle = display("first", display_id="same")
        print("between")
        handle.update("second")
        """,
    ),
    written(
        "an-update-of-an-earlier-cell",
        "handle = display('waiting', display_id='status')",
        "print('work')\nhandle.update('done')",
        "from IPython.display import update_display\nupdate_display({'really': 'done'}, display_id='status')",
    ),
    written(
        "one-id-shown-twice-is-updated-twice",
        "display('one', display_id='twin')",
        "h = display('two', display_id='twin')",
        "h.update('both')",
    ),
    written(
        "an-update-of-what-was-cleared-changes-nothing",
        """
        from IPython.display import clear_output
        handle = display("gone", display_id="cleared")
        clear_output()
        handle.update("never seen")
        print("here")
        """,
    ),
    written(
        "an-update-of-an-unknown-id",
        "from IPython.display import update_display\nupdate_display('nobody', display_id='unknown')\nprint('fine')",
    ),
    written("a-display-id-made-for-us", "handle = display('x', display_id=True)\nhandle.update('y')"),
    written(
        "pandas-tables",
        "import pandas as pd\ntable = pd.DataFrame({'n': [1, 2], 'é': ['x', None]})\ntable",
        "table.describe()",
        "table['n']",
    ),
    written(
        "a-styled-table",
        "import pandas as pd\npd.DataFrame({'n': [1, 2]}).style.set_uuid('fixed').format('{:.1f}')",
    ),
    written(
        "numpy-arrays", "import numpy as np\nnp.arange(12).reshape(3, 4)", "np.float64(1.5), np.zeros(3)"
    ),
    written(
        "a-matplotlib-figure",
        "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots(figsize=(2, 1))\n_ = axes.plot([1, 3, 2])",
        "plt.figure(figsize=(1, 1))\nplt.show()\nprint('after show')",
    ),
    written(
        "a-matplotlib-figure-as-the-result",
        "import matplotlib.pyplot as plt\nfigure = plt.figure(figsize=(1, 1))\nplt.close()\nfigure",
    ),
    written(
        "two-figures-in-one-cell",
        "import matplotlib.pyplot as plt\nfor n in (1, 2):\n    plt.figure(figsize=(1, 1))\n    plt.plot([n, 2])\nprint('drawn')",
    ),
    written(
        "a-figure-of-a-failed-cell",
        "import matplotlib.pyplot as plt\nplt.figure(figsize=(1, 1))\nplt.plot([1, 2])\n1 / 0",
        allow_errors=True,
    ),
    written("a-pillow-image", "from PIL import Image\nImage.new('RGB', (3, 2), (255, 0, 0))"),
    written(
        "a-plotly-figure",
        "import plotly.graph_objects as go\ngo.Figure(go.Scatter(x=[1, 2], y=[3, 1]), layout={'template': 'none'})",
    ),
    written(
        "an-altair-chart",
        "import altair as alt\nalt.Chart(alt.Data(values=[{'x': 1, 'y': 2}])).mark_point().encode(x='x:Q', y='y:Q')",
    ),
    written(
        "a-progress-bar-object", "from IPython.display import ProgressBar\nfor _ in ProgressBar(3):\n    pass"
    ),
    written(
        "an-object-that-shows-itself",
        "class Shown:\n    def _ipython_display_(self):\n        print('shown by itself')\nShown()",
    ),
]
