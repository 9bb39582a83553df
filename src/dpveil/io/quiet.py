"""Silences Pillow's warnings while decoding: what matters in them becomes an error or a note of ours."""

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
    """Ignore warnings raised in Pillow's modules until the last thread in here has left.

    `warnings.catch_warnings` alone would, when two threads overlap, leave one thread's filters in force for
    ever; so the first to enter saves the filters and the last to leave restores them.
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
