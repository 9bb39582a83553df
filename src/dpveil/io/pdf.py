"""Pages of PDF files as pictures, drawn by PDFium in a process of its own, which a damaged file may end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any, BinaryIO, Final, cast
from weakref import finalize

from dpveil.core.environment import passed_on
from dpveil.io.refused import COPY_AGAIN, Refused, Unread

LONGEST: Final = 150
"""Seconds after which the process is ended that opens a document or draws a page; it ends itself before."""
MOST_ENDS: Final = 3
"""After so many processes that a document ended, no other one is started for it."""
HEAD: Final = 4096
"""Longest line of an answer."""
REASONS: Final = {
    "encrypted": ("is encrypted", "save a copy of it without a password"),
    "damaged": ("is damaged, or no PDF that can be drawn", COPY_AGAIN),
}
ENDED: Final = ("ends the process that draws it", "print it to a new PDF in a viewer, and release that")
MISSING: Final = ("is drawn by pypdfium2, which is not installed", "pip install 'dpveil[documents]'")
Child = subprocess.Popen[bytes]


class Pdf:
    """The document in an open file; threads may share it.

    The process starts with the first question, and again after one that ended it, if those are few. Raises
    `Refused`.
    """

    def __init__(self, file: BinaryIO) -> None:
        if find_spec("pypdfium2") is None:
            raise Unread(*MISSING)
        self._file, self._lock = file, threading.Lock()
        self._size = os.fstat(file.fileno()).st_size
        self._running: list[Child] = []
        self._pages = self._ends = 0
        finalize(self, _end_all, self._running, file)

    @property
    def pages(self) -> int:
        """How many pages it has."""
        with self._lock, self._ending():
            self._started()
        return self._pages

    def draw(self, page: int, dpi: int, most: int) -> tuple[int, int, bytes, bool]:
        """Return width, height and levels (RGB, row by row) of the page with this index, from 0, and whether
        a picture in it has few colours.

        There are no levels if it has more than `most` pixels.
        """
        asked = json.dumps({"page": page, "dpi": dpi, "most": most}).encode() + b"\n"
        with self._lock, self._ending():
            told, contents = _asked(self._started(), [asked], 3 * most)
            if told is None:
                raise Refused(*ENDED)
        if "refused" in told:
            raise Refused(*REASONS["damaged"])
        width, height = _number(told, "width"), _number(told, "height")
        if len(contents) not in (0, 3 * width * height) or (width * height <= most) != bool(contents):
            raise Refused(*ENDED)
        return width, height, contents, bool(_number(told, "few"))

    def _started(self) -> Child:
        """Return the process, which has read the document."""
        if self._running:
            return self._running[0]
        if self._ends >= MOST_ENDS:
            raise Refused(*ENDED)
        self._running.append(_started())
        head = f"{self._size}\n".encode()
        self._file.seek(0)
        told, _ = _asked(self._running[0], [head, self._file], 0)
        if told is None or "refused" in told:
            raise Refused(*(ENDED if told is None else REASONS.get(str(told["refused"]), ENDED)))
        self._pages = _number(told, "pages")
        return self._running[0]

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the process if anything but an answer comes of a question, also an interrupt."""
        try:
            yield
        except BaseException:
            self._ends += 1
            while self._running:
                _end(self._running.pop())
            raise


def _asked(child: Child, parts: list[bytes | BinaryIO], most: int) -> tuple[dict[str, Any] | None, bytes]:
    """Return the answer to what is written, and the bytes behind it; None if the process ends."""
    given, answers = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    timer = threading.Timer(LONGEST, child.kill)
    try:
        timer.start()
        for part in parts:
            if isinstance(part, bytes):
                given.write(part)
            else:
                copyfileobj(part, given)
        given.flush()
        told = json.loads(answers.readline(HEAD))
        size = int(told.get("bytes", 0))
        contents = answers.read(size) if 0 < size <= most else b""
        return (told, contents) if len(contents) == size else (None, b"")
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None, b""
    finally:
        timer.cancel()


def _number(told: dict[str, Any], name: str) -> int:
    """Return a number of an answer, which may be anything; raises `Refused`."""
    found = told.get(name)
    if type(found) is not int or not 0 <= found < 1 << 53:
        raise Refused(*ENDED)
    return found


def _started() -> Child:
    """Return a new process, which finds the packages that this one finds."""
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        return subprocess.Popen(  # noqa: S603  no argument is a user's
            [sys.executable, "-P", str(Path(__file__).with_name("pdf_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**passed_on(), "PYTHONPATH": paths},
            start_new_session=True,  # an interruption is for this process, which ends the other one
        )
    except OSError as error:
        reason = error.strerror or "it cannot be started"
        raise Refused(f"needs a process of its own to be drawn: {reason}", "try again") from error


def _end(child: Child) -> None:
    child.kill()
    for stream in (child.stdin, child.stdout):
        with suppress(OSError):
            cast("IO[bytes]", stream).close()
    child.wait()


def _end_all(running: list[Child], file: BinaryIO) -> None:
    while running:
        _end(running.pop())
    file.close()
