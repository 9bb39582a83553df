"""Plans: the promise follows from the settings, and what is nonsense is refused before a photo is read."""

import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_faces import faces, source_of, train

from dpveil.accounting import zcdp_delta, zcdp_rho
from dpveil.codecs import PCA
from dpveil.core.envelope import canonical, checksum, parse
from dpveil.errors import CertificateError, InvalidParameter, NoiseError
from dpveil.noise.bits import SeededBits
from dpveil.synthesis import SetPlan, Simulator, evolve
from dpveil.synthesis.face_variations import FINEST, REPLACED, UNIT, ballot, nearest, shares, tally
from dpveil.synthesis.plan import SHEET, picture_name
from dpveil.synthesis.saving import SetCertificate

CODEC = f"pca 100 sha256:{64 * '0'}"


def plan(**changed):
    return SetPlan(**{"epsilon": 1, "delta": "1e-6", "people": 5000, "codec": CODEC, **changed})


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
    assert plan(people=plan().least_people, candidates=None).chosen == 8
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
    needed = plan().least_people
    assert plan(people=needed).people == needed
    with pytest.raises(InvalidParameter, match=f"fewer than {needed} people"):
        plan(people=needed - 1)


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_paid():
    with pytest.raises(NoiseError):
        plan(epsilon="1e-12", delta="1e-12", candidates=2)
    assert plan(epsilon=10**12, delta="1e-9", candidates=2).variance == 1


def test_parameters_come_back_as_they_were():
    one = plan(epsilon="1/3", candidates=50)
    assert SetPlan.stated(one.parameters()) == one
    with pytest.raises(InvalidParameter, match="are not those"):
        SetPlan.stated({**one.parameters(), "more": 1})
    with pytest.raises(InvalidParameter):
        SetPlan.stated({**one.parameters(), "codec": "/etc/passwd"})


# Votes: every person's ballot is bounded, exact, and nobody else's business.


PHOTOS = st.lists(st.integers(0, 5), max_size=40)


@given(PHOTOS)
def test_a_ballot_is_never_longer_than_its_unit_and_close_to_it(choices):
    own = ballot(np.array(choices, np.int64), 6)
    squared = int((own**2).sum())
    assert own.min() >= 0
    assert squared <= UNIT**2
    assert math.sqrt(squared) >= UNIT - math.sqrt(6) if choices else squared == 0


@given(PHOTOS)
def test_a_ballot_is_what_fractions_say(choices):
    own = ballot(np.array(choices, np.int64), 6).tolist()
    counts = [choices.count(place) for place in range(6)]
    total = sum(count**2 for count in counts)
    for entry, count in zip(own, counts, strict=True):
        share = Fraction(count**2 * UNIT**2, total or 1)
        assert entry**2 <= share < (entry + 1) ** 2


@given(PHOTOS, PHOTOS, PHOTOS)
def test_replacing_a_person_changes_votes_by_no_more_than_the_bound(one, two, other):
    def of(own):
        choices = np.array([*own, *other], np.int64)
        return tally(choices, np.array([0] * len(own) + [1] * len(other), np.int64), 6)

    assert ((of(one) - of(two)) ** 2).sum() <= REPLACED
    assert (of(one) - of(two) == ballot(np.array(one, int), 6) - ballot(np.array(two, int), 6)).all()


def test_distances_are_exact_where_single_precision_is_not():
    """Of two candidates at squared distances of 4 and 1 the nearer one, of squares of about 2·10¹⁰."""
    draws = np.random.default_rng(8)
    for _ in range(40):
        photo = draws.integers(2, FINEST - 1, (1, 4096)).astype(np.int16)
        candidates = np.repeat(photo, 2, axis=0)
        candidates[0, draws.integers(4096)] += 2
        candidates[1, draws.integers(4096)] += 1
        assert nearest(photo, candidates).tolist() == [1]
        assert nearest(photo, candidates[::-1]).tolist() == [0]


def test_votes_are_the_nearest_by_whole_numbers_in_any_company():
    """In groups of any size a photo votes for the same candidate, also where two are equally far away."""
    draws = np.random.default_rng(5)
    photos = draws.integers(0, FINEST + 1, (300, 40)).astype(np.int16)
    candidates = draws.integers(0, FINEST + 1, (50, 40)).astype(np.int16)
    candidates[20:30] = candidates[:10]
    wide, known = photos.astype(object), candidates.astype(object)
    true = [min(range(50), key=lambda k, row=row: (((row - known[k]) ** 2).sum(), k)) for row in wide]
    assert nearest(photos, candidates).tolist() == true
    assert [int(nearest(photos[n : n + 1], candidates)[0]) for n in range(300)] == true


def test_shares_leave_out_what_is_noise_and_are_even_where_all_is():
    assert shares(np.array([10, -3, 30, 2]), 5).tolist() == [0.25, 0, 0.75, 0]
    assert shares(np.array([-1, 4]), 5).tolist() == [0.5, 0.5]


# Certificates of data sets come from anybody: each text is either what dpveil writes, or refused as
# such.


FILES = dict.fromkeys((SHEET, picture_name(1), picture_name(2)), 64 * "a")
PLAN = SetPlan(epsilon="1/3", delta="1e-6", people=9000, pictures=2, codec=f"gan 128 sha256:{64 * '0'}")
ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["../x", "1e-400", "1e999", "NaN", "secure", "face", 64 * "b", "gan 128 sha256:x"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)


def written(**changed: Any) -> str:
    return SetCertificate(**{"plan": PLAN, "bits": "secure", "files": FILES, **changed}).to_text()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [one for key, part in inner for one in places(part, (*path, key))]


PLACES = places(json.loads(written()))


@pytest.mark.parametrize("bits", ["secure", "seeded"])
def test_what_is_written_is_read(bits):
    found = parse(written(bits=bits), SetCertificate)
    assert (found.plan, found.bits, found.files, found.to_text()) == (PLAN, bits, FILES, written(bits=bits))
    assert found.publishable is (bits == "secure")
    assert any("NOT FOR PUBLICATION" in text for text in found.warnings) is (bits == "seeded")


@given(st.sampled_from(PLACES), ODD)
def test_no_value_in_any_place_does_more_than_be_refused(path, value):
    """Checksums are made anew, as whoever edits a file knows how."""
    data = json.loads(written())
    held = data
    for key in path[:-1]:
        held = held[key]
    if held[path[-1]] == value and type(held[path[-1]]) is type(value):
        return
    held[path[-1]] = value
    try:
        text = canonical(data | ({"checksum": checksum(data)} if path != ("checksum",) else {}))
    except ValueError:  # NaN and infinities, which no JSON has
        text = json.dumps(data)
    try:
        found = parse(text, SetCertificate)
    except CertificateError:
        return
    assert found.to_text() == text
    assert path[0] in ("parameters", "files", "tool", "bits")


@pytest.mark.parametrize("path", PLACES, ids=str)
def test_nothing_may_be_missing(path):
    data = json.loads(written())
    held = data
    for key in path[:-1]:
        held = held[key]
    del held[path[-1]]
    data = data if path == ("checksum",) else data | {"checksum": checksum(data)}
    with pytest.raises(CertificateError):
        parse(canonical(data), SetCertificate)


# Figures of the page on synthetic data sets: those of the code, and those that the benchmark recorded.


ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "synthesis.md").read_text(encoding="utf-8")
NO_CODEC = f"gan 128 sha256:{64 * '0'}"


def table(first):
    """Return the cells of the table whose head begins with this cell."""
    part = PAGE[PAGE.index(f"\n| {first} |") + 1 :].partition("\n\n")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    return [lines[0], *lines[2:]]


def test_the_least_numbers_of_people_are_those_of_the_code():
    head, people = table("ε")
    for epsilon, told in zip(head[1:], people[1:], strict=True):
        plan = SetPlan(epsilon=epsilon, delta="1e-6", people=100_000, codec=NO_CODEC)
        assert plan.least_people == int(told)


# Private Evolution with a small codec: reproducible, and drawn to where votes are.


SIDE = 20


@cache
def codec(kind=PCA, channels=3):
    return train(kind, source_of(faces(90, seed=1, canvas=(SIDE, SIDE, channels))))


@pytest.fixture(scope="module")
def simulator():
    return Simulator(codec())


def small_plan(**changed):
    return SetPlan(
        **{"epsilon": 50, "delta": "1e-6", "people": 200, "pictures": 40, "codec": codec(), **changed}
    )


def points(simulator, side):
    """Return the points of photos that all lie to one side of the codes' centre."""
    codes = np.abs(simulator.draw(200, SeededBits(2)))
    return simulator.embed_all(simulator.pictures(side * codes))


def test_the_same_bits_give_the_same_set(simulator):
    photos, people = points(simulator, 1), np.arange(200)
    long = small_plan(rounds=3)
    one, two, other = (evolve(long, simulator, photos, people, SeededBits(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.pictures, two.pictures)
    assert not np.array_equal(one.pictures, other.pictures)
    assert one.pictures.shape == (40, SIDE, SIDE, 3)
    assert [len(votes) for votes in one.votes] == [long.chosen] * 3


def test_variations_turn_about_the_centre(simulator, monkeypatch):
    monkeypatch.setattr(Simulator, "_centre", np.arange(float(simulator.codec.length)))
    codes, fresh = (simulator.draw(3, SeededBits(seed)) for seed in (1, 2))
    for angle, wanted in ((0.0, codes), (math.pi / 2, fresh)):
        assert np.allclose(simulator.vary(codes, angle, SeededBits(2)), wanted)


def test_a_set_is_nearer_to_the_photos_than_to_others(simulator):
    """The middle of 40 pictures lies towards the photos: by chance below 1e-9 in 2 of 12 coordinates."""
    photos, others = points(simulator, 1), points(simulator, -1)
    made = evolve(small_plan(), simulator, photos, np.arange(200), SeededBits(3))
    middle = simulator.embed_all(made.pictures).mean(axis=0)
    away = [np.linalg.norm(middle - them.mean(axis=0)) for them in (photos, others)]
    assert away[0] < 0.7 * away[1]


def test_one_person_with_many_photos_moves_no_more_than_another(simulator):
    """A thousand photos of one person against 199 people with one each."""
    photos = np.concatenate([points(simulator, -1)[:199], np.repeat(points(simulator, 1)[:1], 1000, axis=0)])
    people = np.concatenate([np.arange(199), np.full(1000, 199)])
    made = evolve(small_plan(rounds=1), simulator, photos, people, SeededBits(4))
    alone = evolve(small_plan(rounds=1), simulator, photos[:200], people[:200], SeededBits(4))
    assert np.array_equal(made.votes[0], alone.votes[0])


def test_numbers_of_people_beyond_the_plan_are_refused(simulator):
    photos = points(simulator, 1)
    for people in (np.arange(200) + 1, np.arange(200) - 1, np.arange(100)):
        with pytest.raises(InvalidParameter, match="people"):
            evolve(small_plan(), simulator, photos, people, SeededBits(1))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.astype(np.float64),
        lambda rows: rows.astype(np.int64),
        lambda rows: rows - np.int16(5000),
        lambda rows: rows + np.int16(5000),
        lambda rows: rows[:, :-1],
        lambda rows: rows.ravel(),
        lambda rows: rows.tolist(),
    ],
)
def test_what_is_no_point_is_refused(simulator, change):
    """With other numbers than whole ones in range, a vote may depend on the photos of others."""
    with pytest.raises(InvalidParameter, match="photos"):
        evolve(small_plan(), simulator, change(points(simulator, 1)), np.arange(200), SeededBits(1))


def test_a_picture_votes_alike_alone_and_among_others(simulator):
    crops = faces(20, seed=8, canvas=(SIDE, SIDE, 3))
    together = simulator.embed_all(crops)
    assert all(
        np.array_equal(simulator.embed(crop)[0], row) for crop, row in zip(crops, together, strict=True)
    )
    assert together.min() >= 0


def test_bits_are_required(simulator):
    with pytest.raises(InvalidParameter, match="bits"):
        evolve(small_plan(), simulator, points(simulator, 1), np.arange(200), None)


def test_many_photos_count_as_much_as_one():
    choices, people = np.array([0] * 1000 + [1]), np.array([0] * 1000 + [1])
    assert tally(choices, people, 2).tolist() == [UNIT, UNIT]
    assert tally(choices[::-1], people[::-1], 2).tolist() == [UNIT, UNIT]
