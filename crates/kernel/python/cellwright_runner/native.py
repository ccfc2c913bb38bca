"""The output buffers of C code in this process. Loaded only when there is such code: ctypes is slow to import."""

try:
    import ctypes

    flush = ctypes.CDLL(None).fflush
except (ImportError, OSError, AttributeError):  # built without ctypes, or no C library to find

    def flush(_everything) -> None:
        pass
