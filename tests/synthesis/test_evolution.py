"""Private Evolution with a small codec: reproducible, and drawn to where votes are."""

from functools import cache

import numpy as np
import pytest
from made_faces import faces, source_of, train

from dpveil.codecs import PCA, Dictionary
from dpveil.errors import InvalidParameter
from dpveil.noise import SeededBits
from dpveil.synthesis import Plan, Simulator, evolve

SIDE = 20


@cache
def codec(kind=PCA, channels=3):
    return train(kind, source_of(faces(90, seed=1, canvas=(SIDE, SIDE, channels))))


@pytest.fixture(scope="module")
def simulator():
    return Simulator(codec())


def plan(**changed):
    return Plan(
        **{"epsilon": 50, "delta": "1e-6", "people": 200, "pictures": 40, "codec": codec(), **changed}
    )


def points(simulator, side):
    """Return the points of photos that all lie to one side of the codes' centre."""
    codes = np.abs(simulator.draw(200, SeededBits(2)))
    return simulator.embedded(simulator.pictures(side * codes))


def test_the_same_bits_give_the_same_set(simulator):
    photos, people = points(simulator, 1), np.arange(200)
    long = plan(rounds=3)
    one, two, other = (evolve(long, simulator, photos, people, SeededBits(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.pictures, two.pictures)
    assert not np.array_equal(one.pictures, other.pictures)
    assert one.pictures.shape == (40, SIDE, SIDE, 3)
    assert [len(votes) for votes in one.votes] == [long.chosen] * 3


def test_a_set_is_nearer_to_the_photos_than_to_others(simulator):
    """The middle of 40 pictures lies towards the photos: by chance below 1e-9 in 2 of 12 coordinates."""
    photos, others = points(simulator, 1), points(simulator, -1)
    made = evolve(plan(), simulator, photos, np.arange(200), SeededBits(3))
    middle = simulator.embedded(made.pictures).mean(axis=0)
    away = [np.linalg.norm(middle - them.mean(axis=0)) for them in (photos, others)]
    assert away[0] < 0.7 * away[1]


def test_one_person_with_many_photos_moves_no_more_than_another(simulator):
    """A thousand photos of one person against 199 people with one each."""
    photos = np.concatenate([points(simulator, -1)[:199], np.repeat(points(simulator, 1)[:1], 1000, axis=0)])
    people = np.concatenate([np.arange(199), np.full(1000, 199)])
    made = evolve(plan(rounds=1), simulator, photos, people, SeededBits(4))
    alone = evolve(plan(rounds=1), simulator, photos[:200], people[:200], SeededBits(4))
    assert np.array_equal(made.votes[0], alone.votes[0])


def test_numbers_of_people_beyond_the_plan_are_refused(simulator):
    photos = points(simulator, 1)
    for people in (np.arange(200) + 1, np.arange(200) - 1, np.arange(100)):
        with pytest.raises(InvalidParameter, match="people"):
            evolve(plan(), simulator, photos, people, SeededBits(1))


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
        evolve(plan(), simulator, change(points(simulator, 1)), np.arange(200), SeededBits(1))


def test_bits_are_required(simulator):
    with pytest.raises(InvalidParameter, match="bits"):
        evolve(plan(), simulator, points(simulator, 1), np.arange(200), None)


def test_variations_have_the_spread_of_faces_of_nobody(simulator):
    """The variances of 4000 variations are those of 4000 drawn codes within 15 %: 6.7 deviations."""
    drawn = simulator.draw(4000, SeededBits(5))
    for angle in (0.3, 1.0, np.pi / 2):
        varied = simulator.vary(drawn, angle, SeededBits(6))
        assert (np.abs(varied.var(axis=0) / drawn.var(axis=0) - 1) < 0.15).all()
    assert np.allclose(simulator.vary(drawn, 0.0, SeededBits(6)), drawn)


def test_a_picture_votes_alike_alone_and_among_others(simulator):
    crops = faces(20, seed=8, canvas=(SIDE, SIDE, 3))
    together = simulator.embedded(crops)
    assert all(
        np.array_equal(simulator.embed(crop)[0], row) for crop, row in zip(crops, together, strict=True)
    )
    assert together.min() >= 0


def test_codecs_that_draw_no_faces_are_refused():
    for other in (codec(Dictionary), codec(channels=1)):
        with pytest.raises(InvalidParameter, match="draws no faces"):
            Simulator(other)
