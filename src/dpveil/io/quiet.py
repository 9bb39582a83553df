"""Silences Pillow's warnings while decoding: dpveil reports what matters as an error or a note."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_saved = warnings.catch_warnings()


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Ignore warnings from Pillow's modules until the last thread has left this context.

    Where two threads overlap, `warnings.catch_warnings` alone would leave one thread's filters in force for
    ever; here the first thread to enter saves the filters and the last to leave restores them.
    """
    global _inside, _saved
    with _lock:
        if _inside == 0:
            _saved = warnings.catch_warnings()
            _saved.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\.")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _saved.__exit__(None, None, None)
