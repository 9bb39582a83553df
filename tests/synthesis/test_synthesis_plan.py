"""Plans: the promise follows from the settings, and what is nonsense is refused before a photo is read."""

from fractions import Fraction

import pytest

from dpveil.accounting import zcdp_delta, zcdp_rho
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.synthesis import Plan
from dpveil.synthesis.simulator import REPLACED

CODEC = f"pca 100 sha256:{64 * '0'}"


def plan(**changed):
    return Plan(**{"epsilon": 1, "delta": "1e-6", "people": 5000, "codec": CODEC, **changed})


@pytest.mark.parametrize("rounds", [1, 2, 7, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-9"), (1, "1e-6"), (8, "1e-5"), ("1/3", "1e-7")])
def test_all_rounds_together_keep_the_promise_and_waste_next_to_nothing(rounds, epsilon, delta):
    one = plan(epsilon=epsilon, delta=delta, rounds=rounds, candidates=10)
    rho = sum((Fraction(REPLACED, 2 * one.variance) for _ in range(rounds)), Fraction(0))
    assert rho == one.rho
    assert zcdp_delta(rho, epsilon) <= Fraction(delta)
    assert rho > zcdp_rho(epsilon, delta) * Fraction(9999, 10_000)
    assert (one.guarantee.epsilon, one.guarantee.delta) == (Fraction(epsilon), Fraction(delta))
    assert one.guarantee.relation.name == "person"


def test_the_rule_for_candidates_is_one_of_public_numbers():
    assert plan(people=5000).chosen == int(5000 / (4 * plan().noise))
    assert plan(people=10**6, delta="1e-9").chosen == 1024
    assert plan(people=plan().needed, candidates=None).chosen == 8
    assert plan(candidates=77).chosen == 77


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"people": 20}, "number of people"),
        ({"delta": "1e-3", "people": 5000}, "delta"),
        ({"epsilon": None}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"epsilon": 0}, "epsilon"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 101}, "rounds"),
        ({"pictures": 10_001}, "pictures"),
        ({"candidates": 10**6}, "candidates"),
        ({"crop": "ear"}, "crop"),
    ],
)
def test_nonsense_is_refused(changed, name):
    with pytest.raises(InvalidParameter) as caught:
        plan(**changed)
    assert caught.value.name == name


def test_the_least_number_of_people_is_one_more_than_is_refused():
    needed = plan().needed
    assert plan(people=needed).people == needed
    with pytest.raises(InvalidParameter, match=f"fewer than {needed} people"):
        plan(people=needed - 1)


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_paid():
    with pytest.raises(NoiseError):
        plan(epsilon="1e-12", delta="1e-12", candidates=2)
    assert plan(epsilon=10**12, delta="1e-9", candidates=2).variance == 1


def test_few_votes_under_much_noise_are_called_faint():
    assert plan(people=100, candidates=100).faint
    assert not plan().faint


def test_parameters_come_back_as_they_were():
    one = plan(epsilon="1/3", candidates=50)
    assert Plan.stated(one.parameters()) == one
    with pytest.raises(InvalidParameter, match="are not those"):
        Plan.stated({**one.parameters(), "more": 1})
    with pytest.raises(InvalidParameter):
        Plan.stated({**one.parameters(), "codec": "/etc/passwd"})
