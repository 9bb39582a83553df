"""Faults planted in the product itself, not in the audit's copy of it, are seen.

Bits are seeded; a right release is rejected with probability below 1e-8 over all seeds.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpveil.codecs import network_codecs
from dpveil.codecs.network_codecs import EncoderDecoder
from dpveil.core.region import Region
from dpveil.faces import Attributes, Latent, head_placement
from dpveil.faces.latent import DecoderInputs
from dpveil.mechanisms.choice.rank_choice import RandomisedResponse, RankChoice
from dpveil.mechanisms.latent import CroftMetric, directional
from dpveil.mechanisms.latent import laplace as latent_laplace
from dpveil.mechanisms.pixel import DPSVD, DPPix, base, dp_svd
from dpveil.mechanisms.scalar import Laplace, TruncatedLaplace
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise import SeededBits, laplace
from dpveil.numbers import naive_bayes, statistics
from dpveil.synthesis import face_variations, plan
from dpveil.synthesis.plan import SetPlan
from dpveil_audit.runner import entries, learners

SEED = 20261121
Plant = Callable[[pytest.MonkeyPatch], None]


def changed(owner: Any, name: str, change: Callable[[Callable[..., Any]], Any]) -> Plant:
    """Replace a function or method by what `change` makes of it."""
    return lambda patch: patch.setattr(owner, name, change(getattr(owner, name)))


def less_diameter(guarantee):
    def less(self, *given, **size):
        promised = guarantee(self, *given, **size)
        return replace(promised, diameter=promised.diameter * Fraction(9, 10))

    return less


def larger_weights(patch):
    right = RankChoice.weights.fget

    def more(self):
        return right(RankChoice(count=self.count, epsilon=self.epsilon * 6 / 5, near=self.near))

    shares = property(lambda self: tuple(Fraction(w, sum(more(self))) for w in more(self)))
    patch.setattr(RankChoice, "weights", property(more))
    patch.setattr(RankChoice, "probabilities", shares)


def budgets_not_divided(patch):
    right = Attributes.responses.fget

    def undivided(self):
        total = sum(budget for _, budget in self.costs)
        return {n: RandomisedResponse(epsilon=total, values=r.values) for n, r in right(self).items()}

    patch.setattr(Attributes, "responses", property(undivided))


def code_that_is_not_drawn(_):
    return lambda self, crops, bits: (self._codec.encode(crops), self.told.answers(crops, self._reader, bits))


def sees_the_batch(encode):
    return lambda self, crops: (c := encode(self, crops)) - c.mean(axis=0) / 4


def unclipped(_):
    return lambda held, lower, upper: np.rint((held - lower) / (upper - lower) * naive_bayes.LEVELS).astype(
        np.int64
    )


def a_round_without_noise(patch):
    calls = []

    def sometimes(true, variance, source):
        calls.append(1)
        return true if len(calls) % 3 == 0 else face_variations.noisy(true, variance, source)

    patch.setattr(plan, "noisy", sometimes)


def not_grown(patch):
    for module in (head_placement, base):
        patch.setattr(module, "grow", lambda region, photo: region)


def short_paste(paste):
    def short(self, image, released):
        paste(replace(self, box=replace(self.box, w=self.box.w - 1)), image, released[:, :-1])

    return short


def shows_what_was_there(paint_faces):
    """Show a tenth of what was there, as a filling without a mask would."""

    def seen(image, places, faces, **shown):
        out = paint_faces(image, places, faces, **shown)
        for one in places:
            out[one.region.box.slices] = out[one.region.box.slices] * 0.9 + image[one.region.box.slices] * 0.1
        return out

    return seen


FAULTS: dict[str, tuple[str, str, Plant]] = {
    "Laplace scale too small": (
        "dp-pix",
        "exact",
        changed(DPPix, "sum_scale", lambda right: lambda self, **size: right(self, **size) * 4 / 5),
    ),
    "sampler without signs": (
        "discrete-laplace",
        "fit",
        changed(laplace, "draw", lambda right: lambda tables, size, bits: np.abs(right(tables, size, bits))),
    ),
    "singular values twice as far": (
        "dp-svd",
        "same",
        changed(dp_svd, "whole_values", lambda right: lambda *given: [2 * v for v in right(*given)]),
    ),
    "diameter that images exceed": ("dp-svd", "exact", changed(DPSVD, "guarantee", less_diameter)),
    "truncated scale too small": (
        "truncated-laplace",
        "exact",
        changed(TruncatedLaplace, "scale", lambda right: property(lambda self: right.fget(self) / 2)),
    ),
    "responses snapped to the next point": (
        "laplace",
        "fit",
        changed(Lattice, "snap", lambda right: lambda self, points: right(self, points + 1)),
    ),
    "release unlike its draws": (
        "laplace",
        "same",
        changed(
            Laplace,
            "release",
            lambda right: lambda self, answer, bits: right(self, answer, SeededBits(SEED)),
        ),
    ),
    "latent scale too small": (
        "croft-metric",
        "exact",
        changed(
            CroftMetric, "scales", lambda right: lambda self, space: tuple(s / 2 for s in right(self, space))
        ),
    ),
    "codes with less noise": (
        "croft-metric",
        "fit",
        changed(
            latent_laplace,
            "noisy",
            lambda right: lambda at, scales, bits: right(at, [s * 9 / 10 for s in scales], bits),
        ),
    ),
    "direction drawn too closely": (
        "directional",
        "fit",
        changed(
            directional,
            "von_mises_fisher",
            lambda right: lambda towards, k, far, bits: right(towards, 3 * k, far, bits),
        ),
    ),
    "diameter that codes exceed": ("croft-metric", "exact", changed(CroftMetric, "guarantee", less_diameter)),
    "mask forgotten": (
        "latent",
        "beyond",
        changed(network_codecs, "ellipse_mask", lambda _: lambda side: np.ones((side, side), bool)),
    ),
    "code that is not drawn": ("latent", "around", changed(Latent, "_released", code_that_is_not_drawn)),
    "answer without randomised response": (
        "latent",
        "bound",
        changed(DecoderInputs, "answers", lambda _: lambda self, crops, m, bits: m.read(crops) if m else {}),
    ),
    "encoder that sees the batch": ("latent", "alone", changed(EncoderDecoder, "_encode", sees_the_batch)),
    "weights of a larger budget": ("gallery", "exact", larger_weights),
    "budgets not divided": ("attributes", "exact", budgets_not_divided),
    "half a sensitivity": (
        "query-mean",
        "exact",
        changed(statistics, "_width", lambda right: lambda allowed: right(allowed) / 2),
    ),
    "values clipped elsewhere": (
        "query-mean",
        "same",
        changed(
            statistics,
            "clip_values",
            lambda right: lambda rows, *rest: [min(x, Fraction(1, 2)) for x in right(rows, *rest)],
        ),
    ),
    "query unlike its plan": (
        "query-mean",
        "same",
        changed(
            statistics.Plan,
            "release",
            lambda right: lambda own, bits: right(replace(own, answers=(own.mechanism.range.high,)), bits),
        ),
    ),
    "features not clipped": ("naive-bayes", "exact", changed(naive_bayes, "encode", unclipped)),
    "round without noise": ("private-evolution", "same", a_round_without_noise),
    "plan that forgets its rounds": (
        "private-evolution",
        "exact",
        changed(SetPlan, "variance", lambda right: property(lambda one: right.func(one) // one.rounds)),
    ),
    "regions that do not grow": ("growth", "escape", not_grown),
    "faces that do not grow": ("recombination", "hidden", not_grown),
    "region not pasted whole": ("growth", "stated", changed(Region, "paste", short_paste)),
    "filling from hidden pixels": (
        "recombination",
        "hidden",
        changed(head_placement, "paint_faces", shows_what_was_there),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_product_is_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    """The gate that sees it passes what is right, as `test_audit_run` shows."""
    audited, gate, plant = FAULTS[name]
    plant(monkeypatch)
    entry = (learners.__wrapped__() | entries())[audited]

    level = entry.levels["quick"]

    def forget():
        """Forget what cases and laws know of the product."""
        getattr(entry.intact.law, "cache_clear", int)()
        for case in level.cases:
            for key in [key for key in vars(case) if key not in case.__dataclass_fields__]:
                vars(case).pop(key)

    forget()
    checks = [one for one in entry.checks(level, lambda name: SeededBits(SEED, name)) if one.gate == gate]
    try:
        assert list(entry.killers(entry.intact, checks)) == [gate]
    finally:
        forget()


@pytest.mark.parametrize("name", ["gallery", "attributes"])
def test_a_mutant_that_is_not_wrong_lives(name: str):
    """Mutants die of what is wrong with them."""
    entry = entries()[name]
    same = replace(entry.intact, draw=None)
    checks = entry.checks(entry.levels["quick"], lambda name: SeededBits(SEED, name))
    assert not [*entry.killers(same, [check for check in checks if not check.ties])]
