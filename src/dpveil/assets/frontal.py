"""dlib's frontal face detector, loaded from a cache.

dlib takes half a second of processor time in each process to decode the detector from text, but a millisecond
to restore its state. The state is stored in the user's cache folder (XDG Base Directory Specification) and
only used if its hash is the one known here; otherwise the detector is decoded and stored again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

SIZE: Final = 155_005
"""Size of the state in bytes."""
NAME: Final = "dlib-frontal-face-detector.svm"
SHA256: Final = "f3f7aa833fb4a14a46fc48689f45b98d85ef72d6dfaf8bdc012b7d3c522a5426"
"""SHA-256 of the state of dlib 20.0.1's detector; a dlib with another one only starts more slowly."""


def frontal_detector() -> Any:
    """Return dlib's frontal face detector; raises `ImportError` if dlib is not installed."""
    import dlib

    with suppress(OSError, RuntimeError):  # there may be no home folder, or no such file
        with _path().open("rb") as file:
            kept = file.read(SIZE + 1)
        if sha256(kept).hexdigest() == SHA256:
            detector = dlib.fhog_object_detector.__new__(dlib.fhog_object_detector)
            detector.__setstate__((kept,))
            return detector
    detector = dlib.get_frontal_face_detector()
    with suppress(OSError, RuntimeError):
        _keep(detector.__getstate__()[0], _path())
    return detector


def _path() -> Path:
    """Return the cache file: in $XDG_CACHE_HOME/dpveil or ~/.cache/dpveil; on Windows in %LOCALAPPDATA%."""
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "dpveil" / NAME


def _keep(state: bytes, path: Path) -> None:
    """Write the detector's state atomically if it is the known one."""
    if sha256(state).hexdigest() != SHA256:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as file:
        part = Path(file.name)
        try:
            file.write(state)
            file.close()
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
