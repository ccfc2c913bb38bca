"""The notebooks written for the comparison with nbclient."""

from .cells import Written
from .displays import DISPLAYS
from .documents import DOCUMENTS
from .errors import ERRORS
from .language import LANGUAGE
from .streams import STREAMS

ALL: list[Written] = [*STREAMS, *DISPLAYS, *ERRORS, *LANGUAGE, *DOCUMENTS]

__all__ = ["ALL", "LANGUAGE", "Written"]
