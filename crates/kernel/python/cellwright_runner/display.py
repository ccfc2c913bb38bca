"""`display` and its relatives, with the signatures of `IPython.display`."""

import os

from . import part, running
from .wire import encode, quote


def display(
    *objects,
    include=None,
    exclude=None,
    metadata=None,
    transient=None,
    display_id=None,
    raw=False,
    clear=False,
    **options,
):
    """Shows objects in the richest form they offer; a handle for updates when `display_id` is given."""
    if display_id is None:
        display_id = (transient or {}).get("display_id")
    elif display_id is True:
        display_id = new_id()
    update = bool(options.get("update"))
    if clear:
        clear_output(wait=True)
    if not objects and display_id:
        objects, raw = ({},), True  # keeps a place for updates
    for obj in objects:
        bundle = (obj, {}) if raw else part("formats").bundle_of(running(), obj, include, exclude)
        if bundle is not None:
            data, about = bundle
            publish(data, {**about, **(metadata or {})}, display_id, update)
    return DisplayHandle(display_id) if display_id else None


def update_display(obj, *, display_id, **options) -> None:
    """Shows `obj` in place of what was displayed under `display_id`."""
    options["update"] = True
    display(obj, display_id=display_id, **options)


def publish_display_data(data, metadata=None, *, transient=None, **options) -> None:
    """Shows a MIME bundle."""
    publish(data, metadata, (transient or {}).get("display_id"), bool(options.get("update")))


def publish(data: dict, metadata, display_id, update: bool) -> None:
    """Sends a `display` frame; in a forked child, which has no host, prints the text."""
    kernel = running()
    if kernel.wire.fd < 0:
        print(data.get("text/plain", ""))
        return
    if kernel.shell is not None and kernel.shell.publish_elsewhere(data, metadata, display_id, update):
        return
    cell = kernel.cells.current
    kernel.cells.release_result(cell)
    frame = '{"type":"display","id":%s,"data":%s,"update":%s' % (
        cell.id if cell is not None else "null",
        part("formats").encode_bundle(data, metadata or {}),
        "true" if update else "false",
    )
    if display_id:
        frame += ',"display_id":' + quote(str(display_id))
    kernel.wire.send_marked(kernel.streams.settle, frame)
    kernel.interrupts.deliver()


def clear_output(wait: bool = False) -> None:
    """Removes the cell's output so far; with `wait`, when the next output comes."""
    kernel = running()
    cell = kernel.cells.current
    kernel.wire.send_marked(
        kernel.streams.settle,
        '{"type":"clear","id":%s,"wait":%s' % (cell.id if cell is not None else "null", encode(bool(wait))),
    )
    kernel.interrupts.deliver()


def new_id() -> str:
    return os.urandom(16).hex()


class DisplayHandle:
    """An output that can be shown again and updated."""

    def __init__(self, display_id=None):
        self.display_id = display_id or new_id()

    def __repr__(self) -> str:
        return "<DisplayHandle display_id=%s>" % self.display_id

    def display(self, obj, **options) -> None:
        display(obj, display_id=self.display_id, **options)

    def update(self, obj, **options) -> None:
        update_display(obj, display_id=self.display_id, **options)
