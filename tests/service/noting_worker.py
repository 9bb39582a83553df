"""A real worker that notes each draw in a file before it begins: $TMPDIR/draws."""

from __future__ import annotations

import os
from typing import Any

from dpveil.release.plan import Plan
from dpveil.service import child


def main() -> None:
    """Run the worker; a line in the file is a draw that may have happened."""
    draws, release = (
        os.open(f"{os.environ['TMPDIR']}/draws", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        Plan.release,
    )

    def noted(self: Plan, *given: Any, **more: Any) -> Any:
        os.write(draws, b"draw\n")
        return release(self, *given, **more)

    Plan.release = noted  # type: ignore[method-assign]
    child.main()


if __name__ == "__main__":
    main()
