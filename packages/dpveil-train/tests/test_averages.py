"""Averages of faces: warped where they should be, sharp, and without what one alone has."""

from __future__ import annotations

from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from made_faces import faces

from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import columns_of
from dpveil.noise.bits import SeededBits
from dpveil_train import contributors
from dpveil_train.averages import Mesh, average
from dpveil_train.contributors import (
    MOST_SPOT,
    Candidates,
    Groups,
    bridge,
    clear,
    fit_to_average,
    likeness_cuts,
    spot,
    turn_of,
)
from dpveil_train.galleries import UNSURE, fit_rows, worn

SIDE = 128
PLAIN = np.array([[x, y] for y in (30, 50, 70, 90) for x in (25, 50, 75, 100)], np.float64)


def dots(shape):
    """A grey crop with a bright spot at each landmark, and nothing else."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    away = ((x[..., None] - shape[:, 0]) ** 2 + (y[..., None] - shape[:, 1]) ** 2).min(axis=2)
    level = 60 + 150 * np.exp(-away / 6)
    return np.repeat(level[..., None], 3, axis=2).astype(np.uint8)


def moved(count, seed, far=3.0):
    rng = np.random.default_rng(seed)
    return PLAIN + rng.uniform(-far, far, (count, *PLAIN.shape))


def test_a_face_of_the_meshs_own_shape_stays_as_it_is():
    crop = faces(1, seed=1, canvas=(SIDE, SIDE, 3))[0]
    assert np.abs(Mesh.over(PLAIN, SIDE).warp(crop, PLAIN) - crop).max() <= 1


def test_landmarks_are_moved_to_those_of_the_mesh():
    mesh = Mesh.over(PLAIN, SIDE)
    for shape in moved(4, seed=2):
        crop = dots(shape)
        before, after = crop[..., 0].astype(float), mesh.warp(crop, shape)[..., 0]
        at = PLAIN.astype(int)
        assert after[at[:, 1], at[:, 0]].min() > 180
        assert before[at[:, 1], at[:, 0]].min() < 120  # they were somewhere else


def test_an_average_is_as_sharp_as_its_faces_and_lies_at_their_mean_shape():
    shapes = moved(10, seed=3)
    crops = np.stack([dots(shape) for shape in shapes])
    face, plain = average(crops, shapes), crops.mean(axis=0)
    at = np.rint(shapes.mean(axis=0)).astype(int)
    assert face[at[:, 1], at[:, 0], 0].min() > 190
    assert plain[at[:, 1], at[:, 0], 0].max() < 170
    assert face.std() > 1.3 * plain.std()


def test_what_one_face_alone_has_leaves_no_trace():
    shapes = np.repeat(PLAIN[None], 10, axis=0)
    crops = np.repeat(faces(1, seed=4, canvas=(SIDE, SIDE, 3)), 10, axis=0)
    clean = average(crops, shapes)
    crops[3, 60:70, 40:90] = (255, 0, 90)
    marked = average(crops, shapes).astype(int)
    assert np.abs(marked - clean).max() <= 8  # the face's tone is evened out, and no more
    two = crops.copy()
    two[5, 60:70, 40:90] = (255, 0, 90)
    assert np.abs(average(two, shapes).astype(int) - clean).max() > 8


def test_every_other_face_counts():
    """Eight of ten at each place: an average is no copy of any one."""
    shapes = np.repeat(PLAIN[None], 10, axis=0)
    crops = faces(10, seed=5, canvas=(SIDE, SIDE, 3))
    face = average(crops, shapes).astype(float)
    for one in range(10):
        other = crops.copy()
        other[one] = faces(1, seed=50 + one, canvas=(SIDE, SIDE, 3))[0]
        change = np.abs(average(other, shapes) - face).mean()
        assert 0.1 < change < 0.6 * np.abs(crops[one] - face).mean()


def lines(count, seed):
    """Crops of one level, each with noise of its own, which no average keeps."""
    noise = np.random.default_rng(seed).normal(0, 12, (count, SIDE, SIDE, 1))
    return np.clip(120 + noise + np.zeros(3), 0, 255).astype(np.uint8)


def fine(face):
    """The finest detail of a face."""
    grey = face.astype(np.float32).mean(axis=2)
    return grey - cv2.GaussianBlur(grey, (0, 0), 1.3)


def test_detail_is_given_back_and_no_face_is_seen_in_more_than_a_fifth_of_it():
    shapes, crops = np.repeat(PLAIN[None], 10, axis=0), lines(10, seed=8)
    plain, detailed = average(crops, shapes), average(crops, shapes, SeededBits(2))
    usual = fine(crops[0]).std()
    assert fine(plain).std() < 0.6 * usual
    assert 0.6 * usual < fine(detailed).std() < 1.2 * usual
    given = (detailed.astype(np.float32) - plain).mean(axis=2)
    tiles = given.reshape(16, 8, 16, 8).transpose(0, 2, 1, 3).reshape(256, 64)
    own = [fine(crop).reshape(16, 8, 16, 8).transpose(0, 2, 1, 3).reshape(256, 64) for crop in crops]
    alike = np.stack([(tiles * one).sum(axis=1) for one in own]).argmax(axis=0)
    assert np.bincount(alike, minlength=10).max() < 256 / 5
    assert not np.array_equal(detailed, average(crops, shapes, SeededBits(3)))
    assert np.array_equal(detailed, average(crops, shapes, SeededBits(2)))


# Who may contribute


def shape68(turn=0.0):
    """A made face's landmarks: what the rules read, the rest at the middle of the face."""
    shape = np.full((68, 2), 64.0)
    shape[2], shape[14], shape[30] = (20, 70), (108, 70), (64 + 44 * np.tanh(turn / 2), 75)
    shape[39], shape[42], shape[27], shape[28] = (50, 40), (78, 40), (64, 40), (64, 50)
    return shape


def test_crops_in_grey_or_blurred_are_not_clear():
    crop = faces(1, seed=6, canvas=(SIDE, SIDE, 3))[0]
    assert clear(crop)
    assert not clear(np.repeat(crop.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8))
    assert not clear(cv2.GaussianBlur(crop, (0, 0), 3))


@pytest.mark.parametrize("turn", [-1.5, -0.4, 0.0, 0.7])
def test_turns_are_measured_from_the_noses_place(turn):
    assert np.isclose(turn_of(shape68(turn)[None])[0], turn)
    crop = cv2.GaussianBlur(faces(1, seed=6, canvas=(SIDE, SIDE, 3))[0], (0, 0), 2)
    assert fit_to_average(crop, shape68(turn), 0.01, 1.0) == (abs(turn) < 0.8)


def test_unsure_faces_and_glasses_are_left_out():
    crop = cv2.GaussianBlur(faces(1, seed=6, canvas=(SIDE, SIDE, 3))[0], (0, 0), 2)
    assert fit_to_average(crop, shape68(), 0.01, 1.0)
    assert not fit_to_average(crop, shape68(), 0.031, 1.0)
    assert not fit_to_average(crop, shape68(), np.nan, 1.0)
    assert not fit_to_average(crop, shape68(), 0.01, 0.4)
    glasses = crop.copy()
    glasses[44:47, 30:100] = 10
    assert bridge(glasses, shape68()) > 3 * bridge(crop, shape68())
    assert not fit_to_average(glasses, shape68(), 0.01, 1.0)
    off = shape68()
    off[[39, 42, 27, 28]] = -50
    assert not fit_to_average(crop, off, 0.01, 1.0)


def test_marks_between_the_brows_are_left_out():
    crop = np.full((SIDE, SIDE, 3), 150, np.uint8)
    shape = shape68()
    shape[21], shape[22], shape[36], shape[45] = (58, 36), (70, 36), (36, 44), (92, 44)
    marked, wide = crop.copy(), crop.copy()
    cv2.circle(marked, (64, 30), 2, (120, 10, 20), -1)
    cv2.circle(wide, (64, 30), 30, (120, 10, 20), -1)  # a shadow, no mark
    assert spot(marked, shape) > MOST_SPOT > spot(crop, shape)
    assert spot(wide, shape) < MOST_SPOT
    shape[[21, 22]] = -90
    assert spot(marked, shape) == 0


def test_beards_and_glasses_are_read_where_they_are_not_labelled():
    scores = np.zeros((4, 4), np.float32)
    scores[:, 0], scores[:, 3] = (-3, 3, 0, 3), (-3, 3, 0, -3)  # glasses no, and beard yes
    values = {"glasses": ("no", "yes"), "beard": ("no", "yes")}
    model = SimpleNamespace(
        values=values, columns=columns_of(values), scores=lambda crops: scores[: len(crops)]
    )
    crops, labels = np.zeros((4, 1, 1, 3), np.uint8), [{}, {}, {}, {"beard": 1, "glasses": 1}]
    found = worn(model, [crops], labels)
    assert found["glasses"].tolist() == [1, 0, UNSURE, 1]
    assert found["beard"].tolist() == [0, 1, UNSURE, 1]
    del values["beard"]
    with pytest.raises(InvalidParameter, match="is not what the model reads"):
        worn(model, [crops], labels)


# Which go together


@pytest.fixture(scope="module")
def candidates():
    """Sixty faces in three cells; the second half of each repeats the people of the first."""
    rng = np.random.default_rng(7)
    people = rng.normal(size=(30, 128))
    people = np.concatenate([people, people + 0.001])
    shapes = np.stack([shape68(turn) for turn in rng.uniform(-0.2, 0.2, 60)])
    shapes[55:] = shape68(0.7)
    cells = np.tile(np.arange(30) % 3, 2)
    return Candidates(
        faces(60, seed=8, canvas=(SIDE, SIDE, 3)), shapes, people, cells, np.full(60, 1.0), np.zeros(60)
    )


def test_contributors_are_ten_different_people_of_one_cell(candidates):
    everyone = np.arange(60)
    for centre in (0, 7, 50):
        members = candidates.neighbours_of(centre, everyone)
        assert members[0] == centre
        assert len(set(members.tolist())) == 10
        assert len(set(candidates.cells[members].tolist())) == 1
        assert len({int(member) % 30 for member in members}) == 10  # nobody twice
    assert candidates.neighbours_of(0, everyone[:24]) is None  # eight of its cell
    assert candidates.neighbours_of(58, everyone) is None  # too few are turned that far


def test_sets_use_nobody_often_share_little_and_take_cells_in_turn(candidates):
    cells = np.arange(60) % 2
    loose = Candidates(
        candidates.crops, candidates.shapes, candidates.embeddings, cells, np.full(60, 1e-9), np.zeros(60)
    )
    groups, kept = Groups(loose, 3), []
    for members in groups:
        groups.keep(members)
        kept.append(members)
    assert len(kept) >= 6
    assert groups.used.max() <= contributors.MOST_USES
    assert np.array_equal(np.bincount(np.concatenate(kept), minlength=60), groups.used)
    assert [int(cells[members[0]]) for members in kept[:4]] == [0, 1, 0, 1]
    for number, members in enumerate(kept):
        assert all(len({*members.tolist()} & {*old.tolist()}) <= 5 for old in kept[:number])
    again = Groups(loose, 3)
    first = next(iter(again))
    assert np.array_equal(first, kept[0])
    unwanted = sum(1 for _ in Groups(loose, 3))
    assert unwanted <= 60  # refused sets are not counted, and do not come back


def test_cuts_are_quantiles_of_pairs_of_a_group():
    rng = np.random.default_rng(1)
    embeddings = rng.normal(size=(40, 128))
    groups = np.repeat([3, 5], [25, 15])
    cuts = likeness_cuts(embeddings, groups, 0.1)
    for group in (3, 5):
        own = embeddings[groups == group]
        pairs = [np.linalg.norm(a - b) for i, a in enumerate(own) for b in own[:i]]
        assert np.allclose(cuts[groups == group], np.quantile(pairs, 0.1))
    assert likeness_cuts(embeddings[:1], groups[:1], 0.1).tolist() == [0]


def test_features_tell_classes_apart_and_turns():
    """Two classes and a turn, each in a pixel of its own, beside one that is far louder than both."""
    rng = np.random.default_rng(2)
    count = 900
    classes, turns = rng.integers(0, 2, count), rng.normal(0, 0.3, count)
    pixels = rng.normal(0, 30, (count, 300)).astype(np.float32)
    pixels[:, 0] += 120 * classes
    pixels[:, 1] += 300 * turns
    pixels[:, 2] *= 20
    rows = fit_rows(pixels[:600], classes[:600], np.arange(500), turns[:500])
    assert rows.shape == (2, 300)
    assert np.array_equal(rows, rows.astype(np.float16))
    found = pixels[600:] @ rows.T
    assert np.abs(rows[:, 2]).max() < 0.01
    middle = found[:, 0].mean()
    right = ((found[:, 0] > middle) == classes[600:]).mean()
    assert max(right, 1 - right) > 0.8
    assert abs(np.corrcoef(found[:, 1], turns[600:])[0, 1]) > 0.7
    assert (
        len(fit_rows(pixels[:600], classes[:600], np.arange(50), turns[:50])) == 1
    )  # too few to learn turns
