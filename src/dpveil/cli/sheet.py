"""The contact sheet: many releases on one page, each captioned with its guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.array_types import UInt8
from dpveil.core.envelope import PUBLISHABLE
from dpveil.core.region import Box

PICTURE_SIDE: Final = 264  # default side of a picture. This and all lengths below are in pixels
GAP: Final = 16
LINE: Final = 23  # height of a line of a caption
MARGIN: Final = 44
LABELS: Final = 210  # least width of the rows' labels
HEADER: Final = 260
HEADS: Final = 84  # heights of the header, at least, and of the column heads
THUMBNAIL: Final = (256, 192)  # largest width and height of the original
LEAST_WIDTH: Final = 1100  # least width of the page
LABEL: Final = 142  # height of a row's label: a title and up to three lines
BANNER: Final = 50  # height of the warning
PAPER: Final = (250, 249, 246)
INK: Final = (28, 30, 34)
SOFT: Final = (104, 108, 116)
ALARM: Final = (176, 42, 32)
RULE: Final = (214, 211, 204)
LOUD: Final = 128
"""Noise scale in grey levels above which a caption is red, because hardly anything is visible."""


@dataclass(frozen=True)
class Tile:
    """One release: its picture and the lines of its caption; `loud` are the indices of red lines."""

    picture: UInt8[np.ndarray, "h w c"]
    lines: tuple[str, ...]
    loud: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Row:
    """Tiles from left to right, None for an empty place, with a title and words at their left."""

    title: str
    words: tuple[str, ...]
    tiles: tuple[Tile | None, ...]


@dataclass(frozen=True)
class Sheet:
    """A page: a header with the original and text, and rows of tiles under `columns`.

    A column is the title of its section, and what tells it from others there. `boxes` are outlined in the
    original. `warning` is on a red bar at the top. `cell` is the width and height of every picture in pixels.
    """

    title: str
    lines: tuple[str, ...]
    original: UInt8[np.ndarray, "h w c"]
    boxes: tuple[Box, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    warning: str = ""
    cell: tuple[int, int] = (PICTURE_SIDE, PICTURE_SIDE)


def noise_line(scale: float | None) -> str:
    if scale is None:
        return "levels without noise"
    digits = f"{scale:.3g}" if scale < 1 else f"{scale:,.{1 if scale < 100 else 0}f}"
    return f"noise scale {digits} grey levels"


def loud(strength: str | None, noise_scale: float | None) -> frozenset[int]:
    """Return the indices of red caption lines: 0 for a guarantee too weak to publish, 1 for pure noise."""
    red = (strength not in PUBLISHABLE, (noise_scale or 0) > LOUD)
    return frozenset(number for number, alarming in enumerate(red) if alarming)


def draw_sheet(sheet: Sheet) -> UInt8[np.ndarray, "H W 3"]:
    cell, small = sheet.cell, _thumbnail(sheet)
    labels = max([LABELS, *(24 + round(_font(30).getlength(row.title)) for row in sheet.rows)])
    lefts = [MARGIN + labels + number * (cell[0] + GAP) for number in range(len(sheet.columns))]
    width = max(lefts[-1] + cell[0] + MARGIN, LEAST_WIDTH)
    captions = max(len(tile.lines) for row in sheet.rows for tile in row.tiles if tile) * LINE + 12
    step = max(cell[1] + captions, LABEL) + GAP
    beside = MARGIN + small.width + 32
    letters = int(26 * (width - MARGIN - beside) / _font(21).getlength("abcdefghijklmnopqrstuvwxyz"))
    text = [part for line in sheet.lines for part in wrap(line, letters)]
    head = MARGIN + BANNER * bool(sheet.warning)
    header = head + max(HEADER - MARGIN, 56 + 32 * len(text))
    page = Image.new("RGB", (width, header + HEADS + len(sheet.rows) * step + MARGIN), PAPER)
    draw = ImageDraw.Draw(page)

    def write(x: int, y: int, words: str, size: int, room: int, colour: tuple[int, int, int] = SOFT) -> None:
        """Write a line in letters of `size`, or smaller ones in which it is not wider than the room."""
        while size > 9 and _font(size).getlength(words) > room:
            size -= 1
        draw.text((x, y), words, font=_font(size), fill=colour)

    if sheet.warning:
        draw.rectangle((0, 0, width, BANNER), fill=ALARM)
        write(MARGIN, 12, sheet.warning, 24, width - 2 * MARGIN, PAPER)
    page.paste(small, (MARGIN, head - 10))
    write(beside, head - 14, sheet.title, 38, width - MARGIN - beside, INK)
    for number, line in enumerate(text):
        write(beside, head + 46 + number * 32, line, 21, width - MARGIN - beside)
    draw.line((MARGIN, header - 8, width - MARGIN, header - 8), fill=RULE, width=2)
    places = iter(lefts)
    for title, section in groupby(sheet.columns, key=lambda column: column[0]):
        for number, (_, column) in enumerate(section):
            left = next(places)
            write(left, header + 4, "" if number else title, 25, width - left, INK)
            write(left, header + 46, column, 22, cell[0])
    for number, row in enumerate(sheet.rows):
        top = header + HEADS + number * step
        middle = top + max(0, (cell[1] - LABEL) // 2)
        write(MARGIN, middle, row.title, 30, labels, INK)
        for n, line in enumerate(row.words):
            write(MARGIN, middle + 44 + 26 * n, line, 20, labels - 16)
        for left, tile in zip(lefts, row.tiles, strict=True):
            if tile is not None:
                page.paste(fit_picture(tile.picture, cell), (left, top))
                for n, line in enumerate(tile.lines):
                    colour = ALARM if n in tile.loud else INK
                    write(left, top + cell[1] + 6 + LINE * n, line, 19, cell[0] + 4, colour)
    return np.asarray(page)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _thumbnail(sheet: Sheet) -> Image.Image:
    small = fit_picture(sheet.original, THUMBNAIL)
    ratio, draw = small.width / sheet.original.shape[1], ImageDraw.Draw(small)
    for box in sheet.boxes:
        corners = [round(v * ratio) for v in (box.x, box.y, box.x + box.w, box.y + box.h)]
        draw.rectangle(corners, outline=(255, 255, 255), width=2)
    return small


def fit_picture(picture: UInt8[np.ndarray, "h w c"], cell: tuple[int, int]) -> Image.Image:
    """Return a picture as large as it fits into a cell of this width and height, in colour."""
    height, width = picture.shape[:2]
    ratio = min(cell[0] / width, cell[1] / height)
    size = max(1, round(width * ratio)), max(1, round(height * ratio))
    colour = Image.fromarray(np.ascontiguousarray(np.broadcast_to(picture, (height, width, 3))))
    if size[0] > width or size[1] > height:
        return colour.resize(size, Image.Resampling.NEAREST)
    return colour.resize(size, Image.Resampling.LANCZOS, reducing_gap=3)
