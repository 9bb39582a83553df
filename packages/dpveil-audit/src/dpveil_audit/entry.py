"""An entry of the audit's table: the settings of both levels, the checks of every gate, and the mutants.

A family of audits is a subclass of `Entry` with its `checks`, and a table of them by name; `mutation.run`
runs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

from dpveil.errors import DPVeilError
from dpveil.noise.bits import BitSource
from dpveil_audit.findings import Finding

Bits = Callable[[str], BitSource]
"""A function from names to independent bit sources."""
NUMBERED: Final = "{case} {gate} {number}"
"""The name of a bit source if one case has several settings."""
BY_DRAWS: Final = ("fit", "bound")
"""Gates for a mutant with the intact distributions, which only draws can reject."""
DEEPER: Final = 5
"""Draws of a deep level for each of the quick one."""
BY_LAW: Final = ("exact", "fit")
"""Gates for a mutant that no lower bound rejects at the quick level."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One version of what is audited: intact, or mutated.

    `gates` are those that a mutant is shown to, all if empty: the others cannot detect it, or would need more
    draws than the quick level has.
    """

    name: str
    gates: tuple[str, ...] = ()


C = TypeVar("C")
T = TypeVar("T")
L = TypeVar("L")
V = TypeVar("V", bound=Variant)


@dataclass(frozen=True)
class Drawn(Generic[C, T]):
    """A setting for gates that draw: the inputs that are fitted, and the pairs that are distinguished."""

    case: C
    draws: int
    fits: tuple[T, ...] = ()
    pairs: tuple[tuple[T, T], ...] = ()


@dataclass(frozen=True)
class Level(Generic[C, T]):
    """The settings of one level; `tables` is the number of random tables, in families that use them."""

    exact: tuple[C, ...]
    drawn: tuple[Drawn[C, T], ...] = ()
    tables: int = 0

    @property
    def cases(self) -> tuple[C, ...]:
        """Every case, once."""
        return tuple(dict.fromkeys([*self.exact, *(setting.case for setting in self.drawn)]))

    def more(self, exact: tuple[C, ...], tables: int = 0) -> Level[C, T]:
        """Return this level with more settings and tables, and `DEEPER` times the draws."""
        drawn = tuple(replace(setting, draws=DEEPER * setting.draws) for setting in self.drawn)
        return Level(self.exact + exact, drawn, tables)


@dataclass(frozen=True)
class Check(Generic[V]):
    """A gate with one setting. `only` is the version it is for: None for all."""

    gate: str
    case: Any
    look: Callable[[V], Iterable[Finding]]
    only: V | None = None

    def suits(self, version: V) -> bool:
        """Return whether it applies to this version, by the version's `gates`."""
        return (self.only is None or self.only is version) and (
            not version.gates or self.gate in version.gates
        )


def computed(
    gate: str, look: Callable[[V, C], Iterable[Finding]], cases: Iterable[C], only: V | None = None
) -> Iterator[Check[V]]:
    """Yield a gate that draws nothing, once for every case."""
    for case in cases:
        yield Check(gate, case, partial(_at, look, case), only)


def drawn(
    gate: str,
    look: Callable[..., Iterable[Finding]],
    settings: Iterable[Any],
    bits: Bits,
    stream: str = "{case} {gate}",
    only: V | None = None,
) -> Iterator[Check[V]]:
    """Yield a gate that draws, once for every setting; all versions get the same bits."""
    for number, setting in enumerate(settings):
        name = stream.format(case=setting.case, gate=gate, number=number)
        yield Check(gate, setting.case, partial(_with, look, setting, bits, name), only)


def _at(look: Callable[[V, C], Iterable[Finding]], case: C, version: V) -> Iterable[Finding]:
    return look(version, case)


def _with(
    look: Callable[..., Iterable[Finding]], setting: object, bits: Bits, stream: str, version: V
) -> Iterable[Finding]:
    return look(version, setting, bits=bits(stream))


@dataclass(frozen=True, kw_only=True)
class Entry(ABC, Generic[V, L]):
    """The audit of one name. `note` gives the reason if there is nothing to check.

    A release that is refused with one of `refusals` is a finding. Mutants that are `common` to several names
    are skipped if they differ nowhere; all others have to be rejected.
    """

    intact: V
    mutants: tuple[V, ...] = ()
    levels: dict[str, L]
    note: str = ""

    refusals: ClassVar[tuple[type[DPVeilError], ...]] = ()
    common: ClassVar[bool] = False

    @abstractmethod
    def checks(self, level: L, bits: Bits) -> Iterable[Check[V]]:
        """Yield every gate with every setting; those that detect most mutants for their time come first."""

    def differs(self, mutant: V, check: Check[V]) -> bool:
        """Return whether a mutant can behave differently from the intact version in this check's setting."""
        return True
