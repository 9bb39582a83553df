"""Faults planted in the product itself, not in the audit's copy of it, are seen; what is right passes.

Bits are seeded; a right release is rejected with probability below 1e-8 over all seeds.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpveil.codecs import neural
from dpveil.codecs.neural import EncoderDecoder
from dpveil.core.region import Box, Region
from dpveil.faces import Attributes, Gallery, Latent, heads
from dpveil.faces import attributes as attributes_file
from dpveil.faces.latent import Told
from dpveil.mechanisms.choice.rank_choice import RandomisedResponse, RankChoice
from dpveil.mechanisms.latent import CroftMetric, directional
from dpveil.mechanisms.latent import laplace as latent_laplace
from dpveil.mechanisms.pixel import DPSVD, DPPix, base, dp_svd
from dpveil.mechanisms.scalar import ExplicitFair, Laplace, Range, ScalarMechanism, TruncatedLaplace
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise import SeededBits, laplace
from dpveil.numbers import naive_bayes, statistics
from dpveil.synthesis import plan, simulator
from dpveil.synthesis.plan import Plan
from dpveil_audit import latent, synthesis
from dpveil_audit.engine import Audit, Drawn
from dpveil_audit.faces import growth, recombination
from dpveil_audit.faces.growth import Encoding, GrowthCase, MadeLossy
from dpveil_audit.faces.recombination import Made, RecombinationCase
from dpveil_audit.numbers import learning, queries
from dpveil_audit.numbers.queries import Cell, QueryCase
from dpveil_audit.pixel import gates as pixel
from dpveil_audit.pixel.methods.dp_svd import AUDIT as SVD
from dpveil_audit.runner import entries
from dpveil_audit.scalar import case as scalar
from dpveil_audit.scalar.case import INTACT as NUMBER
from dpveil_audit.scalar.case import ScalarCase
from dpveil_audit.scalar.laws import distribution_of

SEED = 20261121
CELLS = (Cell("0", Fraction(0)), Cell(1, Fraction(1)), Cell(0.5, Fraction(1, 2)), Cell("", None))
ASKED = {"range": (0, 1), "epsilon": 1, "missing": 1, "mechanism": "geometric"}
MEAN = QueryCase("mean", CELLS, 3, ASKED)
BINS = QueryCase("histogram", CELLS, 2, {**ASKED, "bins": 2})
VOTES = synthesis.VoteCase("1", "1e-6", 3, 3, 3)
MIDDLE = GrowthCase(Encoding("4:2:0", 95), 45, 61, (Box(18, 17, 13, 9),))
GAPPED = ScalarCase(Laplace(range=Range(0, None, gaps=[(2, 4)]), sensitivity=1, epsilon=1, step="1/4"))
Seen = Callable[[], set[str]]
FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Seen, set[str], bool]] = {}


def bits(name: str) -> SeededBits:
    return SeededBits(SEED, name)


def broken(findings) -> set[str]:
    return {finding.gate for finding in findings if not finding.passed}


def rejected(entry: Audit, *gates: str) -> set[str]:
    """Return which gates, of those named or of all, reject what is intact at the quick settings."""
    checks = entry.checks(entry.levels["quick"], bits)
    return set(entry.killers(entry.intact, [one for one in checks if not gates or one.gate in gates]))


def quick(name: str, *gates: str) -> Seen:
    return lambda: rejected(entries()[name], *gates)


def number(method: ScalarMechanism, gate: Callable) -> Seen:
    return lambda: broken(gate(NUMBER, ScalarCase(method)))


def query(case: QueryCase) -> Seen:
    intact = queries.INTACT
    return lambda: broken([*queries.same_gate(intact, case), *queries.exact_gate(intact, case)])


def model() -> set[str]:
    case, intact = learning.naive_bayes().levels["quick"].exact[0], learning.INTACT
    return broken([*learning.same_gate(intact, case), *learning.exact_gate(intact, case)])


def voting() -> set[str]:
    case = replace(VOTES)  # whose plan is made anew
    return broken(
        [*synthesis.same_gate(synthesis.INTACT, case), *synthesis.exact_gate(synthesis.INTACT, case)]
    )


def svd() -> set[str]:
    level = SVD.levels["quick"]
    found = [
        *pixel.same_gate(SVD.intact, level.drawn[1].case),
        *pixel.exact_gate(SVD.intact, level.exact[1], SVD),
    ]
    return broken(found)


def growing() -> set[str]:
    made, intact = MadeLossy(MIDDLE, bits), growth.INTACT
    return broken(f for gate in growth.AUDIT.gates for f in gate.look(intact, made))


def placing(*boxes: Box, **given) -> Seen:
    def seen() -> set[str]:
        made, intact = Made(RecombinationCase(boxes, **given), bits), recombination.INTACT
        return broken(f for gate in recombination.AUDIT.gates for f in gate.look(intact, made))

    return seen


def numbers() -> set[str]:
    drawn = Drawn(GAPPED, 20_000)
    found = scalar.exact_gate(NUMBER, GAPPED)
    return broken([*found, *scalar.fit_gate(NUMBER, drawn, distribution_of(GAPPED.method), bits=bits("fit"))])


def fault(seen: Seen, *gates: str, only: bool = False):
    """Register a fault: these gates see it, and no others if `only`."""

    def register(plant):
        FAULTS[plant.__name__] = plant, seen, set(gates), only
        return plant

    return register


RIGHT = {
    "a mean": query(MEAN),
    "a histogram": query(BINS),
    "naive Bayes": model,
    "votes": voting,
    "dp-svd": svd,
    "growth": growing,
    "a face": placing(*recombination.TWO),
    "Laplace": numbers,
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str):
    assert RIGHT[name]() == set()


# Pixels


@fault(quick("dp-pix", "exact"), "exact")
def laplace_scale_too_small(patch):
    right = DPPix.sum_scale
    patch.setattr(DPPix, "sum_scale", lambda self, **size: right(self, **size) * 4 / 5)


@fault(quick("discrete-laplace", "fit"), "fit")
def sampler_without_signs(patch):
    right = laplace.draw
    patch.setattr(laplace, "draw", lambda tables, size, bits: np.abs(right(tables, size, bits)))


@fault(svd, "same")
def singular_values_twice_as_far(patch):
    right = dp_svd.whole_values
    patch.setattr(dp_svd, "whole_values", lambda held, pixels: [2 * v for v in right(held, pixels)])


@fault(svd, "exact", only=True)
def diameter_that_images_exceed(patch):
    right = DPSVD.guarantee

    def less(self, **size):
        promised = right(self, **size)
        return replace(promised, diameter=promised.diameter * Fraction(99, 100))

    patch.setattr(DPSVD, "guarantee", less)


# Single numbers


@fault(number(TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="1/8"), scalar.exact_gate), "exact")
def truncated_scale_too_small(patch):
    distribution_of.cache_clear()
    patch.setattr(
        "dpveil.mechanisms.scalar.laplace.least_scale",
        lambda lattice, epsilon, *, metric: lattice.reach / epsilon,
    )


@fault(numbers, "fit")
def responses_snapped_to_the_next_point(patch):
    right = Lattice.snap
    patch.setattr(Lattice, "snap", lambda self, points: right(self, points + 1))


@fault(numbers, "exact", only=True)
def matrix_unlike_the_distribution(patch):
    right = Laplace._masses
    patch.setattr(Laplace, "_masses", lambda self, point, edges: right(self, point, edges + 1))


@fault(number(Laplace(range=(0, 4), sensitivity=1, epsilon=1, step=1), scalar.same_gate), "same")
def release_unlike_its_draws(patch):
    right = Laplace.release
    patch.setattr(Laplace, "release", lambda self, answer, bits: np.round(right(self, answer, bits) * 0.5))


# Codes


@fault(quick("croft-metric", "exact"), "exact")
def latent_scale_too_small(patch):
    right = CroftMetric.scales
    patch.setattr(CroftMetric, "scales", lambda self, space: tuple(s * 4 / 5 for s in right(self, space)))


@fault(quick("croft-metric", "fit"), "fit")
def codes_with_less_noise(patch):
    right = latent_laplace.noisy
    patch.setattr(
        latent_laplace, "noisy", lambda at, scales, bits: right(at, [s * 9 / 10 for s in scales], bits)
    )


@fault(quick("directional", "fit"), "fit")
def direction_drawn_too_closely(patch):
    right = directional.von_mises_fisher
    patch.setattr(
        directional, "von_mises_fisher", lambda towards, k, far, bits: right(towards, 3 * k, far, bits)
    )


def codes_far_apart() -> set[str]:
    entry = entries()["croft-metric"]
    return broken(latent.exact_gate(entry.intact, replace(entry.levels["quick"].exact[0])))  # asked anew


@fault(codes_far_apart, "exact", only=True)
def diameter_that_codes_exceed(patch):
    right = CroftMetric.guarantee
    patch.setattr(
        CroftMetric, "guarantee", lambda self, space: replace(right(self, space), diameter=Fraction(9, 10))
    )


# Networks


@fault(quick("latent", "beyond"), "beyond")
def mask_forgotten(patch):
    patch.setattr(neural, "ellipse_mask", lambda side: np.ones((side, side), bool))


@fault(quick("latent", "around", "bound"), "around", "bound")
def code_that_is_not_drawn(patch):
    def released(self, crops, bits):
        return self._codec.encode(crops), self.told.answers(crops, self._reader, bits)

    patch.setattr(Latent, "_released", released)


@fault(quick("latent"), "bound", only=True)
def answer_without_randomised_response(patch):
    patch.setattr(Told, "answers", lambda self, crops, model, bits: model.read(crops) if model else {})


@fault(quick("latent", "alone"), "alone")
def encoder_that_sees_the_batch(patch):
    right = EncoderDecoder._encode
    patch.setattr(
        EncoderDecoder, "_encode", lambda self, crops: (c := right(self, crops)) - c.mean(axis=0) / 4
    )


# Faces of a gallery


@fault(quick("gallery"), "exact", "fit", "same")
def weights_of_a_larger_budget(patch):
    right = RankChoice.weights.fget

    def more(self):
        return right(RankChoice(count=self.count, epsilon=self.epsilon * 6 / 5, law=self.law, near=self.near))

    patch.setattr(RankChoice, "weights", property(more))
    shares = property(lambda self: tuple(Fraction(w, sum(more(self))) for w in more(self)))
    patch.setattr(RankChoice, "probabilities", shares)


@fault(quick("attributes"), "same", "exact", "fit", only=True)
def budgets_not_divided(patch):
    right = Attributes.responses.fget

    def undivided(self):
        total = sum(budget for _, budget in self.costs)
        return {n: RandomisedResponse(epsilon=total, values=r.values) for n, r in right(self).items()}

    patch.setattr(Attributes, "responses", property(undivided))


@fault(quick("attributes", "fit"), "fit", only=True)
def face_not_drawn_evenly(patch):
    patch.setattr(attributes_file, "evenly", lambda faces, bits: int(faces[0]))


@fault(quick("attributes"), "fit", only=True)
def face_chosen_by_the_crop(patch):
    right = Attributes._draw

    def nearest(self, crops, bits):
        """Shows the first face of the pair to dark crops, and the second to bright ones."""
        shown = right(self, crops, bits)
        pairs = shown[:, 0, -1, 0] // 2 * 2 + (crops[:, 0, 2, 0] > 100)
        return self.gallery.held.faces[pairs]

    patch.setattr(Attributes, "_draw", nearest)


# Queries and models


@fault(query(MEAN), "exact")
def half_a_sensitivity(patch):
    right = statistics._width
    patch.setattr(statistics, "_width", lambda allowed: right(allowed) / 2)


@fault(query(MEAN), "same")
def values_clipped_elsewhere(patch):
    right = statistics.clip_values
    patch.setattr(
        statistics, "clip_values", lambda rows, *rest: [min(x, Fraction(1, 2)) for x in right(rows, *rest)]
    )


@fault(query(MEAN), "same")
def query_unlike_its_plan(patch):
    right = statistics.Plan.release
    patch.setattr(
        statistics.Plan, "release", lambda plan, bits: right(replace(plan, answers=(Fraction(1),)), bits)
    )


@fault(model, "same", "exact")
def features_not_clipped(patch):
    def unclipped(held, lower, upper):
        return np.rint((held - lower) / (upper - lower) * naive_bayes.LEVELS).astype(np.int64)

    patch.setattr(naive_bayes, "encode", unclipped)


# Synthetic data sets


@fault(voting, "same", only=True)
def round_without_noise(patch):
    calls = []

    def sometimes(true, variance, source):
        calls.append(1)
        return true if len(calls) % VOTES.rounds == 0 else simulator.noisy(true, variance, source)

    patch.setattr(plan, "noisy", sometimes)


@fault(voting, "exact")
def plan_that_forgets_its_rounds(patch):
    right = Plan.variance.func
    patch.setattr(Plan, "variance", property(lambda one: right(one) // one.rounds))


# Photos


@fault(growing, "escape", "release")
def regions_that_do_not_grow(patch):
    patch.setattr(heads, "grow", lambda region, photo: region)
    patch.setattr(base, "grow", lambda region, photo: region)


FAULTS["faces that do not grow"] = (
    regions_that_do_not_grow,
    placing(*recombination.ONE, encoding=Encoding("4:2:0", 90)),
    {"hidden"},
    False,
)


@fault(growing, "stated")
def region_not_pasted_whole(patch):
    right = Region.paste

    def short(self, image, released):
        right(replace(self, box=replace(self.box, w=self.box.w - 1)), image, released[:, :-1])

    patch.setattr(Region, "paste", short)


@fault(placing(*recombination.TWO, protect="box"), "hidden", only=True)
def filling_from_hidden_pixels(patch):
    right = heads.recombine

    def seen(image, places, faces, **shown):
        """Shows a tenth of what was there, as a filling without a mask would."""
        out = right(image, places, faces, **shown)
        for one in places:
            out[one.region.box.slices] = out[one.region.box.slices] * 0.9 + image[one.region.box.slices] * 0.1
        return out

    patch.setattr(heads, "recombine", seen)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_product_is_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    plant, seen, gates, only = FAULTS[name]
    plant(monkeypatch)
    found = seen()
    distribution_of.cache_clear()
    assert gates == found if only else gates <= found


def test_a_certificate_that_states_too_little_is_seen():
    method = ExplicitFair(range=(0, 5), sensitivity=1, epsilon=1)
    stated = method.certificate
    method.__dict__["certificate"] = replace(stated, epsilon=stated.epsilon / 2)
    assert broken(scalar.exact_gate(NUMBER, ScalarCase(method))) == {"exact"}


def test_what_is_no_face_of_the_gallery_is_told(monkeypatch: pytest.MonkeyPatch):
    case = entries()["gallery"].levels["quick"].exact[0]
    rows = np.array([(0, 1, 2, 5)] * 3)
    assert set(case.draw(rows, SeededBits(1)).tolist()) <= {0, 1, 2, 3}
    right = Gallery._draw
    monkeypatch.setattr(Gallery, "_draw", lambda self, crops, bits: right(self, crops, bits) ^ 64)
    assert case.draw(rows, SeededBits(1)).tolist() == [-1] * 3


@pytest.mark.parametrize("name", ["gallery", "attributes"])
def test_a_mutant_that_is_not_wrong_lives(name: str):
    """Mutants die of what is wrong with them."""
    from dpveil_audit.faces.gallery import wrong

    entry = entries()[name]
    same = wrong("right", entry.intact.chances)
    checks = [check for check in entry.checks(entry.levels["quick"], bits) if not check.ties]
    assert not [*entry.killers(same, checks)]
