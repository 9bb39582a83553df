"""The contact sheet: many releases on one page, each captioned with its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.certificate import PUBLISHABLE
from dpveil.core.region import Box

SIDE: Final = 264
"""Default side of a picture. This and all lengths below are in pixels."""
GAP: Final = 16
"""Space between tiles."""
LINE: Final = 23
"""Height of a line of a caption."""
MARGIN: Final = 44
"""Space around the page."""
LABELS: Final = 210
"""Least width of the rows' labels."""
BETWEEN: Final = 44
"""Additional space between sections."""
HEADER: Final = 260
"""Least height of the header."""
THUMBNAIL: Final = 192
"""Largest height of the original."""
LEAST_WIDTH: Final = 1100
"""Least width of the page."""
HEADS: Final = 84
"""Height of the column heads."""
LABEL: Final = 142
"""Height of a row's label: a title and up to three lines."""
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
class Section:
    """Columns that belong together, under one title."""

    title: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """A page: a header with the original and text, and rows of tiles under sections of columns.

    `boxes` are outlined in the original. `warning` is on a red bar at the top. `cell` is the width and height
    of every picture in pixels.
    """

    title: str
    lines: tuple[str, ...]
    original: UInt8[np.ndarray, "h w c"]
    boxes: tuple[Box, ...]
    sections: tuple[Section, ...]
    rows: tuple[Row, ...]
    warning: str = ""
    cell: tuple[int, int] = (SIDE, SIDE)


def noise_line(scale: float | None) -> str:
    """Return the line of a tile with the noise scale in grey levels."""
    if scale is None:
        return "levels without noise"
    digits = f"{scale:.3g}" if scale < 1 else f"{scale:,.{1 if scale < 100 else 0}f}"
    return f"noise scale {digits} grey levels"


def draw_sheet(sheet: Sheet) -> UInt8[np.ndarray, "H W 3"]:
    """Return the page as an image."""
    labels = _label_width(sheet.rows)
    captions = max(len(tile.lines) for row in sheet.rows for tile in row.tiles if tile) * LINE + 12
    step = max(sheet.cell[1] + captions, LABEL) + GAP
    lefts = _lefts(sheet, MARGIN + labels)
    width = max(lefts[-1] + sheet.cell[0] + MARGIN, LEAST_WIDTH)
    header = _header_height(sheet, width)
    page = Image.new("RGB", (width, header + HEADS + len(sheet.rows) * step + MARGIN), PAPER)
    draw = ImageDraw.Draw(page)
    _header(page, sheet, header)
    _column_heads(draw, sheet, lefts, header)
    for number, row in enumerate(sheet.rows):
        top = header + HEADS + number * step
        _row_label(draw, row, top + max(0, (sheet.cell[1] - LABEL) // 2), labels)
        for left, tile in zip(lefts, row.tiles, strict=True):
            if tile is not None:
                _tile(page, left, top, tile, sheet.cell)
    return np.asarray(page)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _fitting(text: str, size: int, width: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return the font of `size`, or the largest smaller one in which `text` is at most `width` wide."""
    while size > 9 and _font(size).getlength(text) > width:
        size -= 1
    return _font(size)


def _label_width(rows: Sequence[Row]) -> int:
    return max([LABELS, *(24 + round(_font(30).getlength(row.title)) for row in rows)])


def _lefts(sheet: Sheet, first: int) -> list[int]:
    """Return the left edge of each column in pixels."""
    lefts, x = [], first
    for section in sheet.sections:
        for _ in section.columns:
            lefts.append(x)
            x += sheet.cell[0] + GAP
        x += BETWEEN
    return lefts


def _thumbnail(sheet: Sheet) -> Image.Image:
    """Return the original, at most 192 pixels high and 256 wide, with its boxes outlined."""
    height, width = sheet.original.shape[:2]
    ratio = min(THUMBNAIL / height, THUMBNAIL * 4 / 3 / width)
    size = max(1, round(width * ratio)), max(1, round(height * ratio))
    small = resized(sheet.original, size)
    draw = ImageDraw.Draw(small)
    for box in sheet.boxes:
        corners = [round(v * ratio) for v in (box.x, box.y, box.x + box.w, box.y + box.h)]
        draw.rectangle(corners, outline=(255, 255, 255), width=2)
    return small


def _header_lines(sheet: Sheet, width: int) -> list[str]:
    """Return the text of the header, wrapped to the page's width."""
    room, font = width - 2 * MARGIN - _thumbnail(sheet).width - 32, _font(21)
    broken: list[str] = []
    for line in sheet.lines:
        words = line.split(" ")
        now = words[0]
        for word in words[1:]:
            if font.getlength(f"{now} {word}") > room:
                broken.append(now)
                now = word
            else:
                now = f"{now} {word}"
        broken.append(now)
    return broken


def _header_height(sheet: Sheet, width: int) -> int:
    lines = len(_header_lines(sheet, width)) - 4
    return HEADER + 32 * max(0, lines) + (42 if sheet.warning else 0)


def _header(page: Image.Image, sheet: Sheet, height: int) -> None:
    draw, small, top = ImageDraw.Draw(page), _thumbnail(sheet), MARGIN
    if sheet.warning:
        draw.rectangle((0, 0, page.width, 50), fill=ALARM)
        font = _fitting(sheet.warning, 24, page.width - 2 * MARGIN)
        draw.text((MARGIN, 25), sheet.warning, font=font, fill=PAPER, anchor="lm")
        top += 42
    page.paste(small, (MARGIN, top - 10))
    x = MARGIN + small.width + 32
    draw.text((x, top - 14), sheet.title, font=_fitting(sheet.title, 38, page.width - MARGIN - x), fill=INK)
    for number, line in enumerate(_header_lines(sheet, page.width)):
        draw.text((x, top + 46 + number * 32), line, font=_font(21), fill=SOFT)
    draw.line((MARGIN, height - 8, page.width - MARGIN, height - 8), fill=RULE, width=2)


def _column_heads(draw: ImageDraw.ImageDraw, sheet: Sheet, lefts: Sequence[int], top: int) -> None:
    places = iter(lefts)
    for section in sheet.sections:
        for number, column in enumerate(section.columns):
            x = next(places)
            if number == 0:
                draw.text((x, top + 4), section.title, font=_font(25), fill=INK)
            draw.text((x, top + 46), column, font=_fitting(column, 22, sheet.cell[0]), fill=SOFT)


def _row_label(draw: ImageDraw.ImageDraw, row: Row, y: int, width: int) -> None:
    draw.text((MARGIN, y), row.title, font=_font(30), fill=INK)
    for number, line in enumerate(row.words):
        draw.text((MARGIN, y + 44 + 26 * number), line, font=_fitting(line, 20, width - 16), fill=SOFT)


def _tile(page: Image.Image, x: int, y: int, tile: Tile, cell: tuple[int, int]) -> None:
    height, width = tile.picture.shape[:2]
    ratio = min(cell[0] / width, cell[1] / height)
    picture = resized(tile.picture, (max(1, round(width * ratio)), max(1, round(height * ratio))))
    page.paste(picture, (x, y))
    draw = ImageDraw.Draw(page)
    for number, line in enumerate(tile.lines):
        colour = ALARM if number in tile.loud else INK
        draw.text(
            (x, y + cell[1] + 6 + LINE * number), line, font=_fitting(line, 19, cell[0] + 4), fill=colour
        )


def loud(strength: str | None, noise_scale: float | None) -> frozenset[int]:
    """Return the indices of red caption lines: 0 for a guarantee too weak to publish, 1 for pure noise."""
    red = (strength not in PUBLISHABLE, (noise_scale or 0) > LOUD)
    return frozenset(number for number, alarming in enumerate(red) if alarming)


def resized(image: UInt8[np.ndarray, "h w c"], size: tuple[int, int]) -> Image.Image:
    """Return `image` in colour at `size` = (width, height), enlarged by nearest neighbour."""
    colour = Image.fromarray(np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3))))
    grows = size[0] > colour.width or size[1] > colour.height
    if grows:
        return colour.resize(size, Image.Resampling.NEAREST)
    return colour.resize(size, Image.Resampling.LANCZOS, reducing_gap=3)
