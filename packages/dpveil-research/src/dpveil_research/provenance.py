"""Where kept results come from: the command, the versions, the code, and what it took."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import dpveil
import dpveil_research

FILE: Final = "provenance.json"
LIBRARIES: Final = ("numpy", "scipy", "numba", "opencv-python-headless", "matplotlib")
FORMAT: Final = "dpveil.provenance/1"


def provenance(name: str, count: int | None, *, on_data: bool, seconds: float) -> bytes:
    """Return the file that says how the results of an experiment were made.

    `seconds` are those of the processor. Nothing tells where the data lie or which machine it was. Seeds are
    constants of the code, which the hash covers.
    """
    words = ["python -m dpveil_research", name, *(["--data DATA"] if on_data else []), "--out reproduction"]
    commit, changed = _commit()
    told: dict[str, Any] = {
        "format": FORMAT,
        "experiment": name,
        "command": " ".join([*words, *([f"--count {count}"] if count is not None else [])]),
        "dpveil": dpveil.__version__,
        "commit": commit,
        "changed_since": changed,
        "code_sha256": code_digest(),
        "python": platform.python_version(),
        "libraries": {library: version(library) for library in LIBRARIES},
        "processor_seconds": round(seconds, 1),
    }
    return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()


def code_digest() -> str:
    """Return the SHA-256 of the Python files of dpveil and of the experiments, names and contents."""
    whole = hashlib.sha256()
    for package in (dpveil, dpveil_research):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            held = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{package.__name__} {path.relative_to(root).as_posix()} {held}\n".encode())
    return whole.hexdigest()


def _commit() -> tuple[str | None, bool | None]:
    """Return the commit of the sources, and whether their Python files were changed after it; None if they
    are in no repository.
    """
    root = Path(str(dpveil_research.__file__)).parent
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit, bool(_git(root, "status", "--porcelain", "--", ":/*.py"))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(root: Path, *words: str) -> str:
    command = ["git", *words]  # fixed words
    done = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)  # noqa: S603
    return done.stdout.strip()
