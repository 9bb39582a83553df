"""The contact sheet of many releases: its rows stand beside each other, so that the page fits a screen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from dpveil.cli import sheet as wide
from dpveil.cli.sheet import ALARM, INK, MARGIN, PAPER, RULE, SOFT, Row, Sheet, Tile, broken, fitting, font

TALL: Final = 2400
"""Height that a page should not exceed. This and all lengths below are in pixels."""
SIDE: Final = 200
"""Side of a square picture; others have the same area, and are at least as wide."""
BROAD: Final = 3600
"""Width from which a page may be higher than that, up to a square."""
GAP: Final = 14
"""Space between pictures."""
APART: Final = 26
"""Space between groups."""
BELOW: Final = 18
"""Space below groups."""
TITLE: Final = 52
"""Height of the title above all groups."""
NAME: Final = 73
"""Height of a group's name and words."""
HEAD: Final = 22
"""Height of a picture's budget."""
LINE: Final = 18
"""Height of a line of a caption."""
SMALL: Final = 14
"""Size of the letters of captions."""


@dataclass(frozen=True)
class _Group:
    """One row of the sheet without its empty places: its `tiles` stay beside each other."""

    row: Row
    tiles: tuple[Tile, ...]
    cell: tuple[int, int]

    @property
    def width(self) -> int:
        """The width of its pictures and the space between them."""
        return len(self.tiles) * (self.cell[0] + GAP) - GAP

    @property
    def height(self) -> int:
        """The height from its name to the last line of a caption."""
        lines = max(len(_caption(tile, self.cell[0])) for tile in self.tiles)
        return NAME + HEAD + self.cell[1] + 8 + lines * LINE


def draw_wrapped(sheet: Sheet) -> UInt8[np.ndarray, "H W 3"]:
    """Return the page as an image, at most as high as `TALL` unless that would be too wide for a screen."""
    cell = _smaller(sheet.cell)
    groups = [_Group(row, tuple(tile for tile in row.tiles if tile), cell) for row in sheet.rows]
    room = max(group.width for group in groups)
    while True:
        lines = [*_lines(groups, room)]
        width = max(2 * MARGIN + max(_ends(line)[-1] for line in lines), wide.LEAST_WIDTH)
        top = wide.header_height(sheet, width)
        heights = [max(group.height for group in line) + BELOW for line in lines]
        height = top + TITLE + sum(heights) + MARGIN - BELOW
        if height <= TALL or height <= width >= BROAD or len(lines) == 1:
            break
        room += cell[0] + APART
    page = Image.new("RGB", (width, height), PAPER)
    wide.draw_header(page, sheet, top)
    draw = ImageDraw.Draw(page)
    draw.text((MARGIN, top + 4), sheet.sections[0].title, font=font(25), fill=INK)
    y = top + TITLE
    for line, high in zip(lines, heights, strict=True):
        for group, end in zip(line, _ends(line), strict=True):
            _draw(page, group, MARGIN + end - group.width, y)
        y += high
    return np.asarray(page)


def _smaller(cell: tuple[int, int]) -> tuple[int, int]:
    """Return a cell of the same shape whose area is that of `SIDE`, at least so wide."""
    ratio = min(1.0, SIDE / math.sqrt(cell[0] * cell[1]))
    return max(SIDE, round(cell[0] * ratio)), max(1, round(cell[1] * ratio))


def _lines(groups: Sequence[_Group], room: int) -> Iterator[list[_Group]]:
    """Yield the groups that stand beside each other, in their order, each line within `room`."""
    line: list[_Group] = []
    for group in groups:
        if line and _ends([*line, group])[-1] > room:
            yield line
            line = []
        line.append(group)
    yield line


def _ends(line: Sequence[_Group]) -> list[int]:
    """Return the right ends of groups, from the left end of the first."""
    ends = [0]
    for group in line:
        ends.append(ends[-1] + group.width + APART * (len(ends) > 1))
    return ends[1:]


def _caption(tile: Tile, width: int) -> list[tuple[str, bool]]:
    """Return the lines of a caption, and whether each is red."""
    told = [(broken(line, font(SMALL), width), number in tile.loud) for number, line in enumerate(tile.lines)]
    return [(text, red) for lines, red in told for text in lines]


def _draw(page: Image.Image, group: _Group, left: int, top: int) -> None:
    """Draw a group: a rule, its name and words, and its pictures, each between its budget and its caption."""
    draw, (width, height) = ImageDraw.Draw(page), group.cell
    draw.line((left, top, left + group.width, top), fill=RULE, width=2)
    name, words = group.row.title, (" ".join(group.row.words[:2]), *group.row.words[2:])
    draw.text((left, top + 6), name, font=fitting(name, 22, group.width), fill=INK)
    for number, text in enumerate(words[:2]):
        at = (left, top + 35 + LINE * number)
        draw.text(at, text, font=fitting(text, SMALL, group.width), fill=SOFT)
    for number, tile in enumerate(group.tiles):
        x, y = left + number * (width + GAP), top + NAME
        draw.text((x, y), tile.head, font=font(SMALL), fill=SOFT)
        wide.paste(page, tile.picture, (x, y + HEAD), group.cell)
        for place, (text, red) in enumerate(_caption(tile, width)):
            at = (x, y + HEAD + height + 4 + LINE * place)
            draw.text(at, text, font=font(SMALL), fill=ALARM if red else INK)
