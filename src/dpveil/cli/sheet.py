"""The contact sheet: many releases on one page, each captioned with its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.envelope import PUBLISHABLE
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


Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True)
class Tile:
    """One release: its picture and the lines of its caption; `loud` are the indices of red lines.

    `head` is its budget, for sheets without columns.
    """

    picture: UInt8[np.ndarray, "h w c"]
    lines: tuple[str, ...]
    loud: frozenset[int] = frozenset()
    head: str = ""


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


def page_size(sheet: Sheet) -> tuple[int, int]:
    """Return the width and height of the page."""
    width = max(_lefts(sheet)[-1] + sheet.cell[0] + MARGIN, LEAST_WIDTH)
    return width, header_height(sheet, width) + HEADS + len(sheet.rows) * _step(sheet) + MARGIN


def draw_sheet(sheet: Sheet) -> UInt8[np.ndarray, "H W 3"]:
    """Return the page as an image."""
    labels, step, lefts, size = _label_width(sheet.rows), _step(sheet), _lefts(sheet), page_size(sheet)
    header = header_height(sheet, size[0])
    page = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(page)
    draw_header(page, sheet, header)
    _column_heads(draw, sheet, lefts, header)
    for number, row in enumerate(sheet.rows):
        top = header + HEADS + number * step
        _row_label(draw, row, top + max(0, (sheet.cell[1] - LABEL) // 2), labels)
        for left, tile in zip(lefts, row.tiles, strict=True):
            if tile is not None:
                _tile(page, left, top, tile, sheet.cell)
    return np.asarray(page)


def font(size: int) -> Font:
    """Return the font of this size."""
    return ImageFont.load_default(size)


def fitting(text: str, size: int, width: int) -> Font:
    """Return the font of `size`, or the largest smaller one in which `text` is at most `width` wide."""
    while size > 9 and font(size).getlength(text) > width:
        size -= 1
    return font(size)


def _label_width(rows: Sequence[Row]) -> int:
    return max([LABELS, *(24 + round(font(30).getlength(row.title)) for row in rows)])


def _step(sheet: Sheet) -> int:
    """Return the distance of two rows."""
    captions = max(len(tile.lines) for row in sheet.rows for tile in row.tiles if tile) * LINE + 12
    return max(sheet.cell[1] + captions, LABEL) + GAP


def _lefts(sheet: Sheet) -> list[int]:
    """Return the left edge of each column in pixels."""
    lefts, x = [], MARGIN + _label_width(sheet.rows)
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


def broken(text: str, letters: Font, room: int) -> list[str]:
    """Return the lines of a text that is at most `room` wide, as far as its words allow."""
    now, *words = text.split(" ")
    lines: list[str] = []
    for word in words:
        if letters.getlength(f"{now} {word}") > room:
            lines.append(now)
            now = word
        else:
            now = f"{now} {word}"
    return [*lines, now]


def _header_lines(sheet: Sheet, width: int) -> list[str]:
    """Return the text of the header, wrapped to the page's width."""
    room = width - 2 * MARGIN - _thumbnail(sheet).width - 32
    return [part for line in sheet.lines for part in broken(line, font(21), room)]


def header_height(sheet: Sheet, width: int) -> int:
    """Return the height of the header of a page of this width."""
    lines = len(_header_lines(sheet, width)) - 4
    return HEADER + 32 * max(0, lines) + (42 if sheet.warning else 0)


def draw_header(page: Image.Image, sheet: Sheet, height: int) -> None:
    """Draw the warning, the original, the title and the text of a sheet."""
    draw, small, top = ImageDraw.Draw(page), _thumbnail(sheet), MARGIN
    if sheet.warning:
        draw.rectangle((0, 0, page.width, 50), fill=ALARM)
        letters = fitting(sheet.warning, 24, page.width - 2 * MARGIN)
        draw.text((MARGIN, 25), sheet.warning, font=letters, fill=PAPER, anchor="lm")
        top += 42
    page.paste(small, (MARGIN, top - 10))
    x = MARGIN + small.width + 32
    draw.text((x, top - 14), sheet.title, font=fitting(sheet.title, 38, page.width - MARGIN - x), fill=INK)
    for number, line in enumerate(_header_lines(sheet, page.width)):
        draw.text((x, top + 46 + number * 32), line, font=font(21), fill=SOFT)
    draw.line((MARGIN, height - 8, page.width - MARGIN, height - 8), fill=RULE, width=2)


def _column_heads(draw: ImageDraw.ImageDraw, sheet: Sheet, lefts: Sequence[int], top: int) -> None:
    places = iter(lefts)
    for section in sheet.sections:
        for number, column in enumerate(section.columns):
            x = next(places)
            if number == 0:
                draw.text((x, top + 4), section.title, font=font(25), fill=INK)
            draw.text((x, top + 46), column, font=fitting(column, 22, sheet.cell[0]), fill=SOFT)


def _row_label(draw: ImageDraw.ImageDraw, row: Row, y: int, width: int) -> None:
    draw.text((MARGIN, y), row.title, font=font(30), fill=INK)
    for number, line in enumerate(row.words):
        draw.text((MARGIN, y + 44 + 26 * number), line, font=fitting(line, 20, width - 16), fill=SOFT)


def _tile(page: Image.Image, x: int, y: int, tile: Tile, cell: tuple[int, int]) -> None:
    paste(page, tile.picture, (x, y), cell)
    draw = ImageDraw.Draw(page)
    for number, line in enumerate(tile.lines):
        colour = ALARM if number in tile.loud else INK
        draw.text(
            (x, y + cell[1] + 6 + LINE * number), line, font=fitting(line, 19, cell[0] + 4), fill=colour
        )


def paste(
    page: Image.Image, picture: UInt8[np.ndarray, "h w c"], place: tuple[int, int], cell: tuple[int, int]
) -> None:
    """Draw a picture as large as it fits into a cell of this width and height."""
    height, width = picture.shape[:2]
    ratio = min(cell[0] / width, cell[1] / height)
    page.paste(resized(picture, (max(1, round(width * ratio)), max(1, round(height * ratio)))), place)


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
