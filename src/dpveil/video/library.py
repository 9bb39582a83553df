"""PyAV, which comes with the extra `video`: imported here only, when a clip is opened or written."""

from __future__ import annotations

from types import ModuleType

from dpveil.errors import UsageError


def pyav() -> ModuleType:
    """Return PyAV with FFmpeg's log off; raises `UsageError` if it is not installed."""
    try:
        import av
        import av.logging
    except ImportError as error:
        hint = "pip install 'dpveil[video]'"
        raise UsageError("reading and writing clips needs PyAV", hint=hint) from error
    av.logging.set_level(None)
    return av
