"""The public grid: every face of a cell is held by its shape, and nothing else of its place shows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from geometry_made import cell_near, scale_of, textured

import dpveil
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import FACE, Origin
from dpveil.errors import RegionError
from dpveil.faces.geometry.align import Similarity, of_points
from dpveil.faces.geometry.cell import PITCH, RATIO, ROLLS, SCALES, Cell, cell_of, side
from dpveil.faces.geometry.head_frame import HEAD, MIDDLE, Shape, outline
from dpveil.faces.geometry.landmarks import SEEN, Landmarks, Predictor, of_box
from dpveil.faces.geometry.place import place
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.noise.bits import SeededBits
from dpveil.regions import Finder
from dpveil_audit.faces.made_heads import made_heads

YAWS = (-2, -1, 0, 1, 2, None)


def edge(shape: Shape) -> np.ndarray:
    """Points on the edge of a shape, those of a stretched half included."""
    angle = np.linspace(0, 2 * math.pi, 721)
    points = [np.stack([shape.half[0] * np.cos(angle), shape.half[1] * np.sin(angle)], axis=1)]
    if shape.neck is not None:
        half, top, bottom = shape.neck
        down, across = np.linspace(top, bottom, 41), np.linspace(-half, half, 41)
        points += [np.stack([np.full(41, end), down], axis=1) for end in (-half, half)]
        points += [np.stack([across, np.full(41, bottom)], axis=1)]
    out = np.concatenate(points)
    out[:, 0] *= np.where(out[:, 0] < 0, shape.left, shape.right)
    out[:, 1] *= np.where(out[:, 1] > 0, shape.below, 1)
    return out + MIDDLE


def member(cell: Cell, scale: float, roll: float, across: float, down: float) -> Similarity:
    """The pose of a face of a cell, by its position in it: four numbers from -1 to 1."""
    size = side(cell.scale)
    own = size * (RATIO[0] / RATIO[1]) ** (scale / 2)
    turned = Similarity(1 / own, -2 * math.pi / ROLLS * (cell.roll + roll / 2), 0.0, 0.0)
    x = (cell.across + 0.5 + across / 2) * PITCH * size - 0.5
    y = (cell.down + 0.5 + down / 2) * PITCH * size - 0.5
    moved = MIDDLE - turned.to(np.array([[x, y]]))[0] - 0.5
    return replace(turned, x=float(moved[0]), y=float(moved[1]))


def members(cell: Cell) -> list[Similarity]:
    """The corners and edges of a cell, and some faces inside it."""
    ends = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 2, [-1, 0, 1], [-1, 1]), axis=-1).reshape(-1, 4)
    inside = np.random.default_rng(cell.roll + 150).uniform(-1, 1, (20, 4))
    return [member(cell, *position) for position in [*ends.tolist(), *inside.tolist()]]


@pytest.mark.parametrize("protect", PROTECTIONS)
@pytest.mark.parametrize("yaw", YAWS)
def test_the_shape_holds_every_face_of_its_cell(protect: str, yaw: int | None) -> None:
    for degrees in range(-165, 181, 60):
        cell = cell_near(87, degrees, 2.5, 2, yaw)
        whole = cell.shape(protect)
        own = edge(PROTECTIONS[protect].stretched(PROTECTIONS[protect].one, yaw)) - 0.5
        for pose in members(cell):
            there = cell.pose.to(pose.back(own)) + 0.5
            assert whole.holds(there).all(), (cell, pose)


def test_the_mask_of_a_cell_holds_the_masks_of_its_faces() -> None:
    cell = cell_near(170, 30, 1.5, 1.25, -1)
    box, mask = cell.shape("head").region(cell.pose, 400, 400)
    whole = np.zeros((400, 400), bool)
    whole[box.slices] = mask
    for pose in members(cell)[::3]:
        inner, part = PROTECTIONS["head"].stretched(HEAD, -1).region(pose, 400, 400)
        own = np.zeros((400, 400), bool)
        own[inner.slices] = part
        assert (whole | ~own).all()


def test_a_face_is_rounded_to_the_cell_it_lies_in() -> None:
    """Every face of a cell, and the cell's own centre; one just beyond an edge is in another."""
    for degrees in (-165, -45, 0, 180):
        cell = cell_near(55, degrees, 1.25, 2, 1)
        assert Cell.near(cell.pose, math.radians(20)) == cell
        for yaw in (10.01, 24.99):
            inside = {Cell.near(member(cell, *(0.99 * np.array(at))), math.radians(yaw)) for at in np.eye(4)}
            assert inside == {cell}
        for at in [*np.eye(4), *-np.eye(4)]:
            assert Cell.near(member(cell, *(1.01 * at)), math.radians(20)) != cell
        assert Cell.near(cell.pose, 2.0).yaw == 2
        assert Cell.near(cell.pose, math.radians(-25.1)).yaw == -2
        assert Cell.of(cell.numbers) == cell
    assert Cell.of(Cell(18, 0, 1, 2).numbers) == Cell(18, 0, 1, 2, None)
    for numbers in (
        (),
        (1, 2, 3),
        (SCALES.stop, 0, 0, 0),
        (-1, 0, 0, 0),
        (9, ROLLS // 2 + 1, 0, 0),
        (9, 0, 0, 0, 3),
        (1,) * 6,
    ):
        assert Cell.of(numbers) is None, numbers


def test_the_scale_is_raised_until_the_shape_holds_the_face_in_the_box() -> None:
    head, least = cell_near(87, 0, 2.5, 2.5).pose, scale_of(87)
    assert cell_of(head, 0.0, None).scale == least
    x, y = head.back(np.array([MIDDLE]) - 0.5)[0]
    for size in (0.4, 0.7, 1.6):
        half = size * side(least) / 2
        box = Box(round(x - half), round(y - half), round(2 * half), round(2 * half))
        found = cell_of(head, 0.0, box)
        ends = outline((box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5, box.w / 2, box.h / 2))
        assert found.shape("head").far(found.pose.to(ends) + 0.5).max() <= 1
        assert (found.scale == least) == (size == 0.4)
        smaller = Cell.near(head, 0.0, raised=found.scale - least - 1)
        assert size == 0.4 or smaller.shape("head").far(smaller.pose.to(ends) + 0.5).max() > 0.98
    with pytest.raises(RegionError):
        Cell.near(Similarity(3.0, 0.0, 0.0, 0.0), None)
    for scale, yaw in ((0.01, math.nan), (0.01, math.inf), (math.nan, 0.0), (math.inf, None)):
        with pytest.raises(RegionError, match="not finite"):
            Cell.near(Similarity(scale, 0.0, 0.0, 0.0), yaw)


def test_wherever_landmarks_lie_the_shapes_hold_their_part_of_the_detected_box() -> None:
    """All of it (`box`), its ellipse (`head`), the middle of that (`face`)."""
    rng, raised = np.random.default_rng(8), 0
    for _ in range(60):
        w, h = map(int, rng.uniform((30, 40), (160, 200)))
        box = Box(600 + int(rng.integers(40)), 600 + int(rng.integers(40)), w, h)
        size = h * rng.uniform(1.2, 3)
        turned = Similarity(1 / size, rng.uniform(-3.1, 3.1), 0.0, 0.0)
        at = np.array([[box.x + w * rng.uniform(0, 1), box.y + h * rng.uniform(0, 1)]])
        x, y = MIDDLE - turned.to(at)[0] - 0.5
        head, yaw = replace(turned, x=float(x), y=float(y)), float(rng.uniform(-1, 1))
        cells = {protect: cell_of(head, yaw, box, protect) for protect in PROTECTIONS}
        raised += cells["face"].scale > cells["head"].scale
        assert cells["head"] == cells["box"]
        whole = cells["box"].shape("box").region(cells["box"].pose, 1400, 1400, masked=False)
        assert whole is not None
        assert whole[0].x <= box.x
        assert whole[0].y <= box.y
        assert whole[0].x + whole[0].w >= box.x + w
        assert whole[0].y + whole[0].h >= box.y + h
        across, down = np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)
        for protect, half, low in (("head", 0.5, 0.5), ("face", 0.25, 0.6)):
            ellipse = ((across / w - 0.5) / half) ** 2 + ((down / h - low) / half) ** 2 <= 1
            pixels = np.argwhere(ellipse)[:, ::-1] + (box.x, box.y)
            at = cells[protect].pose.to(pixels.astype(float)) + 0.5
            assert cells[protect].shape(protect).holds(at).all()
    assert 5 < raised < 55


def test_a_turned_head_is_replaced_with_the_back_of_the_head() -> None:
    """The half behind the face is wider, and the one before it is not."""
    straight, right, left = (cell_near(170, 0, 2.5, 2.5, yaw) for yaw in (0, 2, -2))
    boxes = [cell.shape("head").region(cell.pose, 900, 900)[0] for cell in (straight, right, left)]
    wider = 0.6 * 1.25 * HEAD.half[0] * side(scale_of(170))
    assert boxes[0].x - boxes[1].x == pytest.approx(wider, abs=2)
    assert boxes[2].w - boxes[0].w == pytest.approx(wider, abs=2)
    assert boxes[2].x == boxes[0].x
    assert boxes[1].x + boxes[1].w == boxes[0].x + boxes[0].w


class Moved(Predictor):
    """Landmarks of a mean face in the box, turned as the photo's first hidden pixel says."""

    def __init__(self) -> None:
        """Load nothing."""

    def near(self, image: np.ndarray, box: Box, angle: float = 0.0) -> Landmarks:
        points = of_box(box).back(SEEN.points())
        turn = np.exp(0.02j * int(image[150, 150, 0]))
        turned = np.array([[turn.real, turn.imag], [-turn.imag, turn.real]])
        middle = points.mean(axis=0)
        return Landmarks((points - middle) @ turned + middle, 0.0, 1.0)


def box_of(kind: int) -> Box:
    """The box that a detector finds: those of kinds 0 to 2 fall into one cell, that of 3 does not."""
    return Box(104 + (24 if kind == 3 else kind), 98, 90 + kind, 108)


@dataclass(frozen=True)
class Where(Finder):
    """A detector whose box follows the hidden pixels, too."""

    kind = FACE

    @property
    def description(self) -> str:
        return "where"

    def __call__(self, photo: Photo) -> list[Region]:
        kind = int(photo.image[150, 150, 0])
        return [Region(box_of(kind), origin=Origin(FACE, number=1, found=True))]


@pytest.mark.parametrize("placing", ["landmarks", "box"])
@pytest.mark.parametrize("protect", PROTECTIONS)
def test_faces_of_one_cell_give_the_same_release(
    monkeypatch: pytest.MonkeyPatch, protect: str, placing: str
) -> None:
    """Hidden pixels, the box, the landmarks and the size differ, and no bit of image or certificate does."""
    monkeypatch.setattr(import_module("dpveil.faces.geometry.place"), "locator", Moved)
    image = textured(320, 300, seed=3)
    first = place(Photo(image * 0), box_of(0), protect=protect, landmarks=placing == "landmarks")
    hidden = np.zeros(image.shape[:2], bool)
    hidden[first.region.box.slices] = True if first.region.mask is None else first.region.mask
    made = {}
    for kind in range(4):
        other = np.where(hidden[..., None], textured(320, 300, seed=10 + kind), image)
        other[150, 150, 0] = kind
        release = dpveil.obfuscate(
            other, "attributes", attributes="none", gallery=made_heads(), protect=protect, placing=placing,
            regions=Where(), bits=SeededBits(1),
        )  # fmt: skip
        made[kind] = (release.image.tobytes(), release.certificate.to_text())
    assert len({made[kind] for kind in range(3)}) == 1
    assert made[3] not in (made[0],)


def test_verify_accepts_a_finder_of_ones_own_whose_regions_are_called_boxes(tmp_path: Path) -> None:
    """As the origin of a `Region` says that by default."""

    class Own(Finder):
        description = "own"

        def __call__(self, photo: Photo) -> list[Region]:
            return [Region(box_of(0))]

    made = dpveil.obfuscate(
        textured(320, 300, seed=3), "attributes", attributes="none", gallery=made_heads(), placing="box",
        regions=Own(),
    )  # fmt: skip
    assert made.certificate.regions[0].origin.cell is not None
    path, _ = made.save(tmp_path / "a.png")
    assert dpveil.verify(path).problems == ()


@pytest.mark.parametrize("protect", ["head", "box"])
def test_verify_accepts_public_boxes_of_a_finder_that_the_certificate_does_not_state(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, protect: str
) -> None:
    """Its boxes are placed like found ones; a box that is the request itself is replaced wholly."""
    wide = Box(20, 98, 260, 108)

    class Small(Moved):
        def near(self, image: np.ndarray, box: Box, angle: float = 0.0) -> Landmarks:
            return super().near(image, box_of(0))

    monkeypatch.setattr(import_module("dpveil.faces.geometry.place"), "locator", Small)

    class Public(Finder):
        description = "public"
        data_dependent = False

        def __call__(self, photo: Photo) -> list[Region]:
            return [Region(wide)]

    for finder in (Public(), wide):
        made = dpveil.obfuscate(
            textured(320, 300, seed=3), "attributes", gallery=made_heads(), protect=protect, regions=finder
        )
        path, _ = made.save(tmp_path / "a.png", replace=True)
        assert dpveil.verify(path).problems == ()
        [record] = made.certificate.regions
        assert record.origin.cell is not None


def test_the_method_reads_the_face_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("dpveil.faces.geometry.place"), "locator", Moved)
    image = np.zeros((320, 300, 3), np.uint8)
    image[150, 150, 0] = 1
    found = place(Photo(image), box_of(0))
    wanted = of_points(Moved().near(image, box_of(0)).points, found.frame.points())
    assert found.exact == wanted
    assert found.pose != wanted
    assert found.region.origin.cell == found.cell.numbers


@pytest.mark.parametrize("box", [Box(2, 3, 20, 10), Box(150, 20, 40, 9), Box(120, 150, 60, 40)])
def test_a_shape_with_a_box_has_both(box: Box) -> None:
    pose = Similarity(1 / 90, 0.2, -0.4, -0.6)
    found, mask = HEAD.region(pose, 200, 200, box=box)  # type: ignore[misc]
    alone, shape = HEAD.region(pose, 200, 200)  # type: ignore[misc]
    wanted, seen = np.zeros((2, 200, 200), np.bool_)
    seen[found.slices], wanted[alone.slices] = mask, shape
    wanted[box.slices] = True
    assert np.array_equal(seen, wanted)
