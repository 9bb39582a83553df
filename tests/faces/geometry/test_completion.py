"""A made network in place of the one that completes heads: it shows what it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dpveil.faces.geometry.completion import Completion
from geometry_made import textured
from hair_made import flat_hair

from dpveil.assets import Card, save
from dpveil.assets.engines import OnnxRuntime, OpenCV
from dpveil.assets.store import default_path
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box
from dpveil.errors import ModelError
from dpveil.faces.geometry import Frame, Placed, place, recombine
from dpveil.faces.geometry.fill import Telea, fill
from dpveil.faces.geometry.head_frame import OVAL, in_head, inside, pixel_grid
from dpveil.regions.tiling import grow
from tiny_onnx import completion, field, model, node, tensor, value

SIDE = 64
CARD = Card("completion", "made by a test", "any", 0)
TWO = (Box(60, 70, 40, 50), Box(150, 60, 30, 36))


def made(network: bytes = b"", noise: np.ndarray | None = None) -> Completion:
    own = np.zeros((SIDE, SIDE), np.float32) if noise is None else noise
    return Completion(network or completion(side=SIDE), own, flat_hair(), CARD)


@pytest.fixture(scope="module")
def real() -> Completion:
    path = default_path("completion")
    return Completion.load(path)


def heads(
    *boxes: Box, photo: Photo | None = None, frame: Frame | None = None, protect: str = "head"
) -> list[Placed]:
    photo = photo or Photo(np.zeros((200, 260, 3), np.uint8), Grid(8, 8) if protect == "face" else None)
    found = [place(photo, box, landmarks=False, protect=protect, frame=frame) for box in boxes]
    return [replace(one, region=grow(one.region, photo)) for one in found]


def hidden(faces: list[Placed], shape: tuple[int, int] = (200, 260)) -> np.ndarray:
    out = np.zeros(shape, np.bool_)
    for face in faces:
        out[face.region.box.slices] |= True if face.region.mask is None else face.region.mask
    return out


@pytest.mark.parametrize(
    ("which", "boxes", "channels", "protect"),
    [
        ("made", TWO, 1, "head"),
        ("made", TWO, 3, "face"),
        ("made", (Box(0, 0, 40, 50),), 3, "head"),
        ("made", (Box(0, 0, 40, 50),), 3, "box"),
        ("made", (Box(70, 70, 60, 75), Box(95, 80, 60, 75)), 3, "head"),
        ("made", (Box(70, 70, 60, 75), Box(95, 80, 60, 75)), 3, "face"),
        ("real", TWO, 3, "face"),
        ("real", (Box(70, 70, 60, 75), Box(95, 80, 60, 75)), 3, "head"),
    ],
)
def test_no_hidden_pixel_is_read_and_no_other_changes(
    which: str, boxes: tuple[Box, ...], channels: int, protect: str, request: pytest.FixtureRequest
) -> None:
    """Whatever was under the heads, the picture is the same, bit for bit."""
    network = made() if which == "made" else request.getfixturevalue("real")
    image, faces = textured(200, 260, seed=1, channels=channels), heads(*boxes, protect=protect)
    crops = [textured(128, 128, seed=9 + i) for i in range(len(boxes))]
    under = hidden(faces)
    first = recombine(image, faces, crops, filling=network)
    assert first.shape == image.shape
    assert (first[~under] == image[~under]).all()
    for other in (0, 255, textured(200, 260, seed=2, channels=channels)[under]):
        changed = image.copy()
        changed[under] = other
        assert (recombine(changed, faces, crops, filling=network) == first).all()
    assert (recombine(255 - image, faces, crops, filling=network)[under] != first[under]).any()
    assert (recombine(image, faces, crops) != first).any()


def test_the_network_is_shown_the_outside_the_face_and_the_public_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Known colours, two masks that share no pixel, and a quarter of the noise."""
    noise = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) / 1024
    network, seen = made(noise=noise), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    (face,) = heads(TWO[0])
    image = np.full((200, 260, 3), (200, 100, 30), np.uint8)
    recombine(image, [face], [np.full((128, 128, 3), (10, 20, 60), np.uint8)], filling=network)
    ((*colours, known, oval, last),) = (planes[:6] for planes in seen)
    for plane, outside, own in zip(colours, (200, 100, 30), (10, 20, 60), strict=True):
        levels = (plane + 1) * 127.5
        assert np.abs(levels[known > 0] - outside).max() < 0.01
        assert np.abs(levels[oval > 0] - own).max() < 0.01
        assert (plane[(known == 0) & (oval == 0)] == 0).all()
    assert 0.03 < oval.mean() < 0.2
    assert known.mean() > 0.3
    assert not (known * oval).any()
    assert known[SIDE // 2, SIDE // 2] == 0
    assert (last == noise / 4).all()


@pytest.mark.parametrize("shape", [(1, 300), (300, 1), (3, 395), (252, 2)])
@pytest.mark.parametrize("channels", [1, 3])
def test_photos_of_few_rows_or_columns_are_filled(shape: tuple[int, int], channels: int) -> None:
    hole = np.zeros(shape, np.bool_)
    hole[: shape[0] // 2 + 1, : shape[1] // 2 + 1] = True
    filled = fill(np.full((*shape, channels), 90, np.uint8) * ~hole[..., None], hole)
    assert filled.shape == (*shape, channels)
    assert np.abs(filled[hole].astype(int) - 90).max() < 40  # of one row Telea inpainting knows little


def test_a_released_face_lies_where_its_frame_has_it_with_its_detail() -> None:
    """A chequered crop comes out of a large photo sharper than the frame is, at the right place."""
    photo = Photo(np.full((900, 900, 3), 128, np.uint8))
    (face,) = heads(Box(300, 300, 300, 340), photo=photo, frame=Frame(256))
    crop = np.full((256, 256, 3), 128, np.uint8)
    crop[128, 126:131] = crop[126:131, 128] = 255
    out = recombine(photo.image, [face], [crop], filling=made())
    x, y = face.pose.back(np.array([[128.0, 128.0]]))[0].round().astype(int)
    bright = np.argwhere(out[..., 0] > 200)
    assert np.abs(bright.mean(axis=0) - (y, x)).max() < 1.5
    assert out[y, x, 0] > 230
    assert out[y + 6, x + 6, 0] < 140


def test_heads_close_together_all_show_over_what_is_painted_around_them() -> None:
    faces = heads(Box(60, 60, 50, 62), Box(100, 64, 46, 58))
    assert faces[0].region.box.overlaps(faces[1].region.box)
    crops = [np.full((128, 128, 3), colour, np.uint8) for colour in ((220, 20, 20), (20, 20, 220))]
    out = recombine(np.full((200, 260, 3), 128, np.uint8), faces, crops, filling=made()).astype(int)
    for face, strong, weak in zip(faces, (0, 2), (2, 0), strict=True):
        x, y = face.pose.back(np.array([[64.0, 64.0]]))[0].round().astype(int)
        assert out[y, x, strong] > out[y, x, weak] + 100


@pytest.mark.parametrize("size", [3, 400])
def test_tiny_and_huge_heads_are_completed(real: Completion, size: int) -> None:
    image = np.full((4 * size + 9, 4 * size + 9, 3), 90, np.uint8)
    box = Box(3 * size // 2, 3 * size // 2, size, size)
    faces = heads(box, photo=Photo(image))
    out = recombine(image, faces, [np.full((128, 128, 3), 120, np.uint8)], filling=real)
    assert out.shape == image.shape


def test_a_file_keeps_it_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    network, path = made(), tmp_path / "own.safetensors"
    digest = save(network, path)
    again = Completion.load(path)
    assert (again.network, again.digest) == (network.network, digest)
    assert (again.noise == network.noise).all()
    assert "heads" in path.with_suffix(".card.md").read_text(encoding="utf-8")
    wrong = {
        b"no network": "none that completes",
        completion(side=SIDE, gain=float("nan")): "not finite",
        completion(side=SIDE, channels=3): "none that completes",
    }
    for number, (contents, match) in enumerate(wrong.items()):
        save(made(contents), tmp_path / f"{number}.safetensors")
        with pytest.raises(ModelError, match=match):
            Completion.load(tmp_path / f"{number}.safetensors")
    for noise, match in (
        (np.zeros((60, 60)), "64 to 512"),
        (np.zeros((68, 68)), "64 to 512"),
        (np.full((64, 64), 11.0), "noise"),
    ):
        with pytest.raises(ModelError, match=match):
            made(noise=noise.astype(np.float32))


def test_a_network_with_huge_layers_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file: 2000 × 2000 pixels of 40 channels, and shrunk again to the size of the frame."""
    monkeypatch.setattr("dpveil.assets.network.MEMORY", 1 << 29)
    wide = {"kernel_shape": (1, 1), "pads": (977,) * 4}
    nodes = field(1, node("Conv", ("seen", "w"), "wide", **wide))
    nodes += field(1, node("Conv", ("wide", "v"), "painted", kernel_shape=(1, 1), strides=(32, 32)))
    weights = field(5, tensor("w", np.eye(40, 18)[..., None, None]))
    weights += field(5, tensor("v", np.eye(7, 40)[..., None, None]))
    shapes = (value("seen", (1, 18, SIDE, SIDE)),), field(12, value("painted", (1, 7, SIDE, SIDE)))
    with pytest.raises(ModelError, match="none that completes heads") as caught:
        _ = made(model(nodes, weights, *shapes)).tried
    assert "\n" not in str(caught.value)


def test_a_filling_gets_a_photo_without_its_hidden_pixels() -> None:
    image, faces, seen = np.full((200, 260, 3), 77, np.uint8), heads(*TWO), []

    class Watching(Telea):
        def __call__(self, known: np.ndarray, hole: np.ndarray, part: Box) -> np.ndarray:
            seen.append((known.copy(), hole.copy()))
            return super().__call__(known, hole, part)

    recombine(image, faces, [textured(128, 128)] * 2, filling=Watching())
    assert len(seen) >= 1
    for known, hole in seen:
        assert hole.any()
        assert (known[hole] == 0).all()
        assert (known[~hole] == 77).all()


def test_every_engine_paints_nearly_the_same(real: Completion) -> None:
    """Rounding changes where some strands of hair are, so only the mean of all pixels is compared."""
    pixels = pixel_grid(real.side)
    rows = np.linspace(-0.7, 0.5, real.side, dtype=np.float32)
    for number in range(3):
        crop = np.full((real.side, real.side, 3), (180 - 40 * number, 130, 110), np.float32)
        face, out = inside(OVAL, pixels), ~in_head(pixels)
        levels = np.where(face[..., None], crop / 127.5 - 1, out[..., None] * rows[:, None, None])
        planes = [*levels.transpose(2, 0, 1), out, face, 0.25 * real.noise]
        example, _ = real.hair.of(crop, number)
        seen = np.concatenate([np.stack(planes), example])[None].astype(np.float32)
        engines = (OpenCV, OnnxRuntime)[: 1 + OnnxRuntime.installed()]
        first, *others = (engine(real.network, threads=1)(seen)[0] for engine in engines)
        assert first[0, :3].std() > 0.2
        for painted in others:
            assert np.abs(painted - first)[0, :3].mean() * 127.5 < 4


def test_the_same_from_every_thread_and_in_any_order(real: Completion) -> None:
    """A net that is kept says the same as one that is read anew."""
    rng = np.random.default_rng(0)
    seen = [rng.normal(size=(1, 18, real.side, real.side)).astype(np.float32) for _ in range(3)]
    first = [real._run(one) for one in seen]
    again = [real._run(one) for one in reversed(seen)][::-1]
    fresh = Completion(bytes(real.network[:1]) + real.network[1:], real.noise, real.hair, real.card)
    for one, two, three in zip(first, again, map(fresh._run, seen), strict=True):
        assert (one == two).all()
        assert (one == three).all()
