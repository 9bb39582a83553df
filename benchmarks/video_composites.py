"""Clips for `video.py`: heads of LFW that move over photographs, with the place of every face in every frame.

A clip is one or more shots; each has a background under a slow camera, heads that move by formulas, and bars
in front of them. A face is the ellipse in its box from forehead to chin and cheek to cheek, as CenterFace
sees it in the enlarged photo; `truth` says which pixels of it can be seen, not hidden by bars or other heads.
A head that turns is squeezed in width. Everything is a function of a clip's name. Needs
../shared/data/lfw10_250.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image
from skimage import data

from dpveil import Photo
from dpveil.regions import Faces
from face_scenes import PEOPLE

BACKGROUNDS = ("coffee", "rocket", "brick", "grass", "gravel")
VGA, HD = (640, 480), (1280, 720)
ENLARGED = 2  # how much photos of LFW are enlarged, so that large faces stay sharp
FACE, BOX, HEAD = 1, 2, 4
"""Bits of a mask: pixels of the face, of its box, and of what is drawn with it."""
EXPOSURES = 6  # places that are averaged in a blurred frame
ACROSS, DOWN, MIDDLE = 1.05, 0.95, 0.45
"""What is drawn of a photo: half axes of an ellipse and its middle, in sides of the face's box."""


class Pose(NamedTuple):
    """The middle of a face's box and its height in pixels, its roll in degrees, and the width's share."""

    x: float
    y: float
    height: float
    roll: float = 0
    squeeze: float = 1


Motion = Callable[[float], Pose]
"""The pose of a head at a time in seconds since its shot began."""


@dataclass(frozen=True)
class Shot:
    """What is seen for some `seconds`: heads, those in front last, and bars (left, top, width, height)."""

    seconds: float
    heads: tuple[Motion, ...]
    bars: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True)
class Clip:
    """Shots of one size; `shutter` is the open share of a frame's time, `light` the share of full light.

    `shake` is the reach of the camera's trembling in pixels, and `quality` x264's factor: lower is better.
    """

    name: str
    size: tuple[int, int]
    fps: int
    shots: tuple[Shot, ...]
    shutter: float = 0
    light: float = 1
    noise: float = 2
    flashes: bool = False
    shake: float = 0
    quality: int = 18

    @property
    def frames(self) -> int:
        """The number of frames."""
        return sum(round(shot.seconds * self.fps) for shot in self.shots)


@dataclass(frozen=True, eq=False)
class Seen:
    """One face in one frame: who, its pose, the width of its box before it was squeezed, and its bits from
    (left, top); `share` of it can be seen.
    """

    head: int
    pose: Pose
    width: float
    left: int
    top: int
    bits: np.ndarray
    share: float

    @property
    def height(self) -> float:
        """The height of the face's box in pixels."""
        return self.pose.height


def line(start: tuple[float, float], speed: tuple[float, float], height: float, growth: float = 1) -> Motion:
    """Return a straight motion in pixels per second; the height grows by a factor per second."""
    return lambda t: Pose(start[0] + speed[0] * t, start[1] + speed[1] * t, height * growth**t)


def swing(
    middle: tuple[float, float], reach: tuple[float, float], hertz: float, height: float, **turns: float
) -> Motion:
    """Return a swinging motion; `roll` swings in degrees, and `squeeze` between 1 and that share."""

    def at(t: float) -> Pose:
        wave = math.sin(2 * math.pi * hertz * t)
        squeeze = 1 - (1 - turns.get("squeeze", 1)) * (1 - math.cos(2 * math.pi * hertz * t)) / 2
        x, y = middle[0] + reach[0] * wave, middle[1] + reach[1] * wave
        return Pose(x, y, height, turns.get("roll", 0) * wave, squeeze)

    return at


def clips() -> dict[str, Clip]:
    """Return every clip by name."""
    small = [line((60 + 72 * n, 120 + 200 * (n % 2)), (6 * (-1) ** n, 9), h) for n, h in enumerate(SMALL)]
    crowd = [line((110 + 150 * n, 180 + 300 * (n % 2)), (25 - 8 * n, 12), h) for n, h in enumerate(CROWD)]
    two = line((120, 150), (40, 5), 70), line((520, 300), (-50, 0), 90)
    ways = line((80, 110), (70, 5), 60), line((560, 250), (-80, 0), 80), line((330, 380), (0, -40), 100)
    edges = line((-60, 130), (70, 0), 80), line((560, 560), (-10, -70), 90), line((420, 120), (90, 0), 70)
    dark = line((120, 150), (40, 5), 60), line((520, 300), (-50, 0), 80), line((300, 400), (10, -9), 40)
    rolled = swing((170, 220), (20, 5), 0.4, 90, roll=100), swing((460, 240), (10, 5), 0.8, 80, roll=60)
    turned = (
        swing((170, 220), (30, 0), 0.4, 90, squeeze=0.25),
        swing((460, 240), (0, 9), 0.7, 80, squeeze=0.4),
    )
    room = line((380, 330), (40, 6), 180), swing((900, 360), (60, 10), 0.4, 140, roll=12)
    passing = line((-40, 130), (420, 0), 70), line((700, 330), (-350, 0), 80)
    poles = tuple((x, 0, 14, 480) for x in range(0, 640, 55))
    walls = (120, 0, 180, 480), (390, 0, 190, 480)
    made = (
        _vga("straight", *ways),
        _vga("accelerating", swing((320, 130), (200, 10), 0.8, 70), swing((320, 330), (150, 30), 1.2, 90)),
        _vga("nearing", line((180, 240), (10, 0), 20, 1.5), line((470, 230), (-10, 0), 140, 0.75)),
        _vga("rolling", *rolled),
        _vga("turning", *turned),
        _vga("covered", line((70, 130), (110, 0), 80), line((580, 330), (-100, 0), 100), bars=BARS),
        _vga("fence", line((70, 130), (90, 0), 80), line((580, 330), (-80, 4), 60), bars=poles),
        _vga("glimpses", *passing, bars=walls),
        _vga("blurred", swing((320, 130), (200, 0), 1, 80), line((-90, 340), (300, 0), 100), shutter=0.9),
        _vga("shaken", *two, line((300, 420), (10, -20), 50), shutter=0.7, shake=18),
        _vga("small", *small),
        _vga("edges", *edges, line((300, 200), (0, -80), 80)),
        _vga("crossing", line((90, 250), (100, 0), 80), line((550, 230), (-100, 0), 100)),
        _vga("dark", *dark, light=0.07, noise=5),
        _vga("compressed", *two, line((300, 420), (10, -20), 45), line((200, 300), (30, 9), 30), quality=38),
        _vga("flashes", *two, flashes=True),
        Clip("cuts", VGA, 25, tuple(_pair(n, 1.2) for n in range(4))),
        Clip("montage", VGA, 25, tuple(_pair(n % 4, 0.16 + 0.04 * (n % 5)) for n in range(20))),
        Clip("crowd", HD, 30, (Shot(4, tuple(crowd)),)),
        Clip("room", HD, 30, (Shot(4, room),)),
    )
    return {clip.name: clip for clip in made}


BARS = (200, 0, 60, 480), (400, 0, 90, 480)
SMALL = (16, 20, 24, 28, 34, 40, 48, 60)
CROWD = (30, 36, 44, 52, 64, 80, 100, 120)


def _pair(n: int, seconds: float) -> Shot:
    return Shot(seconds, (line((180 + 90 * n, 200), (40, 10), 70), line((460 - 60 * n, 260), (-50, 0), 90)))


def _vga(name: str, *heads: Motion, bars: tuple[tuple[int, int, int, int], ...] = (), **light: float) -> Clip:
    return Clip(name, VGA, 25, (Shot(5, heads, bars),), **light)


def render(clip: Clip) -> Iterator[tuple[np.ndarray, list[Seen]]]:
    """Yield every frame, height × width × 3 of RGB levels, and the faces in it."""
    draw = np.random.default_rng(zlib.crc32(clip.name.encode()))
    grain = draw.normal(0, clip.noise, (clip.size[1] + 64, clip.size[0] + 64, 3)).astype(np.float32)
    frame, first = 0, 0
    for shot in clip.shots:
        people = [cutout(int(draw.integers(len(everybody())))) for _ in shot.heads]
        ground, way = (
            background(clip.size, int(draw.integers(len(BACKGROUNDS))), draw),
            draw.uniform(-12, 12, 2),
        )
        for n in range(round(shot.seconds * clip.fps)):
            times = [(n + late) / clip.fps for late in _late(clip)]
            moved = [_panned(ground, way * t + _shaken(clip, t), clip.size) for t in times]
            canvas, seen = _picture(clip, shot, people, sum(moved) / len(moved), n)
            bright = clip.light * canvas + (120 if clip.flashes and frame % 23 == 11 else 0)
            y, x = draw.integers(0, 64, 2)
            bright += grain[y : y + clip.size[1], x : x + clip.size[0]]
            yield bright.clip(0, 255).astype(np.uint8), [_named(one, first) for one in seen]
            frame += 1
        first += len(shot.heads)


def _named(seen: Seen, first: int) -> Seen:
    return replace(seen, head=first + seen.head)


def _picture(
    clip: Clip, shot: Shot, people: list[tuple[np.ndarray, np.ndarray]], canvas: np.ndarray, n: int
) -> tuple[np.ndarray, list[Seen]]:
    """Return one frame without grain, as floats, and its faces."""
    hidden = np.zeros(canvas.shape[:2], bool)
    for x, y, w, h in shot.bars:
        hidden[y : y + h, x : x + w] = True
    masks, now = list[tuple[int, int, np.ndarray]](), [_seen(clip, motion, n) for motion in shot.heads]
    bare = canvas.copy()
    for motion, pose, (photo, box) in zip(shot.heads, now, people, strict=True):
        _paste(canvas, photo, box, [_seen(clip, motion, n + late) for late in _late(clip)])
        masks.append(_mask(pose, box, canvas.shape[:2]))
    canvas[hidden] = 0.5 * bare[hidden] + 30
    seen = []
    for head, bits in reversed(list(enumerate(masks))):
        left, top, part = bits
        here = hidden[top : top + part.shape[0], left : left + part.shape[1]]
        whole = max(1.0, _size(now[head], people[head][1]))
        shown = np.where(here, 0, part).astype(np.uint8)
        share = np.count_nonzero(shown & FACE) / whole
        wide = now[head].height * people[head][1][2] / people[head][1][3]
        seen.append(Seen(head, now[head], wide, left, top, shown, min(1.0, share)))
        here |= (part & HEAD) > 0
    return canvas, seen[::-1]


def _shaken(clip: Clip, t: float) -> np.ndarray:
    """Return where a trembling camera has moved everything to at a time, in pixels."""
    return clip.shake * np.array([math.sin(24 * t) + 0.4 * math.sin(41 * t), math.sin(19 * t + 1)])


def _seen(clip: Clip, motion: Motion, frame: float) -> Pose:
    """Return the pose of a head as the camera sees it, in a frame or between two."""
    pose, (x, y) = motion(frame / clip.fps), _shaken(clip, frame / clip.fps)
    return pose._replace(x=pose.x + x, y=pose.y + y)


def _late(clip: Clip) -> list[float]:
    """Return the times that one frame averages, in frames from its own."""
    return [0.0] if not clip.shutter else list(np.linspace(-clip.shutter / 2, clip.shutter / 2, EXPOSURES))


def _size(pose: Pose, box: np.ndarray) -> float:
    """Return the area of a face in pixels."""
    return math.pi / 4 * pose.height**2 * pose.squeeze * box[2] / box[3]


def _matrix(pose: Pose, box: np.ndarray, scale: float) -> np.ndarray:
    """Return the 2 × 3 matrix from pixels of a photo, shrunk by `scale`, to those of the frame."""
    x, y, w, h = box * scale
    turn, grow = math.radians(pose.roll), pose.height / h
    across = grow * pose.squeeze * np.array([math.cos(turn), math.sin(turn)])
    down = grow * np.array([-math.sin(turn), math.cos(turn)])
    linear = np.column_stack([across, down])
    return np.column_stack([linear, np.array([pose.x, pose.y]) - linear @ [x + w / 2, y + h / 2]])


def _paste(canvas: np.ndarray, photo: np.ndarray, box: np.ndarray, poses: list[Pose]) -> None:
    """Draw a head, in levels times opacity and opacity, averaged over its poses."""
    scale = min(1.0, max(1.15 * pose.height for pose in poses) / box[3])
    small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    left, top, right, bottom = _around(poses, canvas.shape)
    if left >= right or top >= bottom:
        return
    total = np.zeros((bottom - top, right - left, 4), np.float32)
    for pose in poses:
        matrix = _matrix(pose._replace(x=pose.x - left, y=pose.y - top), box, scale)
        total += cv2.warpAffine(small, matrix, (right - left, bottom - top), flags=cv2.INTER_LINEAR)
    total /= len(poses)
    part = canvas[top:bottom, left:right]
    part *= 1 - total[..., 3:]
    part += total[..., :3]


def _around(poses: list[Pose], shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the part of a frame that may show a head."""
    reach = 1.3 * max(pose.height for pose in poses)
    (x, y), (right, bottom) = ([f(pose[n] for pose in poses) for n in (0, 1)] for f in (min, max))
    return (
        max(0, math.floor(x - reach)),
        max(0, math.floor(y - reach)),
        min(shape[1], math.ceil(right + reach)),
        min(shape[0], math.ceil(bottom + reach)),
    )


def _mask(pose: Pose, box: np.ndarray, shape: tuple[int, int]) -> tuple[int, int, np.ndarray]:
    """Return left, top and bits of a face within the frame, as if nothing were in front of it."""
    matrix = _matrix(pose, box, 1.0)
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
    left, top, right, bottom = _around([pose], shape)
    rows, columns = np.mgrid[top : max(top, bottom), left : max(left, right)].astype(float)
    x = (back[0, 0] * columns + back[0, 1] * rows + back[0, 2] - box[0]) / box[2] * 2 - 1
    y = (back[1, 0] * columns + back[1, 1] * rows + back[1, 2] - box[1]) / box[3] * 2 - 1
    face, inside = x**2 + y**2 <= 1, np.maximum(abs(x), abs(y)) <= 1
    drawn = np.hypot(x / (2 * ACROSS), (y + 2 * (0.5 - MIDDLE)) / (2 * DOWN)) <= 1
    return left, top, (FACE * face + BOX * inside + HEAD * drawn).astype(np.uint8)


@cache
def everybody() -> list[Path]:
    """Return the photos that heads are taken from: the first of every person."""
    return [next(iter(sorted(person.glob("*.jpg")))) for person in sorted(PEOPLE.iterdir())]


@cache
def cutout(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a head, with levels times opacity and opacity, and the box of its face in it."""
    photo = Image.open(everybody()[number]).convert("RGB")
    image = np.asarray(photo.resize((250 * ENLARGED, 250 * ENLARGED), Image.Resampling.LANCZOS))
    middle = 125 * ENLARGED
    found = [face.box for face in Faces(margin=0).detect(Photo(image))]
    box = min(found, key=lambda one: abs(one.x + one.w / 2 - middle) + abs(one.y + one.h / 2 - middle))
    across, down = (
        np.arange(250 * ENLARGED) - start for start in (box.x + box.w / 2, box.y + MIDDLE * box.h)
    )
    far = np.hypot(across[None] / (ACROSS * box.w), down[:, None] / (DOWN * box.h))
    opaque = ((1.08 - far) / 0.16).clip(0, 1).astype(np.float32)[..., None]
    return np.concatenate([image * opaque, opaque], axis=2), np.array([box.x, box.y, box.w, box.h], float)


def background(size: tuple[int, int], number: int, draw: np.random.Generator) -> np.ndarray:
    """Return a photograph of other things, larger than the frame by 80 pixels on every side."""
    picture = getattr(data, BACKGROUNDS[number])()
    if picture.ndim == 2:
        picture = np.stack([picture] * 3, axis=2)
    if draw.integers(2):
        picture = picture[:, ::-1]
    return cv2.resize(picture, (size[0] + 160, size[1] + 160), interpolation=cv2.INTER_CUBIC).astype(
        np.float32
    )


def _panned(ground: np.ndarray, away: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    matrix = np.array([[1, 0, away[0] - 80], [0, 1, away[1] - 80]])
    return cv2.warpAffine(ground, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)


def write(clip: Clip, path: Path) -> list[list[Seen]]:
    """Write a clip as MP4 (H.264), and return its faces by frame."""
    import av

    truth = []
    with av.open(str(path), "w") as out:
        stream = out.add_stream(
            "libx264", rate=clip.fps, options={"crf": str(clip.quality), "preset": "veryfast"}
        )
        stream.width, stream.height = clip.size
        stream.pix_fmt, stream.time_base = "yuv420p", Fraction(1, clip.fps)
        for image, seen in render(clip):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            truth.append(seen)
        out.mux(stream.encode())
    return truth
