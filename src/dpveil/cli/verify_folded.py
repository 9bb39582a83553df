"""Files without a certificate in `dpveil verify`: few lines for a folder, one for a data set."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpveil.core.guarantee import counted

if TYPE_CHECKING:
    from dpveil.release.verification import Verification

SHOWN: Final = 3
"""Most files of a folder without a certificate that have a line of their own."""
MORE: Final = "MISSING       {}  {} without a certificate: --json names all"
OF_A_SET: Final = (
    "MISSING       {} and {:,} more  pictures of a data set have no certificates of their own: check it with"
    " dpveil verify {}"
)


def is_bare(result: Verification) -> bool:
    """Whether a file is there, has no certificate, and is not part of a data set."""
    from dpveil.cli.verify_set import of_a_set

    inside = result.inside
    there = result.status == "missing" and os.path.lexists(inside or result.path)
    return there and (inside is not None or not of_a_set(result.path))


class Bare:
    """Keeps back what would be a line for each of many files: those without a certificate in one of the
    `outputs` or in one of the folders in it, and pictures of a data set that were named one by one.
    """

    def __init__(self, outputs: Iterable[Path]) -> None:
        self._outputs = [*outputs]
        self._bare: Counter[Path] = Counter()
        self._pictures: dict[Path, list[Verification]] = defaultdict(list)

    def keeps(self, result: Verification) -> bool:
        """Count a result; return whether it has no line of its own now."""
        from dpveil.cli.verify_set import of_a_set

        if result.status != "missing":
            return False
        if of_a_set(result.path):
            self._pictures[result.path.parent].append(result)
            return True
        if not is_bare(result) or (place := self._place(result.path)) is None:
            return False
        self._bare[place] += 1
        return self._bare[place] > SHOWN

    def lines(self) -> Iterator[str]:
        """Yield a line for each folder and each data set of which files were kept back."""
        from dpveil.io.names import quoted, shown

        for place, count in self._bare.items():
            if count > SHOWN:
                yield MORE.format(quoted(shown(place)), counted(count - SHOWN, "more file"))
        for place, found in self._pictures.items():
            first = quoted(shown(found[0].path))
            if len(found) > 1:
                yield OF_A_SET.format(first, len(found) - 1, quoted(shown(place)))
            else:
                yield f"MISSING       {first}  {'; '.join(found[0].problems)}"

    def _place(self, path: Path) -> Path | None:
        """Return the first folder on the way from an output to a file below it; None for an output itself."""
        for output in self._outputs:
            if output in path.parents:
                inner = path.relative_to(output).parts
                return output / inner[0] if len(inner) > 1 else output
        return None
