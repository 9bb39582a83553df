"""What the tests of the ledger share: guarantees, ledgers, and processes that use one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import BudgetExceeded
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
        except BaseException:
            traceback.print_exc()
            raise
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


def race(url: str, processes: int, tries: int) -> None:
    """Let processes, each with a ledger of its own, begin together; half of them share one key."""
    ready, go = os.pipe(), os.pipe()

    def work(me: int) -> None:
        with Ledger(url) as ledger:
            os.write(ready[1], b"x")
            os.close(go[1])
            os.read(go[0], 1)
            for number in range(tries):
                with suppress(BudgetExceeded):
                    spend(ledger, "0.000001", key="same" if me % 2 else f"{me} {number}")
                    os.write(ready[1], b"w")

    children = [forked(partial(work, me)) for me in range(processes)]
    for _ in children:
        os.read(ready[0], 1)
    for end in (go[1], go[0], ready[1]):
        os.close(end)
    ended(children)
    won = os.read(ready[0], 1000).count(b"w")
    os.close(ready[0])
    assert won == 1


def draw(url: str, drawn: Path, me: int) -> None:
    """Pay, note every draw as soon as it was paid for, and note its file, until killed."""
    ledger, out = Ledger(url), os.open(drawn, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in range(10**6):
        pay = ledger.debit if number % 2 else ledger.reserve
        paid: Any = pay(f"album/{me % 3}", cost("0.000001"), f"{me} {number}")
        paid.commit()
        os.write(out, f"{paid.draw} {paid._wanted.unit}\n".encode())
        paid.stored(paid._wanted.unit)


def killed(url: str, drawn: Path, times: int, seed: int) -> None:
    """Kill two processes that draw, `times` times at random moments, and compare draws with the ledger."""
    chance = random.Random(seed)  # noqa: S311
    with Ledger(url, create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=1000))
    for number in range(times):
        children = [forked(partial(draw, url, drawn, 2 * number + other)) for other in range(2)]
        if number % 2:  # once something was drawn; else at whatever they do first
            before = drawn.stat().st_size if drawn.exists() else 0
            until = time.monotonic() + 60
            while not drawn.exists() or drawn.stat().st_size == before:
                assert time.monotonic() < until, "nothing is drawn"
                time.sleep(0.001)
        time.sleep(chance.uniform(0.005, 0.05))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    with Ledger(url) as ledger:
        found = ledger.check()
        draws = [tuple(line.split()) for line in drawn.read_text().splitlines()]
        debited = [(str(e.event.draw), e.event.unit) for e in ledger.history() if e.kind == "debit"]
        spent = ledger.show("album").spent.cost.epsilon
    assert len(draws) >= times // 2
    assert len(set(draws)) == len(draws)
    assert len(set(debited)) == len(debited) == spent, "a debit was lost or counted twice"
    assert set(draws) <= set(debited), "something was drawn and not paid for"
    assert len(debited) - len(draws) <= 2 * times, "a crash cost more than one debit"
    assert found.unstored <= 2 * times
