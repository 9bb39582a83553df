"""Lines of `dpveil verify` about shards and Parquet files: releases that are alike share one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpveil.cli import say

if TYPE_CHECKING:
    from dpveil.release.verification import Verification

MOST_LINES: Final = 10
"""Most problems in one file that have a line."""
MOST_KINDS: Final = 8
"""Most lines of one file about releases that are alike."""
ALL: Final = "--json has all of them"


class Folded:
    """Prints lines about what lies in files of many releases, one file after another.

    Of a file, the first problems have a line each, and what else is the same of several releases is one line
    at the end of the file, which begins with `word`.
    """

    def __init__(self, word: str) -> None:
        self._word = word
        self._file: Path | None = None
        self._alike = Counter[str]()
        self._together = ""
        self._broken = False
        self._others = self._bad = 0

    def good(self, file: Path, text: str, together: str = "") -> None:
        """Take a release of which `text` holds, and what all in a document promise `together`."""
        self._turn(file)
        self._together = together
        if text in self._alike or len(self._alike) < MOST_KINDS:
            self._alike[text] += 1
        else:
            self._others += 1

    def bad(self, file: Path, line: str, *, broken: bool = True) -> None:
        """Take a problem, which is told in a `line` of its own if it is one of the first.

        Of a document with one that is `broken`, nothing is said of what all of it promises.
        """
        self._turn(file)
        self._broken |= broken
        self._bad += 1
        if self._bad <= MOST_LINES:
            say.answer(line)

    def end(self) -> None:
        """Print what is left to say of the file."""
        from dpveil.core.guarantee import counted
        from dpveil.io.names import quoted, shown

        path = quoted(shown(self._file or ""))
        if self._bad > MOST_LINES:
            say.answer(f"and {counted(self._bad - MOST_LINES, 'other problem')} in {path}: {ALL}")
        if self._together and not self._broken:
            word = " " * len(self._word) if self._bad else self._word
            say.answer(f"{word}{path}  {quoted(self._together)}")
        for text, count in self._alike.items():
            say.answer(f"{self._word}{path}  {counted(count, 'release')}: {text}")
        if self._others:
            say.answer(f"{self._word}{path}  {counted(self._others, 'other release')}: {ALL}")
        self._file, self._together, self._broken, self._others, self._bad = None, "", False, 0, 0
        self._alike.clear()

    def _turn(self, file: Path) -> None:
        if self._file is not None and self._file != file:
            self.end()
        self._file = file


def alike(result: Verification, least: str | None) -> str:
    """Return what is said of each sound release like this one.

    Without what is its own: the hash, and the share of the photo that its regions have; nor what all together
    promise.
    """
    from dpveil.cli.verify_words import promise, standing
    from dpveil.release.words import share

    stated = result.certificate
    output = None if stated is None else stated.output
    own = share(stated.regions, output.width, output.height) if stated and output else ""
    notes = [note for note in result.notes if note not in (own, result.together)]
    return "  ".join([f"each {promise(result)}", standing(result, least), *notes])
