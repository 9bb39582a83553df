"""Audits of methods that show a face of a gallery: what is right passes, faults in the code are seen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpveil.faces import Attributes, Gallery
from dpveil.faces import attributes as attributes_file
from dpveil.mechanisms.choice.randomised_response import RandomisedResponse
from dpveil.mechanisms.choice.rank_choice import RankChoice
from dpveil.noise import SeededBits
from dpveil_audit.faces import gallery as distributions
from dpveil_audit.faces.gallery import bound_gate, exact_gate
from dpveil_audit.faces.gallery_table import AUDITS, _answered, _ranked, wrong

SEED = 20261121


def broken(name):
    """Return the gates that reject a method as it is, at its quick settings."""
    entry = AUDITS[name]
    checks = entry.checks(entry.levels["quick"], lambda stream: SeededBits(SEED, stream))
    return set(entry.killers(entry.intact, checks))


def cost(version, case):
    """Return the largest log-ratio in floating point, without the gate."""
    chances = np.array([[float(p) for p in version.distribution(case, row)] for row in case.inputs])
    chances = chances[:, chances.any(axis=0)]
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(chances.max(axis=0)) - np.log(chances.min(axis=0))))


@pytest.mark.parametrize("name", ["gallery", "attributes"])
def test_mutants_cost_what_they_are_there_for(name):
    """Each breaks its promise by a hundredth and more, but for those that are right, or nearly."""
    entry = AUDITS[name]
    cases = entry.levels["quick"].exact
    for mutant in entry.mutants:
        over = max(cost(mutant, case) / float(case.epsilon) for case in cases)
        little = mutant.name in ("every draw used twice", "larger weight rounded up")
        assert math.isclose(over, 1, rel_tol=1e-9) if little else over > 1.01
    for case in cases:
        assert cost(entry.intact, case) >= float(case.epsilon) * (1 - 1e-8)  # nothing is wasted


def test_the_gates_say_which_violation_they_detect():
    entry = AUDITS["attributes"]
    case = entry.levels["quick"].exact[0]
    assert {finding.sees for finding in exact_gate(entry.intact, case)} == {"any excess"}
    setting = entry.levels["quick"].drawn[0]
    setting = replace(setting, draws=5_000, pairs=setting.pairs[:1])
    [finding] = bound_gate(entry.intact, setting, bits=SeededBits(SEED))
    assert finding.sees.startswith("ε ≥ ")
    assert setting.case.epsilon < finding.detectable < 3 * setting.case.epsilon


def test_a_weight_rounded_up_is_seen_without_tolerance():
    case = _ranked(4, 2, "two-level")
    [mutant] = [m for m in AUDITS["gallery"].mutants if m.name == "larger weight rounded up"]
    found = mutant.distribution(case, (0, 1, 2, 5))
    over = Fraction(max(found), min(found)) - Fraction(math.exp(2))
    assert abs(over) < Fraction(1, 10**14)
    assert [finding.passed for finding in exact_gate(mutant, case)] == [False, True]


def test_distributions_by_hand():
    half = Fraction(1, 2)
    assert distributions.by_rank([half, half / 2, half / 2], (5, 0, 5)) == (half / 2, half, half / 2)
    first, last = distributions.flips(2, 1.0)  # the second is only given when it comes first and is taken
    assert math.isclose(last, math.exp(-1) / 2)
    assert math.isclose(first + last, 1)
    coins = [(half, half), (Fraction(1, 4), Fraction(3, 4))]
    assert distributions.independent_draws(coins)[0, 1] == Fraction(3, 8)
    assert distributions.single_draw(coins) == {
        (0, 0): Fraction(1, 4),
        (0, 1): Fraction(1, 4),
        (1, 0): 0,
        (1, 1): half,
    }
    thirds = distributions.kept_with(2.0, 3, 1)
    assert thirds == (Fraction(1, 4), half, Fraction(1, 4))


def test_faces_for_answers_by_hand():
    """Two faces of each of gender and age, not all of them; the last one's label is wrong."""
    case = _answered("gender=2,age=1", ((0, 0), (1, 2), (1, 3), (0, 4), (1, 4)))
    looks = [look[:2] for look in case.gallery.looks]
    assert looks == [(0, 1)] * 2 + [(0, 2)] * 2 + [(0, 3)] * 2 + [(1, 0)] * 2 + [(1, 1)] * 2
    assert distributions.faces_for(case, (0, 0)) == distributions.faces_for(case, (0, 1)) == (0, 1)
    assert distributions.faces_for(case, (1, 0)) == (6, 7)
    assert distributions.faces_for(case, (1, 3)) == (8,)


def test_what_may_be_seen_with_glasses_by_hand():
    """Two faces, of which one itself looks like glasses: both are shown without, or in four styles."""
    case = _answered("glasses=1", each=1)
    assert [look[0] for look in case.gallery.looks] == [0, 1]
    assert distributions.shown_for(case, (0,)) == (0, 1)
    assert sorted(distributions.shown_for(case, (1,))) == list(range(2, 10))
    assert case.outcomes == 10
    true = distributions.written_answers(case, (1, 0))
    assert sum(true[:2]) == pytest.approx(1 / (1 + math.e))
    assert {round(float(chance), 12) for chance in true[2:]} == {round(math.e / (1 + math.e) / 8, 12)}


def test_what_is_no_face_of_the_gallery_is_told(monkeypatch: pytest.MonkeyPatch):
    case = AUDITS["gallery"].levels["quick"].exact[0]
    rows = np.array([(0, 1, 2, 5)] * 3)
    assert set(case.draw(rows, SeededBits(1)).tolist()) <= {0, 1, 2, 3}
    right = Gallery._draw
    monkeypatch.setattr(Gallery, "_draw", lambda self, crops, bits: right(self, crops, bits) ^ 64)
    assert case.draw(rows, SeededBits(1)).tolist() == [-1] * 3


def test_a_mutant_that_is_not_wrong_lives():
    """Mutants die of what is wrong with them. Ten gates draw: fails with probability 1e-8 at most."""
    for entry in AUDITS.values():
        same = wrong("right", entry.intact.distribution)
        checks = entry.checks(entry.levels["quick"], lambda stream: SeededBits(SEED, stream))
        assert not [*entry.killers(same, [check for check in checks if check.suits(same)])]


# Faults in the code itself


def test_weights_of_a_larger_budget_are_seen(monkeypatch: pytest.MonkeyPatch):
    right = RankChoice.weights.fget

    def more(self):
        return right(RankChoice(count=self.count, epsilon=self.epsilon * 6 / 5, law=self.law, near=self.near))

    monkeypatch.setattr(RankChoice, "weights", property(more))
    monkeypatch.setattr(
        "dpveil.mechanisms.choice.rank_choice.RankChoice.probabilities",
        property(lambda self: tuple(Fraction(w, sum(more(self))) for w in more(self))),
    )
    assert {"exact", "fit", "same"} <= broken("gallery")


def test_a_choice_with_more_than_its_own_budget_is_seen(monkeypatch: pytest.MonkeyPatch):
    """The weights are right, but not for this ε."""

    def choice(self):
        return RankChoice(count=len(self._faces), epsilon=self.epsilon * 2, law=str(self.law), near=self.near)

    monkeypatch.setattr(Gallery, "_choice", property(choice))
    assert broken("gallery") == {"fit", "bound"}


def test_ties_in_another_order_are_seen(monkeypatch: pytest.MonkeyPatch):
    """The last of equals first: as private, but another distribution than the one that is written."""
    right = RankChoice.choose
    monkeypatch.setattr(
        RankChoice,
        "choose",
        lambda self, distances, bits: self.count - 1 - right(self, distances[:, ::-1], bits),
    )
    assert broken("gallery") == {"fit"}


def test_budgets_that_are_not_divided_are_seen(monkeypatch: pytest.MonkeyPatch):
    right = Attributes.responses.fget

    def undivided(self):
        total = sum(budget for _, budget in self.costs)
        return {n: RandomisedResponse(epsilon=total, values=r.values) for n, r in right(self).items()}

    monkeypatch.setattr(Attributes, "responses", property(undivided))
    assert broken("attributes") == {"same", "exact", "fit", "bound"}


def test_one_draw_for_all_attributes_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = RandomisedResponse.draw
    monkeypatch.setattr(
        RandomisedResponse, "draw", lambda self, true, bits: right(self, true, SeededBits(SEED))
    )
    assert "fit" in broken("attributes")


def test_a_face_that_is_not_drawn_evenly_is_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attributes_file, "evenly", lambda faces, bits: int(faces[0]))
    assert broken("attributes") == {"fit"}


def test_a_face_chosen_by_the_crop_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = Attributes._draw

    def nearest(self, crops, bits):
        """Shows the first face of the pair to dark crops, and the second to bright ones."""
        shown = right(self, crops, bits)
        pairs = shown[:, 0, -1, 0] // 2 * 2 + (crops[:, 0, 2, 0] > 100)
        return self.gallery.held.faces[pairs]

    monkeypatch.setattr(Attributes, "_draw", nearest)
    assert broken("attributes") == {"fit", "bound"}
