"""Every gate on a version as it is, then on every mutant until one rejects it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from dpveil.audit.findings import Audited, Finding, Mutant
from dpveil.errors import DPVeilError


class Named(Protocol):
    """A version, by whatever it is made of."""

    @property
    def name(self) -> str:
        """What is wrong with it, or intact."""


def told(gate: str, what: object, look: Iterator[Finding]) -> Iterator[Finding]:
    """Yield what a gate finds; that a release is refused, where none should be, is a finding as well."""
    try:
        yield from look
    except DPVeilError as error:
        yield Finding(gate, f"refused: {error.message}", str(what), 1, 0, False, "releases")


V = TypeVar("V", bound=Named)
Gates = Iterable[tuple[str, Callable[[V], Iterator[Finding]]]]


def audited(
    name: str,
    intact: V,
    mutants: Iterable[V],
    gates: Callable[[str], Gates[V]],
    level: str,
    step: Callable[[], None],
) -> Audited:
    """Return what the gates of a level find in the intact version, and those of the quick one in mutants.

    `step` is called after the intact version and after every mutant.
    """
    found = [finding for _, check in gates(level) for finding in check(intact)]
    step()
    died = []
    for mutant in mutants:
        checks = list(gates("quick"))
        tried = tuple(dict.fromkeys(gate for gate, _ in checks))
        died.append(Mutant(mutant.name, tried, tuple(_killers(mutant, checks))))
        step()
    return Audited(name, tuple(found), tuple(died))


def _killers(mutant: V, checks: Gates[V]) -> Iterator[str]:
    """Yield the gates that reject a mutant; each stops at the first finding that does."""
    done: set[str] = set()
    for gate, check in checks:
        if gate not in done and not all(finding.passed for finding in check(mutant)):
            done.add(gate)
            yield gate
