"""A made network in place of the one that completes heads: it shows what it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from geometry_made import textured
from hair_made import flat_hair

from dpveil.assets import Card, save
from dpveil.assets.engines import OnnxRuntime, OpenCV
from dpveil.assets.store import default_path
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.errors import ModelError
from dpveil.faces.geometry import Frame, Placed, place, recombine
from dpveil.faces.geometry import completion as module
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.fill import Telea, fill
from dpveil.faces.geometry.head import between, inside
from dpveil.faces.geometry.head_frame import OVAL, HeadFrame, in_head, pixel_grid
from dpveil.faces.geometry.layout import neck
from dpveil.faces.geometry.painted import Painted, seen
from dpveil.regions.grow import grow
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


@pytest.mark.parametrize(("protect", "channels"), [("head", 1), ("head", 3), ("face", 3), ("box", 3)])
@pytest.mark.parametrize("which", ["made", "real"])
@pytest.mark.parametrize("boxes", [TWO, (Box(0, 0, 40, 50),), (Box(70, 70, 60, 75), Box(95, 80, 60, 75))])
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


def test_a_completed_head_has_the_grain_of_the_photo() -> None:
    (face,) = heads(Box(90, 60, 60, 75))
    under, crop = hidden([face]), np.full((128, 128, 3), 120, np.uint8)
    found = []
    for spread in (0, 12):
        noise = np.random.default_rng(3).integers(-spread, spread + 1, (200, 260, 1))
        image = (120 + noise * np.ones(3)).astype(np.uint8)
        out = recombine(image, [face], [crop], filling=made()).astype(float)
        found.append(float(np.abs(np.diff(out, axis=1))[under[:, 1:] & under[:, :-1]].mean()))
    assert found[1] > found[0] + 1


@pytest.mark.parametrize("protect", ["head", "face"])
def test_a_completed_head_meets_the_photo(protect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it, what is painted is nearer to the photo beside it."""
    (face,) = heads(Box(90, 60, 60, 75), protect=protect)
    image = np.full((200, 260, 3), (190, 120, 100), np.uint8)
    crop = np.full((128, 128, 3), (170, 125, 100), np.uint8)
    met = recombine(image, [face], [crop], filling=made()).astype(int)
    monkeypatch.setattr("dpveil.faces.geometry.seam.MOST", 0.0)
    apart = recombine(image, [face], [crop], filling=made()).astype(int)
    missed = [np.abs(out - image)[hidden([face])].mean() for out in (met, apart)]
    assert missed[0] < 0.97 * missed[1]


def test_of_an_inner_face_the_network_sees_the_head_that_stays_if_blocks_are_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the region is hardly larger than the oval, nothing is left to paint, and it is not asked."""
    network, seen = made(), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    image, crop = textured(200, 260), textured(128, 128)
    (grown,) = heads(TWO[0], protect="face")
    (oval,) = (place(Photo(image), box, landmarks=False, protect="face") for box in TWO[:1])
    recombine(image, [oval], [crop], filling=network)
    assert not seen
    recombine(image, [grown], [crop], filling=network)
    ((*_, known, own), *_) = (planes[:5] for planes in seen)
    head = in_head(pixel_grid(SIDE))
    assert 0.05 < known[head].mean() < 0.6
    assert not (known * own).any()


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


def test_beyond_the_far_cheek_of_a_turned_face_the_network_paints(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turned head leaves free is neither the face nor its mirror image: there is no mask of a face."""
    network, seen = made(), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    (face,) = heads(TWO[0])
    image = np.full((200, 260, 3), (200, 100, 30), np.uint8)
    for yaw in (0, 40, -40):
        recombine(image, [face], [np.full((128, 128, 3), 90, np.uint8)], filling=network, yaw=yaw)
    ahead, right, left = (planes[4] > 0 for planes in seen)
    assert 0.02 < (ahead & ~right).sum() / ahead.sum() < 0.35
    assert 0.02 < (ahead & ~left).sum() / ahead.sum() < 0.35
    assert not (ahead & ~right & ~left).any()
    assert not (right & ~ahead).any()
    columns = np.arange(SIDE)
    assert columns[(ahead & ~right).any(axis=0)].min() > columns[(ahead & ~left).any(axis=0)].max()


def test_a_turned_face_is_given_where_most_of_a_pixel_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of a pixel at the far cheek is background rather than face, and two thirds are face."""
    network, seen = made(), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    for share in (1 / 3, 2 / 3):
        network.complete(
            np.full((200, 260, 3), 120, np.uint8),
            np.pad(np.ones((60, 60), np.bool_), ((70, 70), (100, 100))),
            Similarity(1.0, 0.0, -66.0, -36.0),
            np.full((128, 128, 3), 90, np.uint8),
            Frame(128),
            turn=lambda crop, share=share: (crop, np.full(crop.shape[:2], share, np.float32)),
        )
    little, most = (planes[4] > 0 for planes in seen)
    assert not little.any()
    assert most[SIDE // 2, SIDE // 2]


@pytest.mark.parametrize("protect", ["head", "face"])
def test_a_new_head_has_hair_of_an_example_and_skin_goes_on_where_one_stays(
    protect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[bool] = []
    go_on = module.continued
    monkeypatch.setattr(
        module, "continued", lambda *each, skin: (called.append(skin), go_on(*each, skin=skin))[1]
    )
    made().complete(
        np.full((200, 260, 3), 120, np.uint8),
        np.pad(np.ones((60, 60), np.bool_), ((70, 70), (100, 100))),
        Similarity(1.0, 0.0, -66.0, -36.0),
        np.full((128, 128, 3), 90, np.uint8),
        Frame(128),
        around=protect == "head",
        number=3,
    )
    assert called == [protect == "face"]


@pytest.mark.parametrize(("yaw", "turned"), [(25.0, 25.0), (25.0, -25.0), (-25.0, 25.0)])
def test_an_example_turned_the_other_way_is_worn_by_a_frame_that_is_mirrored(
    yaw: float, turned: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network sees the mirrored photo and face, and the example as it is; the head is as it was."""
    network, seen = replace(made(), hair=flat_hair(1, yaw=turned)), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    columns = np.linspace(0, 255, 260).astype(np.uint8)
    image = np.repeat(np.tile(columns, (200, 1))[..., None], 3, axis=2)
    painted = [
        network.complete(
            image,
            np.pad(np.ones((60, 60), np.bool_), ((70, 70), (100, 100))),
            Similarity(1.0, 0.0, -66.0, -36.0),
            np.repeat(np.tile(np.arange(0, 256, 2, dtype=np.uint8), (128, 1))[..., None], 3, axis=2),
            Frame(128),
            yaw=yaw,
            number=number,
        )
        for number in (None, 3)
    ]
    assert painted[0] is not None
    assert painted[1] is not None
    guessed, worn = seen
    way = 1 if yaw * turned > 0 else -1
    assert (worn[:6] == guessed[:6, :, ::way]).all()
    assert (worn[0] != guessed[0, :, ::-way]).any()
    assert np.abs(worn[6:10] - guessed[6:10]).max() > 5, "hair ends above the head"
    assert not guessed[10:].any()
    assert (worn[10:] == network.hair.looks[0].mean(axis=(1, 2))[:, None, None]).all()
    assert np.abs(painted[0].levels - painted[1].levels).max() < 0.01


def test_a_frame_beyond_the_photo_shows_its_edge() -> None:
    """As below a head that lies at the edge of the photo."""
    image, hidden = np.full((40, 50, 3), 7, np.uint8), np.zeros((40, 50), np.bool_)
    for x, y in ((-500, 0), (0, -500), (500, 0), (0, 500), (500, 500)):
        light, known = seen(image, hidden, Similarity(1.0, 0.0, float(x), float(y)), SIDE)
        assert (light[known] == 7).all()


@pytest.mark.parametrize("shape", [(1, 300), (300, 1), (3, 395), (252, 2)])
@pytest.mark.parametrize("channels", [1, 3])
def test_photos_of_few_rows_or_columns_are_filled(shape: tuple[int, int], channels: int) -> None:
    hole = np.zeros(shape, np.bool_)
    hole[: shape[0] // 2 + 1, : shape[1] // 2 + 1] = True
    filled = fill(np.full((*shape, channels), 90, np.uint8) * ~hole[..., None], hole)
    assert filled.shape == (*shape, channels)
    assert np.abs(filled[hole].astype(int) - 90).max() < 40  # of one row Telea inpainting knows little


def test_a_neck_is_likely_below_the_chin_and_nowhere_else() -> None:
    more, grid = neck(96), pixel_grid(96)
    assert not more[[0, 1, 3]].any()
    assert (more[2][grid[..., 1] < 0.6] == 0).all()
    assert more[2][(np.abs(grid[..., 0] - 0.5) < 0.05) & (np.abs(grid[..., 1] - 0.72) < 0.02)].min() > 1
    assert more[2][np.abs(grid[..., 0] - 0.5) > 0.12].max() < 0.8


@pytest.mark.parametrize("box", [Box(90, 80, 60, 75), Box(2, 70, 60, 75)])
def test_the_outside_lies_where_it_is_in_the_photo_mirrored_beyond_its_edge(
    monkeypatch: pytest.MonkeyPatch, box: Box
) -> None:
    """Of a photo whose colours are its coordinates; nothing of the head is known, beyond the edge neither."""
    network, seen = made(), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    y, x = np.mgrid[:200, :260]
    image = np.stack([x * 0.9, y * 0.9, 0 * x], axis=-1).astype(np.uint8)
    (face,) = heads(box)
    recombine(image, [face], [textured(128, 128)], filling=network)
    ((right, down, _, known, *_),) = seen
    places = np.stack(np.meshgrid(*2 * [np.arange(float(SIDE))]), axis=-1).reshape(-1, 2)
    wanted = np.abs(between(face.pose, face.frame, HeadFrame(SIDE)).back(places)).reshape(SIDE, SIDE, 2)
    sure = known > 0
    for plane, axis in ((right, 0), (down, 1)):
        levels = (plane + 1) * 127.5 / 0.9
        assert np.abs(levels - wanted[..., axis])[sure].max() < 2.5
    assert sure.sum() > 1000
    assert not (sure & in_head(pixel_grid(SIDE))).any()


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


def test_a_released_face_brings_no_detail_to_where_it_is_not_shown() -> None:
    """Beyond the far cheek of a turned face, the photo is as soft as what the network painted there."""
    levels = np.full((SIDE, SIDE, 3), 128, np.float32)
    crop = np.repeat(np.where(np.indices((256, 256)).sum(axis=0) % 2, 160, 96)[..., None], 3, axis=2)
    shows = np.indices((SIDE, SIDE))[1] < SIDE // 2
    layout = np.zeros((4, SIDE, SIDE), np.float32)
    pose = Similarity(SIDE / 512, 0.0, 0.0, 0.0)
    painted = Painted(levels, pose, levels, crop.astype(np.uint8), Frame(256), layout, shows)
    _, out = painted.on(Box(0, 0, 512, 512), 3)
    rows, left, right = np.s_[226:286], np.s_[200:230], np.s_[272:312]
    assert out[rows, left].std() > 8
    assert np.ptp(out[rows, right]) <= 1


def test_mirrored_beyond_the_photo_and_unknown_where_a_neighbour_is_hidden() -> None:
    network = made()
    faces = heads(Box(0, 60, 40, 50), Box(70, 60, 40, 50))
    image = np.full((200, 260, 3), 200, np.uint8)
    out = recombine(image, faces, [np.full((128, 128, 3), 200, np.uint8)] * 2, filling=network)
    assert out[~hidden(faces)].min() == 200
    assert out.min() >= 110, "no black from beyond the photo, and none from under a head"


def test_heads_close_together_all_show_over_what_is_painted_around_them() -> None:
    faces = heads(Box(60, 60, 50, 62), Box(100, 64, 46, 58))
    assert faces[0].region.box.overlaps(faces[1].region.box)
    crops = [np.full((128, 128, 3), colour, np.uint8) for colour in ((220, 20, 20), (20, 20, 220))]
    out = recombine(np.full((200, 260, 3), 128, np.uint8), faces, crops, filling=made()).astype(int)
    for face, strong, weak in zip(faces, (0, 2), (2, 0), strict=True):
        x, y = face.pose.back(np.array([[64.0, 64.0]]))[0].round().astype(int)
        assert out[y, x, strong] > out[y, x, weak] + 100


def test_of_heads_without_surroundings_the_network_sees_the_face_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A box around a large head leaves a strip of the frame: it is not shown; the person alone is drawn."""
    network, seen = made(completion(side=SIDE, behind=1.0)), []
    run: Callable[[np.ndarray], np.ndarray] = network._run
    monkeypatch.setattr(Completion, "_run", lambda _, planes: (seen.append(planes[0].copy()), run(planes))[1])
    image = np.full((120, 121, 3), 250, np.uint8)
    (face,) = heads(Box(38, 30, 40, 50), photo=Photo(image), protect="box")
    crop = np.full((128, 128, 3), 20, np.uint8)
    out = recombine(image, [face], [crop], filling=network)
    ((*colours, known, oval),) = (planes[:5] for planes in seen)
    assert not known.any()
    assert (np.stack(colours)[:, oval == 0] == 0).all()
    box = face.region.box
    assert 0 < 120 * 121 - box.w * box.h < 0.1 * 120 * 121
    painted = out[box.slices][..., 0].astype(int)
    assert (painted[box.h // 2, box.w // 2 - 3 : box.w // 2 + 3] < 60).all()
    beside = painted[:, : box.w // 4]
    assert beside.min() > 200, "behind the person is the background that the photo continues"


def test_a_head_without_surroundings_stays_in_its_region_if_others_have_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its shoulders shine through at the edge of the region of a larger head before it, as a line."""
    photo = Photo(np.full((300, 300, 3), 128, np.uint8))
    small, large = heads(Box(140, 150, 16, 20), Box(90, 90, 100, 125), photo=photo)
    network, alone = made(), []
    run: Callable[[np.ndarray], np.ndarray] = network._run

    def person(_: Completion, planes: np.ndarray) -> np.ndarray:
        out = run(planes).copy()
        alone.append(not planes[0, 3].any())
        out[0, :3], out[0, 3] = (1.0, 0.0) if alone[-1] else (0.0, 1.0)
        return out

    monkeypatch.setattr(Completion, "_run", person)
    out = recombine(photo.image, [small, large], [np.full((128, 128, 3), 128, np.uint8)] * 2, filling=network)
    assert sorted(alone) == [False, True]
    there = np.zeros((300, 300), np.bool_)
    there[small.region.box.slices] = True
    assert np.abs(out[~there].astype(int) - 128).max() <= 4


def test_shoulders_without_surroundings_go_on_beyond_the_frame_and_up_to_the_edge_of_the_photo() -> None:
    """Whatever is no background is the person: where nothing is, neither filling nor wall shows."""
    (face,) = heads(Box(30, 20, 24, 30), photo=Photo(np.zeros((200, 80, 3), np.uint8)))
    whole = replace(face, region=Region(Box(0, 0, 80, 200)))
    crop = np.full((128, 128, 3), 20, np.uint8)
    out = recombine(np.full((200, 80, 3), 250, np.uint8), [whole], [crop], filling=made())
    assert np.abs(out[190:].astype(int) - 128).max() <= 1
    assert np.abs(out[:, [0, -1]].astype(int) - 128).max() <= 1


def test_shoulders_slope_beside_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a person who is background above the middle of the frame: further down, the further beside it."""
    network = made()
    run: Callable[[np.ndarray], np.ndarray] = network._run

    def half(_: Completion, planes: np.ndarray) -> np.ndarray:
        out = run(planes).copy()
        out[0, 3] = np.arange(SIDE)[:, None] < SIDE // 2
        out[0, :3] = -1
        return out

    monkeypatch.setattr(Completion, "_run", half)
    (face,) = heads(Box(180, 20, 24, 30), photo=Photo(np.zeros((200, 400, 3), np.uint8)))
    whole = replace(face, region=Region(Box(0, 0, 400, 200)))
    crop = np.full((128, 128, 3), 20, np.uint8)
    out = recombine(np.full((200, 400, 3), 250, np.uint8), [whole], [crop], filling=network)
    first = [int(np.argmax(out[:, column].max(axis=1) < 60)) for column in (192, 250, 290)]
    assert first[0] > 20
    assert abs(first[2] - first[1] - 20) <= 2, "half as far down as beside"


def test_of_two_alone_the_one_who_is_higher_has_a_body_below_its_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own box ends above; what is hidden below it belongs to the other, and shows no wall there."""
    photo = Photo(np.zeros((200, 260, 3), np.uint8))
    found = heads(Box(60, 30, 24, 30), Box(150, 60, 60, 75), photo=photo)
    boxes = Box(30, 0, 100, 80), Box(0, 0, 260, 200)
    faces = [replace(one, region=Region(box)) for one, box in zip(found, boxes, strict=True)]
    network = made()
    run: Callable[[np.ndarray], np.ndarray] = network._run

    def person(_: Completion, planes: np.ndarray) -> np.ndarray:
        out = run(planes).copy()
        out[0, 3] = 1
        out[0, 3, :, SIDE // 3 : 2 * SIDE // 3] = 0
        out[0, :3] = -1
        return out

    monkeypatch.setattr(Completion, "_run", person)
    crops = [np.full((128, 128, 3), 20, np.uint8)] * 2
    out = recombine(photo.image, faces, crops, filling=network)
    middle = round(float(faces[0].pose.back(np.array([[64.0, 64.0]]))[0, 0]))
    assert (out[60:, middle] < 60).all()
    assert (out[60:, 5] > 60).all()


def test_clothes_below_the_frame_have_no_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    network = made()
    run: Callable[[np.ndarray], np.ndarray] = network._run

    def striped(_: Completion, planes: np.ndarray) -> np.ndarray:
        out = run(planes).copy()
        out[0, :3] = np.where(np.arange(SIDE) % 8 < 4, 0.8, 0)
        return out

    monkeypatch.setattr(Completion, "_run", striped)
    (face,) = heads(Box(30, 20, 24, 30), photo=Photo(np.zeros((200, 80, 3), np.uint8)))
    whole = replace(face, region=Region(Box(0, 0, 80, 200)))
    crop = np.full((128, 128, 3), 128, np.uint8)
    out = recombine(np.full((200, 80, 3), 250, np.uint8), [whole], [crop], filling=network)
    assert out[40, 20:60].std() > 40 > 8 * out[150:, 20:60].std(axis=1).mean()


def test_the_edge_of_a_frame_is_not_what_goes_on_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks err at the edge of their frame: a line there would become a stripe."""
    network = made()
    run: Callable[[np.ndarray], np.ndarray] = network._run

    def edged(_: Completion, planes: np.ndarray) -> np.ndarray:
        out = run(planes).copy()
        out[0, :3, :2] = out[0, :3, -2:] = out[0, :3, :, :2] = out[0, :3, :, -2:] = 1
        return out

    monkeypatch.setattr(Completion, "_run", edged)
    (face,) = heads(Box(30, 20, 24, 30), photo=Photo(np.zeros((200, 80, 3), np.uint8)))
    whole = replace(face, region=Region(Box(0, 0, 80, 200)))
    crop = np.full((128, 128, 3), 20, np.uint8)
    out = recombine(np.full((200, 80, 3), 250, np.uint8), [whole], [crop], filling=network)
    assert out.max() < 140


@pytest.mark.parametrize("size", [3, 16, 700])
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


def test_shares_of_a_layout_are_between_0_and_1_whatever_a_network_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = made()
    run: Callable[[np.ndarray], np.ndarray] = network._run
    released, image = np.full((128, 128, 3), 20, np.uint8), textured(200, 260)
    (face,) = heads(TWO[0])
    found = []
    for low, high in ((0.0, 1.0), (-300.0, 1e4)):

        def told(_: Completion, planes: np.ndarray, low: float = low, high: float = high) -> np.ndarray:
            out = run(planes).copy()
            out[0, 3:] = np.where(np.arange(SIDE) % 9 < 5, high, low)
            return out

        monkeypatch.setattr(Completion, "_run", told)
        found.append(recombine(image, [face], [released], filling=network))
    assert (found[0] == found[1]).all()


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
