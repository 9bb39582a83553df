"""Text: a box for every line that a network finds, at any angle."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.assets.engines import fastest
from dpveil.core.array_types import Float, UInt8
from dpveil.core.guarantee import count_noun
from dpveil.core.parameters import Between, Count, Probability
from dpveil.core.photo import Photo
from dpveil.core.rationals import to_json
from dpveil.core.region_origin import LIKE, PLATE, TEXT
from dpveil.errors import RegionError, UsageError
from dpveil.opencv import cv2
from dpveil.regions.given_regions import box_around
from dpveil.regions.other_finders import NonFaceFinder, Rows, merge_boxes
from dpveil.regions.recogniser import (
    INSTALL,
    Rule,
    clear_text,
    cut,
    is_lettering,
    network_contents,
    recogniser,
)
from dpveil.regions.tiling import resize_rgb

FILE: Final = "PP-OCRv6_det_small.onnx"
SHA256: Final = "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f"
"""The checksum of the file in rapidocr 3.10."""
MULTIPLE: Final = 32
"""The image's sides are padded to multiples of this, as the network halves them five times."""
FAINTEST: Final = 0.3  # least level of the network's map at a pixel of text (thresh of rapidocr)
WIDER: Final = 1.6
"""How much wider than what the network marks a text is (unclip_ratio of rapidocr; DB section 3.5)."""
THIN: Final = 3  # least shorter side of what is marked, in pixels (min_size of rapidocr)
THICK: Final = 48
"""From this thickness of a mark on, in pixels, letters have to be read: whole portraits are marked as well,
and larger letters are found where the photo is shrunk more."""
SURE: Final = 0.85
READ: Final = 14
LONG: Final = 5
"""A mark is text without reading it if it scores so much, is thinner than so many pixels, or is longer than
so many times its thickness: eyes, mouths and badges are none of these."""
SQUARE: Final = 2.0  # times its thickness that a mark is longer, whatever it scores: others may be heads
Rectangle = tuple[Sequence[float], Sequence[float], float]
"""Centre, width and height, and degrees, as of `cv2.minAreaRect`."""
Found = tuple[Rectangle, float]
REMEDY: Final = "give boxes instead, or protect the whole photo"


class TextNetwork:
    """Finds lines of text in an image, at any angle; may be called from several threads."""

    def __init__(self, contents: bytes) -> None:
        self._net, self._lock = fastest(contents)(contents), threading.Lock()

    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return left, top, width, height (pixels) and score of what scores at least `threshold`.

        `image` has sRGB levels 0..255. Raises `RegionError` if the network fails or gives anything but a map
        of finite numbers.
        """
        return upright(self.rectangles(image, threshold))

    def rectangles(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> list[Found]:
        """Return the same as rectangles at any angle, with their scores."""
        height, width = image.shape[:2]
        pad = ((0, -height % MULTIPLE), (0, -width % MULTIPLE), (0, 0))
        padded = np.pad(image[..., ::-1], pad, mode="edge").astype(np.float32) / 127.5 - 1
        try:
            with self._lock:
                (heat,) = self._net(np.ascontiguousarray(padded.transpose(2, 0, 1)[None]))
        except Exception as error:
            raise RegionError(f"the search for text failed ({type(error).__name__})", hint=REMEDY) from error
        if heat.shape != (1, 1, *padded.shape[:2]) or not np.isfinite(heat).all():
            raise RegionError("the network for text gave something that is no map of it", hint=REMEDY)
        return decode(heat[0, 0, :height, :width], threshold, partial(is_lettering, image))


def decode(
    heat: Float[np.ndarray, "h w"], threshold: float, is_read: Callable[[Rectangle], bool] = lambda _: True
) -> list[Found]:
    """Return the rectangles around what a map marks as text, with their mean levels as scores.

    Each is the smallest at any angle, which is widened (DB section 3.5). What may be something else counts if
    letters are read in the rectangle.
    """
    marked = cv2.dilate((heat > FAINTEST).astype(np.uint8), np.ones((2, 2), np.uint8))
    outlines, _ = cv2.findContours(marked, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return [found for outline in outlines if (found := _rectangle(heat, outline, threshold, is_read))]


def upright(found: Sequence[Found]) -> Float[np.ndarray, "n 5"]:
    """Return the upright boxes around rectangles, and their scores."""
    rows = []
    for around, score in found:
        corners = cv2.boxPoints(around)
        start, stop = corners.min(axis=0), corners.max(axis=0)
        rows.append([*map(float, start), *map(float, stop - start), score])
    return np.array(rows, np.float64).reshape(-1, 5)


def _rectangle(
    heat: Float[np.ndarray, "h w"],
    outline: np.ndarray,
    threshold: float,
    is_read: Callable[[Rectangle], bool],
) -> Found | None:
    """Return the rectangle and score of what is in an outline; None if that is no text."""
    middle, (across, down), angle = cv2.minAreaRect(outline)
    if min(across, down) < THIN:
        return None
    left, top, width, height = cv2.boundingRect(outline)
    inner = np.zeros((height + 2, width + 2), np.uint8)
    cv2.drawContours(inner, [outline], -1, 1, cv2.FILLED, offset=(1 - left, 1 - top))
    score = float(heat[top : top + height, left : left + width][inner[1:-1, 1:-1] > 0].mean())
    if score < threshold:
        return None
    more = WIDER * across * down / (across + down)
    around = middle, (across + more, down + more), angle
    if _is_doubtful(inner, score, across, down) and not is_read(around):
        return None
    return around, min(1.0, score)


def _is_doubtful(mark: UInt8[np.ndarray, "h w"], score: float, across: float, down: float) -> bool:
    short, long = sorted((across, down))
    if short < READ:
        return False
    if score < SURE and long < LONG * short:
        return True
    thick = 2 * float(cv2.distanceTransform(mark, cv2.DIST_L2, 5).max())
    return thick > THICK or long < SQUARE * thick


@lru_cache(maxsize=1)
def network() -> TextNetwork:
    """Return the network, loaded once per process; raises `UsageError` as `network_contents`."""
    return TextNetwork(network_contents(FILE, SHA256))


def parts(length: int, side: int, overlap: int) -> list[tuple[int, int]]:
    """Return the ends of equal parts of an axis, of at most `side` pixels, that overlap by `overlap` or more.

    >>> parts(100, 60, 10)
    [(0, 55), (45, 100)]
    """
    if length <= side:
        return [(0, length)]
    count = math.ceil((length - overlap) / (side - overlap))
    side = math.ceil((length + (count - 1) * overlap) / count)
    starts = [round(n * (length - side) / (count - 1)) for n in range(count)]
    return [(start, start + side) for start in starts]


THRESHOLD: Final = Fraction(2, 5)
MARGIN: Final = Fraction(1, 10)
SMALLEST_LINE: Final = 8
"""Height of a line in pixels from which nearly all upright ones were found (benchmarks, text_recall)."""
COARSE: Final = (320, 960)  # longer sides of the photo in searches in which large letters are small enough
TILE: Final = 1280
OVERLAP: Final = 160
"""Sides of tiles of the finest search and what they have in common, in pixels of the resized photo."""
LEAST_SIDE: Final = 736
"""Smaller photos are enlarged until their shorter side has so many pixels (limit_side_len of rapidocr)."""
LARGEST_ZOOM: Final = 2  # photos are enlarged at most so many times
NEAR_SCALE: Final = 0.75  # a search at more than this share of the finest size would find nothing else
JOINED: Final = 0.7  # share of a box that is in another one, from which both are one line
CACHE: Final[WeakKeyDictionary[Photo, dict[object, Rows]]] = WeakKeyDictionary()
"""Lines of photos in memory, by threshold and smallest: text and plates are searched for once."""
UNREAD: Final[WeakKeyDictionary[Photo, dict[str, int]]] = WeakKeyDictionary()
"""How many lines of photos in memory say nothing clear, by the finder that read them."""


@dataclass(frozen=True, kw_only=True)
class Text(NonFaceFinder):
    """One box for every line of text that a network finds; text that is missed stays in the clear.

    The network is PP-OCRv6 of the package rapidocr (extra `text`). A line must score at least `threshold`,
    between 0 and 1. Lines from `smallest` pixels of height are looked for, at the photo's own size where that
    is 8. Each box is the upright one around a line, extended by `margin` times its shorter side. With `like`
    a line stays if it clearly says something else: "names", "numbers", or a regular expression (`Rule`).
    Raises `InvalidParameter`. Source: docs, "Text and other objects"; DB (arXiv 1911.08947).

    >>> Text(threshold=0.5).description
    'text threshold=0.5'
    """

    kind = TEXT
    noun = "text"
    word: ClassVar[str] = "text"
    usual: ClassVar[Fraction] = MARGIN

    threshold: Probability = Probability(default=THRESHOLD)
    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=MARGIN)
    smallest: Count = Count(default=SMALLEST_LINE)
    like: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._rule  # noqa: B018  checked before any photo is read

    @property
    def description(self) -> str:
        """Return "text", or "plates", and every setting that is not the default, in a fixed order."""
        given = {
            "threshold": to_json(self.threshold) if self.threshold != THRESHOLD else "",
            "margin": to_json(self.margin) if self.margin != self.usual else "",
            "smallest": "" if self.smallest == SMALLEST_LINE else self.smallest,
        }
        settings = [f"{name}={value}" for name, value in given.items() if value != ""]
        return " ".join([self.word, *settings, *(f"{LIKE}{rule}" for rule in [self._rule] if rule)])

    @property
    def _rule(self) -> Rule | None:
        return None if self.like is None else Rule.of(self.like)

    @property
    def absence(self) -> str:
        """Say that no text was found, or none that says what was asked for."""
        return super().absence + " that says what is to be replaced" * (self.like is not None)

    def prepare(self) -> None:
        network()
        if self._rule and recogniser() is None:
            raise UsageError("reading text needs onnxruntime, which is not installed", hint=INSTALL)

    def smallest_in(self, photo: Photo) -> int:
        return self.smallest

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        found, rule = lines(photo, float(self.threshold), self.smallest), self._rule
        if rule is not None:
            crops = (photo.image[box_around(row, photo, Fraction(0)).slices] for row in found)
            said = [clear_text(np.repeat(crop, 3 // crop.shape[2], axis=2)) for crop in crops]
            UNREAD.setdefault(photo, {})[self.description] = said.count(None)
            found = found[np.array([text is None or rule.takes(text) for text in said], np.bool_)]
        return [(TEXT, found)]

    def notes_on(self, photo: Photo) -> tuple[str, ...]:
        """Return how many lines are replaced as it is not clear what they say."""
        unread = UNREAD.get(photo, {}).get(self.description, 0)
        many = f"{count_noun(unread, 'line')} of text could not be read, and"
        return (f"{many} {'is' if unread == 1 else 'are'} replaced, too",) * bool(unread)


def lines(photo: Photo, threshold: float, smallest: int) -> Rows:
    """Return the lines of a photo in its pixels; cached."""
    own = CACHE.setdefault(photo, {})
    if (threshold, smallest) not in own:
        height, width = photo.image.shape[:2]
        # by how much the photo is enlarged in each search, the coarsest first
        fine = min(LARGEST_ZOOM, max(SMALLEST_LINE / smallest, LEAST_SIDE / min(height, width)))
        coarse = [ratio for side in COARSE if (ratio := side / max(height, width)) < NEAR_SCALE * fine]
        seen = [_search_scale(photo, ratio, threshold) for ratio in (*coarse, fine)]
        own[threshold, smallest] = merge_boxes(np.concatenate(seen), JOINED)
    return own[threshold, smallest]


def _search_scale(photo: Photo, ratio: float, threshold: float) -> Rows:
    height, width = (max(1, round(side * ratio)) for side in photo.image.shape[:2])
    image, net = resize_rgb(photo.image, height, width), network()
    scale = np.array([photo.width / width, photo.height / height] * 2 + [1])
    found = [
        (net(image[top:bottom, left:right], threshold) + np.array([left, top, 0, 0, 0])) * scale
        for top, bottom in parts(height, TILE, OVERLAP)
        for left, right in parts(width, TILE, OVERLAP)
    ]
    return np.concatenate(found)


PLATE_MARGIN: Final = Fraction(1, 4)  # default margin: a plate has an edge around its text
ASPECT: Final = (1.2, 9.0)
"""Width by height of the upright box around the text of a plate, also of one that is tilted."""
STEEP: Final = 1.6
"""Width by height, or height by width, of upright boxes below which a line may be too steep to be judged in
its box."""
SEEN_SIDE: Final = 256  # least shorter side of such a box when it is searched again, in pixels
LENGTH: Final = (3, 12)  # number of letters that stand apart, with dashes, seals and what joins two of them
LEGIBLE: Final = 56
UPRIGHT: Final = 3.0
"""Height in pixels, and width by height, of boxes in which letters stand apart; a box around a line is more
than twice as high as its letters. In others they are not counted, and the text is taken for that of a plate.
"""
TALL: Final = 0.2  # height of a letter at least, relative to the box
CONTRAST: Final = 40
"""Levels by which letters and ground differ at least; those of text on a plate differ by design."""
HEIGHT: Final = 96  # rows of the text in which letters are counted


@dataclass(frozen=True, kw_only=True)
class Plates(Text):
    """One box for every line of text that stands like that of a plate; plates that are missed stay.

    Nothing is read: a line at any angle counts if it is as wide as that of a plate (between 1.2 and 9 times
    its height), if its letters and their ground are of clearly different levels, and if it has 3 to 12
    letters, as far as they stand apart. So other short text counts as well. `threshold`, `margin` and
    `smallest` are those of `Text`. Raises `InvalidParameter`. Source: docs, "Text and other objects".

    >>> Plates().description
    'plates'
    """

    kind = PLATE
    noun, word, usual = "plate", "plates", PLATE_MARGIN

    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=PLATE_MARGIN)
    like: str | None = field(default=None, init=False, repr=False)

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        found = lines(photo, float(self.threshold), self.smallest)
        plates = [row for row in found if _is_plate(row, photo, float(self.threshold))]
        return [(PLATE, np.array(plates).reshape(-1, 5))]


def _is_plate(row: Float[np.ndarray, " 5"], photo: Photo, threshold: float) -> bool:
    crop = photo.image[box_around(row, photo, Fraction(0)).slices]
    if _stands_like_plate(crop):
        return True
    if not 1 / STEEP < row[2] / row[3] < STEEP:
        return False
    # Its box tells little of a line that is steep: it is cut out along itself.
    zoom = max(1.0, SEEN_SIDE / min(crop.shape[:2]))
    height, width = (round(side * zoom) for side in crop.shape[:2])
    large = resize_rgb(crop, height, width)
    found = network().rectangles(large, threshold)
    return any(_stands_like_plate(cut(large, around)) for around, _ in found)


def _stands_like_plate(line: UInt8[np.ndarray, "h w c"]) -> bool:
    along = line if line.shape[1] >= line.shape[0] else np.rot90(line)
    height, width = along.shape[:2]
    return ASPECT[0] <= width / height <= ASPECT[1] and like_plate(along)


def like_plate(crop: UInt8[np.ndarray, "h w c"]) -> bool:
    """Return whether a box around a line of text has the contrast and the number of letters of a plate.

    >>> like_plate(np.full((40, 160, 3), 200, np.uint8))
    False
    """
    height, width = crop.shape[:2]
    large = resize_rgb(crop, HEIGHT, max(1, round(width * HEIGHT / height)))
    grey = cv2.cvtColor(large, cv2.COLOR_RGB2GRAY)
    _, light = cv2.threshold(grey, 0, 1, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    if light.all() or not light.any():
        return False
    if float(grey[light > 0].mean()) - float(grey[light == 0].mean()) < CONTRAST:
        return False
    if height < LEGIBLE or width < UPRIGHT * height:
        return True
    for ink in (light, 1 - light):
        _, _, found, _ = cv2.connectedComponentsWithStats(ink)
        tall, wide = found[1:, cv2.CC_STAT_HEIGHT], found[1:, cv2.CC_STAT_WIDTH]
        letters = np.count_nonzero((tall >= TALL * HEIGHT) & (wide <= 1.5 * HEIGHT))
        if LENGTH[0] <= letters <= LENGTH[1]:
            return True
    return False
