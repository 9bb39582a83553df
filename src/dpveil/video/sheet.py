"""Sheets for the owner of a clip: its tracks with thumbnails and a timeline, and pictures over time.

Both show the original, and are as private as the clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from dpveil.video.times import clock

PRIVATE: Final = "NOT FOR PUBLICATION: shows the original, for the eyes of whoever holds the clip"
MOST_ROWS: Final = 100
"""Most tracks on a sheet; a line says how many are left out."""
TILE: Final = 112
"""Side of a thumbnail; this and all lengths below are in pixels."""
GAP: Final = 14
MARGIN: Final = 36
WORDS: Final = 390
"""Width of the words about a track."""
BAR: Final = 620
"""Width of the timeline."""
HEAD: Final = 118
"""Height above the first row."""
COLUMNS: Final = 4
"""Pictures in a row of a sheet over time."""
PICTURE: Final = 300
"""Width of a picture over time."""
PAPER: Final = (250, 249, 246)
INK: Final = (28, 30, 34)
SOFT: Final = (104, 108, 116)
RULE: Final = (214, 211, 204)
ALARM: Final = (176, 42, 32)
REPLACED: Final = (32, 110, 106)
VISIBLE: Final = (208, 120, 20)

Levels = UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True)
class Row:
    """One track: its number, lines of words, pictures of it with their times, and when it is there.

    `spans` are pairs of times in seconds; one that is `visible` stays as it is.
    """

    number: int
    words: tuple[str, ...]
    pictures: tuple[tuple[float, Levels], ...]
    spans: tuple[tuple[float, float], ...]
    visible: bool = False


@dataclass(frozen=True)
class Moment:
    """Pictures of one moment, below each other: the original and its release, or one of them."""

    seconds: float
    pictures: tuple[Levels, ...]


def draw_tracks(title: str, seconds: float, cuts: Sequence[float], rows: Sequence[Row]) -> Levels:
    """Return the sheet of a clip's tracks, at most `MOST_ROWS` of them; `cuts` are times in seconds."""
    shown, most = rows[:MOST_ROWS], max((len(row.pictures) for row in rows), default=0)
    words = MARGIN + most * (TILE + GAP)
    left = words + WORDS
    step = TILE + GAP + 22
    page = Image.new("RGB", (left + BAR + MARGIN, HEAD + max(1, len(shown)) * step + MARGIN), PAPER)
    draw = ImageDraw.Draw(page)
    _head(draw, page.width, title)
    bottom = HEAD + len(shown) * step
    for cut in cuts:
        at = left + BAR * cut / max(seconds, 1e-9)
        draw.line((at, HEAD - 8, at, bottom), fill=RULE, width=1)
    _scale(draw, left, seconds)
    for place, row in enumerate(shown):
        _row(page, draw, row, HEAD + place * step, (words, left), seconds)
    if not shown:
        draw.text((MARGIN, HEAD), "no track", SOFT, _font(20))
    if len(rows) > len(shown):
        text = f"and {len(rows) - len(shown):,} more tracks, which the plan has"
        draw.text((MARGIN, page.height - MARGIN), text, ALARM, _font(18))
    return np.asarray(page)


def draw_moments(title: str, moments: Sequence[Moment], *, warning: str = PRIVATE) -> Levels:
    """Return a sheet of pictures over time, in reading order, each with its time."""
    height, width = moments[0].pictures[0].shape[:2]
    size = PICTURE, max(1, min(2 * PICTURE, round(PICTURE * height / width)))
    step = len(moments[0].pictures) * (size[1] + 4) + 30 + GAP
    columns = min(COLUMNS, len(moments))
    rows = -(-len(moments) // columns)
    least = MARGIN * 2 + 2 * (PICTURE + GAP)
    page = Image.new(
        "RGB", (max(least, MARGIN * 2 + columns * (PICTURE + GAP)), HEAD + rows * step + MARGIN), PAPER
    )
    draw = ImageDraw.Draw(page)
    _head(draw, page.width, title, warning)
    for place, moment in enumerate(moments):
        x, y = MARGIN + place % columns * (PICTURE + GAP), HEAD + place // columns * step
        draw.text((x, y), clock(moment.seconds), INK, _font(17))
        for below, picture in enumerate(moment.pictures):
            page.paste(_fitted(picture, size), (x, y + 26 + below * (size[1] + 4)))
    return np.asarray(page)


def _head(draw: ImageDraw.ImageDraw, width: int, title: str, warning: str = PRIVATE) -> None:
    if warning:
        draw.rectangle((0, 0, width, 34), fill=ALARM)
        draw.text((MARGIN, 8), warning, (255, 255, 255), _font(16))
    draw.text((MARGIN, 50), title, INK, _font(26))


def _scale(draw: ImageDraw.ImageDraw, left: int, seconds: float) -> None:
    """Write times over the timeline, at round steps."""
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000)
    step = next((each for each in steps if seconds / each <= 7), steps[-1])
    for number in range(int(seconds / step) + 1 if seconds > 0 else 1):
        at = left + BAR * number * step / max(seconds, 1e-9)
        draw.line((at, HEAD - 14, at, HEAD - 8), fill=SOFT, width=1)
        text = clock(number * step)
        text = text if step < 1 else text.rpartition(".")[0]
        draw.text((at, HEAD - 34), text, SOFT, _font(14), anchor="ma" if number else "la")


def _row(
    page: Image.Image, draw: ImageDraw.ImageDraw, row: Row, top: int, lefts: tuple[int, int], seconds: float
) -> None:
    colour, (words, left) = VISIBLE if row.visible else REPLACED, lefts
    for place, (time, picture) in enumerate(row.pictures):
        x = MARGIN + place * (TILE + GAP)
        fitted = _fitted(picture, (TILE, TILE))
        page.paste(fitted, (x + (TILE - fitted.width) // 2, top + (TILE - fitted.height) // 2))
        draw.text((x, top + TILE + 2), clock(time), SOFT, _font(13))
    draw.text((words, top), f"{row.number}", colour, _font(34))
    for place, text in enumerate(row.words):
        draw.text((words + 70, top + 6 + place * 22), text, INK if place == 0 else SOFT, _font(16))
    middle = top + TILE // 2
    draw.line((left, middle, left + BAR, middle), fill=RULE, width=2)
    for first, last in row.spans:
        ends = (left + BAR * time / max(seconds, 1e-9) for time in (first, last))
        a, b = ends
        draw.rectangle((a, middle - 9, max(b, a + 3), middle + 9), fill=colour)


def _fitted(picture: Levels, size: tuple[int, int]) -> Image.Image:
    """Return a picture as large as it can be within a size."""
    image = Image.fromarray(np.ascontiguousarray(picture))
    ratio = min(size[0] / image.width, size[1] / image.height)
    fitted = max(1, round(image.width * ratio)), max(1, round(image.height * ratio))
    return image.resize(fitted, Image.Resampling.LANCZOS if ratio < 1 else Image.Resampling.BICUBIC)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
