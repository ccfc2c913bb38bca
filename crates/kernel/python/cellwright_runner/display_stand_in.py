"""`IPython.display` for a Python without IPython: what notebooks import from it, over our own display.

And what they register magics with.

Only code of the user gets it (see `imports`); libraries go on finding that there is no IPython.
"""

import sys
from importlib.machinery import ModuleSpec

from . import part, running
from .display import DisplayHandle, clear_output, display, publish_display_data, update_display  # noqa: F401
from .imports import is_installed


class StandInLoader:
    """Fills a module with the names below."""

    def create_module(self, spec):
        return None

    def exec_module(self, module) -> None:
        module.__cellwright__ = True
        module.__getattr__ = lambda name: _missing(module.__name__, name)
        if module.__name__ == "IPython":
            module.version_info, module.__version__ = (0, 0, 0), "0.0.0"
        if module.__name__ in ("IPython.display", "IPython.core.display"):
            module.__dict__.update({name: globals()[name] for name in EXPORTED})
            module.__all__ = EXPORTED
        elif module.__name__ == "IPython.core.magic":
            module.register_line_magic = _registers("line_")
            module.register_cell_magic = _registers("cell_")
            module.register_line_cell_magic = _registers("line_", "cell_")
        else:
            module.get_ipython, module.display = get_ipython, display
            module.__path__ = []


def _missing(module: str, name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError("%s.%s needs IPython, which is not installed: %%pip install ipython" % (module, name))


def spec(name: str) -> ModuleSpec:
    return ModuleSpec(name, StandInLoader(), is_package=name in ("IPython", "IPython.core"))


def is_loaded() -> bool:
    return hasattr(sys.modules.get("IPython"), "__cellwright__")


def get_ipython():
    """What runs magics here; for libraries nothing, because it is not IPython."""
    if is_installed(sys._getframe(1).f_code.co_filename):
        return None
    return _shell()


def _shell():
    return part("magics").need_shell(running()).get_ipython()


def _registers(*kinds: str):
    """A decorator that makes a magic of a function, under its own name or another."""

    def register(function, name=None):
        if isinstance(function, str):
            return lambda it: register(it, function)
        for kind in kinds:
            setattr(_shell(), kind + (name or function.__name__), function)
        return function

    return register


class DisplayObject:
    """Something with a form of its own: its data, or the file or address that has it."""

    mime = "text/plain"
    binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if data is not None and filename is None and url is None and isinstance(data, (str, bytes)):
            if isinstance(data, str) and data.startswith(("http://", "https://")) and "\n" not in data:
                data, url = None, data
            elif hasattr(data, "__fspath__"):
                data, filename = None, data
        elif hasattr(data, "__fspath__"):
            data, filename = None, data
        self.data, self.url, self.filename = data, url, None if filename is None else str(filename)
        self.metadata = metadata or {}
        self.reload()

    def reload(self) -> None:
        """Reads the data again from its file or address."""
        if self.filename is not None:
            with open(self.filename, "rb") as file:
                self._take(file.read())
        elif self.url is not None:
            from urllib.request import urlopen

            with urlopen(self.url) as response:
                self._take(response.read())

    def _take(self, content: bytes) -> None:
        self.data = content if self.binary else content.decode("utf-8", "replace")

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {self.mime: self._carried(), "text/plain": repr(self)}
        return data, {self.mime: self.metadata} if self.metadata else {}

    def _carried(self):
        return self.data

    def __repr__(self) -> str:
        return "<IPython.core.display.%s object>" % type(self).__name__


class TextDisplayObject(DisplayObject):
    pass


class HTML(TextDisplayObject):
    mime = "text/html"

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    mime = "text/markdown"


class Latex(TextDisplayObject):
    mime = "text/latex"


class Math(TextDisplayObject):
    mime = "text/latex"

    def _carried(self):
        return "$\\displaystyle %s$" % self.data.strip("$")


class SVG(DisplayObject):
    mime = "image/svg+xml"


class Javascript(TextDisplayObject):
    mime = "application/javascript"

    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)


class Pretty(TextDisplayObject):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.data}, {}


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language or (str(filename).rpartition(".")[2] if filename else "")
        super().__init__(data, url, filename)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {
            "text/markdown": "```%s\n%s\n```" % (self.language, self.data.rstrip("\n")),
            "text/plain": self.data,
        }, {}


class JSON(DisplayObject):
    mime = "application/json"

    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **options):
        super().__init__(data, url, filename, {"expanded": expanded, "root": root, **(metadata or {}), **options})
        if isinstance(self.data, str):
            import json

            self.data = json.loads(self.data)


class GeoJSON(JSON):
    mime = "application/geo+json"


class Image(DisplayObject):
    """A picture: its bytes, or the file or address that has them."""

    binary = True
    STARTS = (
        (b"\x89PNG", "image/png"),
        (b"\xff\xd8", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"RIFF", "image/webp"),
        (b"<svg", "image/svg+xml"),
        (b"<?xml", "image/svg+xml"),
    )

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):  # fmt: skip
        if isinstance(data, str) and not data.startswith(("http://", "https://")):
            data, filename = None, data  # a path
        sizes = {"width": width, "height": height, "alt": alt}
        about = {name: value for name, value in sizes.items() if value is not None}
        super().__init__(data, url, filename, {**about, **(metadata or {})})
        starts = (mime for start, mime in self.STARTS if bytes(self.data[:5]).startswith(start))
        self.mime = next(starts, "image/%s" % {"jpg": "jpeg"}.get(format, format or "png"))


class IFrame:
    """A page within the page."""

    def __init__(self, src, width, height, extras=None, **parameters):
        from urllib.parse import urlencode

        self.src, self.width, self.height, self.extras = src, width, height, extras or []
        self.query = "?" + urlencode(parameters) if parameters else ""

    def _repr_html_(self) -> str:
        from html import escape

        attributes = (escape(str(self.width)), escape(str(self.height)), escape(self.src + self.query))
        return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen %s></iframe>' % (
            *attributes,
            " ".join(self.extras),
        )

    def __repr__(self) -> str:
        return "<IPython.lib.display.%s: %s>" % (type(self).__name__, self.src)


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, allow_autoplay=False, **parameters):
        self.id = id
        super().__init__("https://www.youtube.com/embed/%s" % id, width, height, **parameters)


class Media(DisplayObject):
    """Sound or film, in a page."""

    binary = True
    tag, kind = "audio", "audio/wav"

    def __init__(self, data=None, filename=None, url=None, embed=None, mimetype=None, autoplay=False, **options):
        if isinstance(data, str) and not data.startswith(("http://", "https://")):
            data, filename = None, data
        if data is not None and not isinstance(data, (bytes, str)):
            raise TypeError("samples need IPython: %pip install ipython; a file's name or its bytes do not")
        self.mimetype, self.autoplay = mimetype or self.kind, autoplay
        super().__init__(data, url, filename)

    def _repr_mimebundle_(self, include=None, exclude=None):
        import base64

        text = base64.b64encode(self.data).decode("ascii")
        page = '<%s controls%s><source src="data:%s;base64,%s" type="%s"/></%s>' % (
            *(self.tag, " autoplay" if self.autoplay else "", self.mimetype, text, self.mimetype, self.tag),
        )
        return {"text/html": page, "text/plain": repr(self)}, {}


class Audio(Media):
    pass


class Video(Media):
    tag, kind = "video", "video/mp4"


class FileLink:
    """A link to a file."""

    def __init__(self, path, url_prefix="", result_html_prefix="", result_html_suffix="<br>"):
        self.path, self.prefix = str(path), url_prefix
        self.before, self.after = result_html_prefix, result_html_suffix

    def _repr_html_(self) -> str:
        from html import escape

        path = escape(self.path)
        return "%s<a href='%s%s' target='_blank'>%s</a>%s" % (self.before, self.prefix, path, path, self.after)

    def __repr__(self) -> str:
        import os

        return os.path.abspath(self.path)


class FileLinks(FileLink):
    """Links to the files below a folder."""

    def _files(self) -> list:
        import os

        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in names]
        return sorted(found)

    def _repr_html_(self) -> str:
        return "\n".join(FileLink(path, self.prefix)._repr_html_() for path in self._files())

    def __repr__(self) -> str:
        return "\n".join(self._files())


class ProgressBar:
    """`for item in ProgressBar(total)` counts up to the total and shows how far it is."""

    def __init__(self, total: int):
        self.total, self._progress = total, -1
        self.handle = DisplayHandle()

    def __repr__(self) -> str:
        done = int(60 * max(self._progress, 0) / self.total) if self.total else 60
        return "[%s%s] %d/%d" % ("=" * done, " " * (60 - done), max(self._progress, 0), self.total)

    def display(self) -> None:
        self.handle.display(self)

    def update(self) -> None:
        self.handle.update(self)

    @property
    def progress(self) -> int:
        return self._progress

    @progress.setter
    def progress(self, value: int) -> None:
        self._progress = value
        self.update()

    def __iter__(self):
        self._progress = -1
        self.display()
        return self

    def __next__(self) -> int:
        self.progress += 1
        if self.progress < self.total:
            return self.progress
        raise StopIteration


def set_matplotlib_formats(*formats, **options) -> None:
    """How figures are shown: `svg`, `png`, `retina`, `jpeg`, `pdf`."""
    part("figures").choose_formats(formats)


def set_matplotlib_close(close: bool = True) -> None:
    """Figures are closed at the end of their cell in any case."""


def _display_as(mime: str):
    def display_as(*objects, raw: bool = False, metadata=None) -> None:
        for obj in objects:
            if raw:
                publish_display_data({mime: obj}, metadata)
            else:
                display(obj, include=["text/plain", mime], metadata=metadata)

    return display_as


display_html, display_markdown, display_latex = map(_display_as, ("text/html", "text/markdown", "text/latex"))
display_svg, display_png, display_jpeg = map(_display_as, ("image/svg+xml", "image/png", "image/jpeg"))
display_json, display_javascript = map(_display_as, ("application/json", "application/javascript"))
display_pretty, display_pdf = map(_display_as, ("text/plain", "application/pdf"))

EXPORTED = [
    name
    for name, value in list(globals().items())
    if not name.startswith("_")
    and callable(value)
    and name not in ("spec", "is_loaded", "part", "running", "is_installed", "ModuleSpec", "Media")
    and name not in ("StandInLoader", "get_ipython")
]
