"""Active appearance models: shapes that are planted are found again, and textures do not bypass the code."""

from __future__ import annotations

import numpy as np
import pytest
from made_faces import CARD, LENGTH, PLACES, faces, marks, source_of, train

from dpveil.codecs import AAM
from dpveil.codecs.aam import STAGES
from dpveil.errors import InvalidParameter, ModelError, UsageError
from dpveil_train import train_aam

CANVAS = (32, 28, 3)


@pytest.fixture(scope="module")
def model():
    """A model of faces large enough to have a shape: 3 coordinates of it, 21 of texture."""
    return train(AAM, source_of(faces(160, seed=5, canvas=CANVAS)), length=24)


@pytest.fixture(scope="module")
def others():
    return faces(40, seed=6, canvas=CANVAS)


def away(shapes, crops):
    """Root mean squared distance from where crops were drawn, in pixels."""
    return np.sqrt(((shapes - marks(crops)) ** 2).sum(axis=2).mean())


def test_a_planted_shape_is_found_in_faces_that_were_not_trained_on(model, others):
    """The mean shape, which is what is found where nothing is learned, misses more than a pixel."""
    found = model.space.shapes(model.encode(others)[:, : model.of_shape])
    mean = np.repeat(model.space.mesh.rest[None], len(others), axis=0)
    assert away(mean, others) > 1
    assert away(found, others) < 0.45


def test_every_regression_helps_and_there_is_a_fixed_number(model, others):
    errors = [
        away(model.space.shapes(model.space.fit(others, model.steps[:count])), others)
        for count in range(STAGES + 1)
    ]
    assert len(model.steps) == STAGES
    assert errors[1] < 0.6 * errors[0]
    assert errors[-1] <= errors[1]


def test_a_face_that_is_moved_has_another_shape_and_nearly_the_same_texture(model, others):
    shifted = np.roll(others, 1, axis=2)
    codes, moved = model.encode(others), model.encode(shifted)
    shapes, new = (model.space.shapes(each[:, : model.of_shape]) for each in (codes, moved))
    assert abs((new - shapes)[..., 0].mean() - 1) < 0.35
    assert abs((new - shapes)[..., 1].mean()) < 0.2
    spread = codes[:, model.of_shape :].std(axis=0).max()
    assert np.abs(moved - codes)[:, model.of_shape :].mean() < 0.5 * spread


def test_shape_moves_the_picture_and_texture_does_not(model):
    """Of a mean face, decoded: along the first component of shape the eyes go where the landmarks go."""
    box = model.statistics.bounds()
    codes = np.zeros((2, model.length))
    codes[:, 0] = box.low[0] / 2, box.high[0] / 2
    seen = model.decode(codes)
    shapes = model.space.shapes(codes[:, : model.of_shape])
    again = model.space.shapes(model.encode(seen)[:, : model.of_shape])
    planted, found = shapes[1] - shapes[0], again[1] - again[0]
    assert np.sqrt(((planted - found) ** 2).mean()) < 0.35 * np.sqrt((planted**2).mean())


@pytest.mark.parametrize("seed", range(3))
def test_any_code_in_the_box_and_beyond_has_a_picture(model, seed):
    """Noise of the size of the box: no triangle is turned over, every pixel of a picture is its own."""
    rng = np.random.default_rng(seed)
    box = model.statistics.bounds()
    codes = np.concatenate(
        [rng.uniform(box.low, box.high, (20, model.length)), rng.choice([-1e300, 1e300], (20, model.length))]
    )
    seen = model.decode(codes)
    assert seen.shape == (40, *CANVAS)
    assert (seen.std(axis=(1, 2)) > 1).all()


def test_column_energy_of_shape_is_its_linearisation_at_the_mean_face(model):
    """Against differences of the decoder, whose levels are whole numbers: a fifth, for interpolation."""
    box = model.statistics.bounds()
    for m in range(model.of_shape):
        step = np.zeros((2, model.length))
        step[:, m] = np.array([-1, 1]) * min(-box.low[m], box.high[m]) / 3
        a, b = model.decode(step).astype(float)
        added = (np.sum((a - b) ** 2) - a.size / 6) / np.ptp(step[:, m]) ** 2
        assert added == pytest.approx(model.statistics.column_energy[m], rel=0.2)


def test_code_is_of_one_crop_alone(model, others):
    together = model.encode(others)
    alone = np.concatenate([model.encode(others[i : i + 1]) for i in range(len(others))])
    assert np.allclose(together, alone, atol=1e-2)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_pictures_of_nothing_have_a_code_within_reach(model, level):
    """Whatever the crop shows, nothing is refused, which would tell of it, and shapes stay those of faces."""
    noise = np.random.default_rng(1).integers(0, 256, CANVAS)
    crops = np.stack([np.full(CANVAS, level), noise]).astype(np.uint8)
    codes = model.encode(crops)
    assert np.isfinite(codes).all()
    low, high = model.space.reach
    wild = model.space.fit(crops, 1000 * model.steps)
    for shape in (codes[:, : model.of_shape], wild):
        assert ((shape >= low) & (shape <= high)).all()


def test_crops_without_sure_landmarks_are_left_out():
    crops = faces(60, seed=5)
    wild = np.random.default_rng(1).integers(0, 256, (20, *crops.shape[1:])).astype(np.uint8)
    mixed = np.concatenate([crops[:30], wild, crops[30:]])

    def unsure(batch):
        known = [crop.tobytes() in PLACES for crop in batch[..., 1]]
        found = np.full((len(batch), 21, 2), np.nan)
        if any(known):
            found[known] = marks(batch[known])
        return found

    kind = {"card": CARD, "seed": 3, "length": LENGTH}
    model = train_aam(source_of(mixed, 16), landmarks=unsure, **kind)
    plain = train_aam(source_of(crops, 16), landmarks=marks, **kind)
    assert model.card.settings["images_with_landmarks"] == 60
    assert np.allclose(model.space.mesh.rest, plain.space.mesh.rest)
    assert np.allclose(model.statistics.quantiles, plain.statistics.quantiles, rtol=1e-2, atol=0.5)


def test_five_landmarks_or_none_are_refused(crops):
    with pytest.raises(UsageError, match="68 landmarks") as refusal:
        train_aam(source_of(crops), card=CARD, seed=3, length=LENGTH)
    assert "training.landmarks.Finder" in refusal.value.hint
    with pytest.raises(InvalidParameter, match="landmarks = 5 are fewer than 12"):
        train(AAM, source_of(crops), landmarks=lambda batch: marks(batch)[:, :5])


def test_shapes_that_do_not_vary_are_refused(crops):
    with pytest.raises(InvalidParameter, match="length = 8 asks for 1 components of shape"):
        train(AAM, source_of(crops), landmarks=lambda batch: np.repeat(marks(crops[:1]), len(batch), axis=0))
    with pytest.raises(InvalidParameter, match="length = 1 is too short"):
        train(AAM, source_of(crops), length=1)


def wrong(tensors, change):
    if change == "shape":
        tensors["basis"] = tensors["basis"][:, :-1]
    elif change == "points":
        tensors["rest"] = tensors["rest"].ravel()
    elif change == "reach":
        tensors["reach"] = tensors["reach"][:, :-1]
    elif change == "nan":
        tensors["steps"][0, 0, 0] = np.nan
    elif change == "regressions":
        tensors["steps"] = tensors["steps"][:, :, 1:]
    elif change == "triangles":
        tensors["triangles"] = tensors["triangles"][:-1]
    elif change == "texture":
        tensors["texture.mean"] = tensors["texture.mean"][:-1]
    elif change == "apart":
        tensors["apart"] = -tensors["apart"]
    else:
        tensors["quantiles"] = tensors["quantiles"][..., 1:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("shape", "do not fit together"),
        ("points", "do not fit together"),
        ("reach", "do not fit together"),
        ("nan", "not finite"),
        ("regressions", "regressions do not fit"),
        ("triangles", "do not cover"),
        ("texture", "do not fit its canvas"),
        ("quantiles", "quantiles"),
        ("apart", "distances"),
    ],
)
def test_files_that_do_not_fit_are_refused(model, change, words):
    tensors = {name: value.copy() for name, value in model.tensors().items()}
    wrong(tensors, change)
    with pytest.raises(ModelError, match=words):
        AAM.of_file({"canvas": CANVAS}, tensors, CARD)
