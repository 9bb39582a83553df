"""The command line as a run keeps it: without the folders of its paths."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path


def command() -> str:
    """Return the command line without the folders of its paths: where they lie is nobody's business."""
    text = f"dpveil {shlex.join(_bare(word) for word in sys.argv[1:])}"
    return text.encode("utf-8", "replace").decode()  # names of files may be no text


def _bare(word: str) -> str:
    """Return a word without the folders of the paths in it.

    >>> _bare("--out=/home/me/results/"), _bare("embedding:/home/me/own.onnx"), _bare("1/3")
    ('--out=results', 'embedding:own.onnx', '1/3')
    """
    parts = re.split(r"([:=()+,])", word)
    return "".join(Path(part).name if _is_path(part) else part for part in parts)


def _is_path(text: str) -> bool:
    return "/" in text and (text[0] in "/~." or Path(text).exists())
