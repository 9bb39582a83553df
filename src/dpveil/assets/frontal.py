"""dlib's frontal face detector, quickly.

dlib decodes it from text for half a second of processor time in each process, and loads it from a file in a
millisecond. So the file is kept in the user's cache folder (XDG Base Directory Specification) and read only
where its hash is the one that is known here: what else lies there is decoded and written anew.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

NAME: Final = "dlib-frontal-face-detector.svm"
SHA256: Final = "f3f7aa833fb4a14a46fc48689f45b98d85ef72d6dfaf8bdc012b7d3c522a5426"
"""Hash of what dlib 20.0.1 saves. A dlib with another detector is slower to start, and never wrong."""


def frontal_detector() -> Any:
    """Return dlib's frontal face detector. Raises ImportError where dlib is not installed."""
    import dlib

    with suppress(OSError, RuntimeError):  # no home, no such file, or one that nobody may write
        path = _path()
        if path.is_file() and sha256(path.read_bytes()).hexdigest() == SHA256:
            return dlib.fhog_object_detector(str(path))
    detector = dlib.get_frontal_face_detector()
    with suppress(OSError, RuntimeError):
        _keep(detector, _path())
    return detector


def _path() -> Path:
    """Return the file: in $XDG_CACHE_HOME/dpveil, or ~/.cache/dpveil; on Windows in %LOCALAPPDATA%."""
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "dpveil" / NAME


def _keep(detector: Any, path: Path) -> None:
    """Write the detector's file if it is the known one, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as file:
        part = Path(file.name)
    try:
        detector.save(str(part))
        if sha256(part.read_bytes()).hexdigest() == SHA256:
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
