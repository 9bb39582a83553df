"""How many files `dpveil verify` found sound, publishable, and neither, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpveil.release.verification import Verification

KEEP_APART = "they may be originals, so keep them apart from what you publish"
UNPUBLISHABLE = "nothing here is publishable, although it is what its certificate says"


@dataclass
class Counts:
    """How many files are sound, publishable and not sound; `bare` are those that have no certificate."""

    sound: int = 0
    publishable: int = 0
    failed: int = 0
    bare: list[Path] = field(default_factory=list)

    def add(self, result: Verification) -> None:
        """Count one file."""
        from dpveil.cli.verify_folded import is_bare

        bare = is_bare(result)
        self.sound += result.sound
        self.publishable += result.publishable
        self.failed += not bare and not result.sound
        self.bare += [result.path] * bare

    def summary(self, least: str | None) -> str:
        """Return all numbers in one line."""
        passed = f"consistent {self.sound}, publishable" if least is None else f"at least {least}"
        bare = f", no certificate {len(self.bare)}" if self.bare else ""
        return f"{passed} {self.publishable}{bare}, failed {self.failed}"

    def lines(self, least: str | None) -> Iterator[str]:
        """Yield what is to be known before the files are published, if anything."""
        from dpveil.cli.run_report import several
        from dpveil.core.guarantee import counted
        from dpveil.io.names import quoted, shown

        if self.bare and not self.sound and not self.failed:
            yield f"no release is here: {counted(len(self.bare), 'file')} without a certificate"
        elif self.bare:
            files = several([quoted(shown(path)) for path in self.bare])
            yield f"without a certificate: {files}: {KEEP_APART}"
        if least is None and self.sound and not self.publishable:
            yield UNPUBLISHABLE
