"""Runs audits by name, and audits of objects that a user passes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Final

from dpveil.errors import UnknownName
from dpveil.noise.bits import BitSource, SecureBits, SeededBits
from dpveil_audit import latent, networks, synthesis
from dpveil_audit.engine import Audit, Report
from dpveil_audit.faces import gallery, growth, recombination
from dpveil_audit.fit import ALPHA
from dpveil_audit.numbers import queries
from dpveil_audit.pixel.methods import TABLE
from dpveil_audit.samplers import samplers
from dpveil_audit.scalar.mutants import scalars

DRAWING: Final = "fit"  # the gate that draws, and so can raise false alarms
Entries = Mapping[str, Audit]


@cache
def learners() -> Entries:
    """Return the audits of models, by name; empty without the extra `learn`."""
    if find_spec("sklearn") is None:
        return {}
    from dpveil_audit.numbers.learning import naive_bayes_audit

    return {"naive-bayes": naive_bayes_audit()}


FAMILIES: Final[tuple[Callable[[], Entries], ...]] = (
    lambda: TABLE,
    scalars,
    lambda: latent.AUDITS,
    lambda: gallery.AUDITS,
    lambda: networks.AUDITS,
    lambda: {"growth": growth.AUDIT, "recombination": recombination.AUDIT},
    lambda: queries.AUDITS,
    learners,
    lambda: synthesis.AUDITS,
    samplers,
)
"""The families of audits by name: the only list to edit."""


def run(
    target: str | None = None,
    *,
    seed: int | None = None,
    deep: bool = False,
    step: Callable[[], None] = lambda: None,
) -> Report:
    """Audit a method, mechanism or sampler by name, or (None) all, with its mutants; return the report.

    Bits are secure unless a `seed` is given; a `deep` audit draws five times as often. `step` is called after
    each of `steps_of(target)` parts. Raises `UnknownName`.

    >>> run("integer-matrix", seed=1).passed
    True
    """
    source = _Bits(seed)
    found = entries()
    if target is not None and target not in found:
        raise UnknownName("method, mechanism or sampler", target, tuple(found))
    found = found if target is None else {target: found[target]}
    if deep:
        found = {name: replace(entry, level=entry.level.deep()) for name, entry in found.items()}
    audited = tuple(entry.run(name, source, step) for name, entry in found.items())
    drawn = sum(finding.gate == DRAWING for one in audited for finding in one.findings)
    return Report(source.kind, drawn * ALPHA, audited)


def names() -> tuple[str, ...]:
    """Return the names of all audits: methods, mechanisms, photo processing, models, samplers."""
    return tuple(entries())


def steps_of(target: str | None) -> int:
    """Return how often `run` will call `step` for a name, or for None."""
    return sum(1 + len(entry.mutants) for name, entry in entries().items() if target in (None, name))


def entries() -> dict[str, Audit]:
    return {name: entry for family in FAMILIES for name, entry in family().items()}


class _Bits:
    """Independent streams of bits by name: secure, or reproducible from a seed."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.kind = "secure" if seed is None else f"seed {seed}"

    def __call__(self, name: str) -> BitSource:
        return SecureBits() if self.seed is None else SeededBits(self.seed, f"audit {name}")
