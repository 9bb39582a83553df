"""The audit entry of a pixel method, and of a method that a user passes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import PixelMethod
from dpveil_audit.entry import Bits, Check, Entry, computed, drawn
from dpveil_audit.pixel.case import Known, Level
from dpveil_audit.pixel.gates_drawn import bound_gate, distinguish_gate, fit_gate
from dpveil_audit.pixel.gates_exact import exact_gate, same_gate
from dpveil_audit.pixel.gates_noise import pld_gate
from dpveil_audit.pixel.version import DistributionOf, Version, made_once

MOST: Final = {"epsilon": 200, "rho": 50}
"""Largest budgets that are audited: beyond, probabilities are too small for 64-bit floats, and little is
promised.
"""
COMPUTED: Final = ("exact", "pld")
"""Gates that use laws alone, so they cannot detect a mutant with the intact law."""
STREAM: Final = "{gate} {number}"


@dataclass(frozen=True, kw_only=True)
class MethodAudit(Entry[Version, Level], Known):
    """The audit of one method: its versions, the facts about it, and the settings of both levels.

    A method that promises nothing, and of which nothing can be shown, has no levels, with the reason in
    `note`. `refuse(method, level)` raises `InvalidParameter` for what takes too long to audit.
    """

    method: type[PixelMethod]
    refuse: Callable[[Any, Level], None] = lambda method, level: None

    @property
    def distribution(self) -> DistributionOf | None:
        """The law that releases have to follow: the independent one, or that of the intact version."""
        return self.right or self.intact.distribution

    def mutant(self, name: str) -> Version:
        """Return the mutant of that name."""
        return next(mutant for mutant in self.mutants if mutant.name == name)

    def checks(self, level: Level, bits: Bits) -> Iterator[Check[Version]]:
        """Yield every gate with every setting."""
        yield from computed("same", same_gate, level.cases, self.intact)
        yield from computed("exact", partial(exact_gate, entry=self), level.exact)
        if self.intact.noise is not None:
            yield from computed("pld", partial(pld_gate, entry=self), level.exact)
        if self.distribution is not None:
            fit = partial(fit_gate, distribution_of=made_once(self.distribution))
            yield from drawn("fit", fit, level.fit, bits, STREAM)
        yield from drawn("bound", partial(bound_gate, entry=self), level.bound, bits, STREAM)
        yield from drawn(
            "distinguish", partial(distinguish_gate, entry=self), level.distinguish, bits, STREAM
        )

    def differs(self, mutant: Version, check: Check[Version]) -> bool:
        """Return whether a mutant can behave differently from the intact version in this gate's setting."""
        intact, case = self.intact, check.case
        blind = mutant.distribution is intact.distribution and mutant.noise is intact.noise
        return mutant.unlike(intact, case.method, case.size) and not (check.gate in COMPUTED and blind)

    def own(self, method: PixelMethod, level: str) -> MethodAudit:
        """Return the audit of a user's own method, at the table's sizes and without mutants.

        Raises `InvalidParameter` for a budget or parameters that are too large to audit.
        """
        settings = self.levels[level].of(method)
        for promise in (case.guarantee for case in settings.cases):
            for name, most in MOST.items():
                if (getattr(promise, name) or 0) > most:
                    raise InvalidParameter(
                        name, getattr(promise, name), "is too large to audit", hint=f"audits reach {most}"
                    )
        self.refuse(method, settings)
        note = "" if settings.cases else self.note
        return replace(self, mutants=(), levels={level: settings}, note=note)
