"""What the tests of the ledger share: guarantees, ledgers, and processes that use one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.ledger import Ledger, Limit

ANY = Relation("any-image")


def cost(epsilon: Any = None, *, relation: Relation = ANY, **numbers: Any) -> Guarantee:
    """Return a guarantee of the kind that the numbers have."""
    kind = "zcdp" if "rho" in numbers else "approximate" if "delta" in numbers else "pure"
    return Guarantee(kind=kind, epsilon=epsilon, relation=relation, scope=Scope("a photo"), **numbers)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def made(path: Path, limit: Any = 3, subject: str = "album") -> Ledger:
    """Return a new ledger with a limit on pure epsilon."""
    ledger = Ledger(url_of(path), create=True)
    ledger.set_limit(subject, Limit("pure", epsilon=limit))
    return ledger


def spend(
    ledger: Ledger, epsilon: Any = 1, subject: str = "album", key: str | bytes = "k", **more: Any
) -> Any:
    """Reserve and commit; return the reservation."""
    reservation = ledger.reserve(subject, cost(epsilon), key, again=True, **more)
    reservation.commit()
    return reservation


def forked(work: Callable[[], object]) -> int:
    """Run `work` in a forked process, whose exit code is 0 if nothing was raised; return its id."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(children: list[int]) -> None:
    """Wait for forked processes and check that nothing was raised there."""
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


def started(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python process that runs `code` with these arguments; it prints what it did."""
    header = "import sys; sys.path.insert(0, sys.argv[1]); from budgets import *; from pathlib import Path\n"
    command = [sys.executable, "-c", header + code, str(Path(__file__).parent), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
