"""Audit entries of the models, with their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Final

from dpveil.errors import DPVeilError
from dpveil_audit.entry import Bits, Check, Entry, computed, drawn
from dpveil_audit.numbers.learning import INTACT, LearnCase, LearnDrawn, LearnLevel, LearnVersion, Record
from dpveil_audit.numbers.learning_gates import bound_gate, exact_gate, fit_gate, same_gate
from dpveil_audit.numbers.learning_mutants import MUTANTS

ANY: Final = "any-database"
DRAWS: Final = 1_200
FLOOR: Final = "1e-9"


@dataclass(frozen=True, kw_only=True)
class LearnAudit(Entry[LearnVersion, LearnLevel]):
    """The audit of one model."""

    refusals: ClassVar[tuple[type[DPVeilError], ...]] = (DPVeilError,)

    def checks(self, level: LearnLevel, bits: Bits) -> Iterator[Check[LearnVersion]]:
        """Yield every gate with every setting."""
        yield from computed("same", same_gate, level.exact, self.intact)
        yield from computed("exact", exact_gate, level.exact)
        for setting in level.drawn:
            yield from drawn("fit", fit_gate, [setting] if setting.fits else [], bits)
            yield from drawn("bound", bound_gate, [setting] if setting.pairs else [], bits)


def _records(*values: tuple[float, ...]) -> tuple[Record, ...]:
    return tuple(Record(features, label) for label, features in product("ab", values))


ONE: Final = _records((0.0,), (1.0,), (0.5,), (7.0,))
"""One feature in 0:1: both ends, the middle, and a value that is clipped."""
TWO: Final = _records((0.0, -3.0), (1.0, 9.0), (0.3, 100.0), (-5.0, 3.0))
"""Two features, in 0:1 and -3:9."""
BOTH: Final[dict[str, Any]] = {"bounds": ((0, -3), (1, 9)), "floor": FLOOR}
UNIT: Final[dict[str, Any]] = {"bounds": (0, 1), "floor": FLOOR}


def _case(
    records: tuple[Record, ...], rows: tuple[int, ...], classes: str = "abc", /, **settings: Any
) -> LearnCase:
    return LearnCase(records, rows, {"epsilon": 1, **settings}, tuple(classes))


def naive_bayes() -> LearnAudit:
    """Return the audit of naive Bayes."""
    exact = (
        _case(ONE, (1, 2), **UNIT),
        _case(TWO, (2,), spread="deviation", mechanism="laplace", relation=ANY, parts=(2, 1, 1), **BOTH),
        _case(ONE, (1, 2, 3), neighbours="added", mechanism="explicit-fair", relation=ANY, **UNIT),
        _case(TWO, (1, 2), neighbours="added", spread="deviation", **{**BOTH, "epsilon": 6}),
        _case(ONE[:4], (3,), mechanism="staircase", spread="deviation", parts=(1, 2, 3), **UNIT),
    )
    deep = (
        _case(ONE, (3,), **UNIT),
        _case(TWO, (3,), mechanism="geometric", **BOTH),
        _case(ONE, (7,), neighbours="added", **UNIT),
        _case(TWO, (1, 2), mechanism="permute-and-flip", spread="deviation", **{**BOTH, "epsilon": "0.3"}),
        _case(ONE, (2,), mechanism="linear-program-1", neighbours="added", **UNIT),
        _case(TWO, (2,), mechanism="truncated-laplace", relation=ANY, **{**BOTH, "epsilon": 20}),
    )
    two = _case(TWO, (7,), **{**BOTH, "epsilon": 6})
    one = _case(ONE, (5,), spread="deviation", mechanism="laplace", **{**UNIT, "epsilon": 8})
    sizes = _case(ONE, (8,), "ab", parts=(98, 1, 1), **{**UNIT, "epsilon": 3})
    means = _case(ONE, (1, 2), "a", neighbours="added", parts=(1, 98, 1), **{**UNIT, "epsilon": 3})
    spreads = _case(ONE, (1, 2), "a", neighbours="added", parts=(1, 1, 98), **{**UNIT, "epsilon": 3})
    low, high, other_low = 0, 1, 4
    moved = (low,) * 4 + (other_low,) * 4, (low,) * 3 + (other_low,) * 5
    settings = (
        LearnDrawn(one, DRAWS, fits=((0, 0, 1, 2, 5),)),
        LearnDrawn(two, DRAWS, fits=((0, 1, 1, 2, 4, 5, 7),)),
        LearnDrawn(sizes, DRAWS, pairs=(moved,)),
        LearnDrawn(means, DRAWS, pairs=(((low,), (low, high)),)),
        LearnDrawn(spreads, DRAWS, pairs=(((low,), (low, high)),)),
    )
    quick = LearnLevel(exact, settings)
    return LearnAudit(intact=INTACT, levels={"quick": quick, "deep": quick.more(deep)}, mutants=MUTANTS)
