"""The computations of `dpveil compare`: releases of one photo, their measures, and the sheet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.catalogue import build
from dpveil.cli.compare_view import all_of, around, cell_of, fitted
from dpveil.cli.grid import Line, left_out, settings
from dpveil.cli.sheet import Row, Section, Sheet, Tile, draw_sheet, loud, noise_line, resized
from dpveil.core.guarantee import Guarantee, pixels
from dpveil.core.numbers import Json, show
from dpveil.core.parameters import ALL
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import DPVeilError, NoRegion, RegionError, UsageError
from dpveil.mechanisms.method import Method
from dpveil.metrics import METRICS
from dpveil.noise.bits import BitSource
from dpveil.regions import Spec
from dpveil.release.plan import Plan, plan
from dpveil.release.saving import Release

NOT_PRIVATE: Final = "for the eyes of whoever holds the original: NOT FOR PUBLICATION"
UNITS: Final = {"psnr": " dB"}
"""Units of the measures that have one."""
Levels = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True)
class Compared:
    """One release: its plan, its noise scale in grey levels, its measures against the original, and the
    picture for the sheet.
    """

    plan: Plan
    noise_scale: float | None
    measures: dict[str, float]
    picture: Levels

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole photo."""
        return self.plan.total or self.plan.guarantees[0]

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; an infinite measure, of an unchanged region, is null."""
        finite = {name: value if math.isfinite(value) else None for name, value in self.measures.items()}
        return {
            "method": self.plan.method.name,
            "parameters": self.plan.method.parameters(),
            "regions": [region.record.to_json() for region in self.plan.regions],
            "guarantee": self.guarantee.to_json(),
            "strength": self.plan.strength,
            "noise_scale": self.noise_scale,
            **finite,
        }

    def lines(self) -> tuple[str, ...]:
        """Return the lines of the picture's caption."""
        return self.promise(), self.noise(), "   ".join(self.measured())

    def noise(self) -> str:
        """Return the line with the noise scale; face methods have none."""
        return "a face drawn anew" if self.plan.method.regions == "faces" else noise_line(self.noise_scale)

    def promise(self) -> str:
        """Return the guarantee and its strength, without the name of a metric, which is too long."""
        text, metric = str(self.guarantee), self.guarantee.metric
        text = text.replace(f", d = {metric}", "") if metric else text
        return f"{text}: {self.plan.strength}" if self.guarantee.formal else text

    def measured(self) -> Iterator[str]:
        """Yield every measure with its unit."""
        for name, value in self.measures.items():
            number = f"{value:.{1 if name in UNITS else 3}f}{UNITS.get(name, '')}"
            yield f"{name.upper()} {number if math.isfinite(value) else 'infinite'}"


@dataclass(frozen=True)
class Comparison:
    """All releases of one photo, in lines of one method and neighbourhood.

    `boxes` are the regions and `labels` their names; `view` is the part of the photo that is shown, and
    `cell` the width and height of a picture on the sheet, in pixels.
    """

    photo: Photo
    boxes: tuple[Box, ...]
    labels: tuple[str, ...]
    view: Box
    cell: tuple[int, int]
    lines: tuple[tuple[Line, tuple[Compared | None, ...]], ...]

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object, without the sheet's name."""
        regions: list[Json] = [
            {"label": label, "box": [box.x, box.y, box.w, box.h]}
            for label, box in zip(self.labels, self.boxes, strict=True)
        ]
        releases: list[Json] = [made.to_json() for _, row in self.lines for made in row if made]
        return {"regions": regions, "compared": releases, "warning": NOT_PRIVATE}

    def in_words(self) -> Iterator[str]:
        """Yield a line of column heads, and one for every release."""
        made = [each for _, row in self.lines for each in row if each is not None]
        rows = [(m.plan.method.name, _chosen(m.plan.method), m.promise(), m.noise()) for m in made]
        widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
        measured = [(NEARNESS,), *(tuple(one.measured()) for one in made)]
        for row, measures in zip([COLUMNS, *rows], measured, strict=True):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            yield "  ".join((*cells, *measures))

    def draw(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the sheet as an image, one row a line."""
        count = sum(made is not None for _, row in self.lines for made in row)
        each = " per region" if len(self.boxes) > 1 else ""
        columns = [
            next((e for e in budgets if e is not None), None)
            for budgets in zip(*(map(_budget, line.methods) for line, _ in self.lines), strict=True)
        ]
        sheet = Sheet(
            warning=f"{NOT_PRIVATE.partition(': ')[2]}: {NOT_PRIVATE.partition(': ')[0]}",
            title=f"One photo, {count} ways to release it" if count > 1 else "One photo and a release",
            lines=WORDS,
            original=np.asarray(resized(self.photo.image, fitted(self.photo.image, 256))),
            boxes=() if self.view == all_of(self.photo) else self._outlines(),
            sections=(Section(self._covered(), tuple(_head(e, each) for e in columns)),),
            rows=tuple(_row(line, row, each) for line, row in self.lines),
            cell=self.cell,
        )
        return draw_sheet(sheet)

    def _outlines(self) -> tuple[Box, ...]:
        width = fitted(self.photo.image, 256)[0]
        ratio = width / self.photo.width
        edges = [(b.x * ratio, b.y * ratio, b.w * ratio, b.h * ratio) for b in self.boxes]
        return tuple(Box(int(x), int(y), max(1, round(w)), max(1, round(h))) for x, y, w, h in edges)

    def _covered(self) -> str:
        made = (each for _, row in self.lines for each in row if each is not None)
        if len({frozenset(region.origin.kind for region in one.plan.regions) for one in made}) > 1:
            return "The whole photo, or every face: each method's own"
        if len(self.boxes) > 1:
            return f"{len(self.boxes)} regions together"
        box = self.boxes[0]
        size = f"{box.w} by {box.h} pixels"
        return (
            f"The whole photo, {size}"
            if box == all_of(self.photo)
            else f"{self.labels[0][:1].upper()}{self.labels[0][1:]}, {size}"
        )


COLUMNS: Final = ("METHOD", "SETTINGS", "PROMISE", "NOISE")
NEARNESS: Final = "NEARNESS TO THE ORIGINAL"
WORDS: Final = (
    "Under each release: what it promises, how strong its noise is (255 is white), and how near the original"
    " it is within the regions (equal: SSIM 1, PSNR infinite).",
    "With epsilon alone, an observer can tell two neighbouring photos apart with odds of at most e to the"
    " power of epsilon; with a delta, rare outputs may tell more.",
    "Red promise: practically none, or not formal, so not worth publishing. Red noise: above 128 grey levels"
    " hardly anything is left to see.",
)


def compare(
    photo: Photo,
    lines: Sequence[Line],
    regions: Mapping[str, Sequence[Spec]],
    *,
    every: bool = False,
    options: Mapping[str, str] | None = None,
    bits: BitSource | None = None,
) -> tuple[Comparison, list[str]]:
    """Release `photo` by every method of `lines`; return the comparison, and notes on methods left out.

    `regions` are those of each method, by its usual ones (`Method.regions`). `bits=None` means a fresh secure
    source for each release. With `every`, methods that do not accept these regions, find none, or whose files
    are missing, are left out with a note, which writes arguments as `options`; otherwise they raise. Raises
    `NoRegion` if nothing is found by any, and the errors of `plan`.
    """
    refused: dict[str, DPVeilError] = {}
    planned = [(line, [_planned(photo, m, regions, every, refused) for m in line.methods]) for line in lines]
    planned = [(line, row) for line, row in planned if any(row)]
    if not planned:
        unfound = (error for error in refused.values() if isinstance(error, NoRegion))
        none = NoRegion("no method takes these regions", hint="see --regions of dpveil compare")
        raise next(unfound, none)
    plans = [made for _, row in planned for made in row if made]
    first = next((made for made in plans if made.method != build(None, {})), plans[0])
    boxes = {region.box: region.origin.in_words() for region in first.regions}
    view = around([region.box for made in plans for region in made.regions], photo)
    cell = cell_of(view)
    rows = tuple(
        (line, tuple(None if p is None else _compared(p, p.release(bits=bits), view, cell) for p in row))
        for line, row in planned
    )
    notes = left_out(refused, options or {})
    return Comparison(photo, tuple(boxes), tuple(boxes.values()), view, cell, rows), notes


def _planned(
    photo: Photo,
    method: Method | None,
    regions: Mapping[str, Sequence[Spec]],
    every: bool,
    refused: dict[str, DPVeilError],
) -> Plan | None:
    if method is None:
        return None
    try:
        return plan(photo, method, regions=regions[method.regions])
    except (UsageError, RegionError) as error:
        if not every:
            raise
        refused[method.name] = error
        return None


def _compared(planned: Plan, release: Release, view: Box, cell: tuple[int, int]) -> Compared:
    method, photo = planned.method, planned.photo
    boxes = [region.box for region in planned.regions]
    crops = [(photo.image[box.slices], release.image[box.slices]) for box in boxes]
    scales = [method.noise_scale(height=b.h, width=b.w, channels=photo.channels) for b in boxes]
    seen = release.image[view.slices]
    smaller = view.w > cell[0] or view.h > cell[1]  # keeps no picture as large as the photo in memory
    return Compared(
        plan=planned,
        noise_scale=max((scale for scale in scales if scale is not None), default=None),
        measures={
            name: sum(measure(a, b, data_range=255) for a, b in crops) / len(crops)
            for name, measure in METRICS.items()
        },
        picture=np.asarray(resized(seen, fitted(seen, *cell))) if smaller else seen.copy(),
    )


def _chosen(method: Method) -> str:
    """Return the settings of a method, including a neighbourhood of all pixels."""
    every = "neighbourhood" in method.parameters() and method.parameters()["neighbourhood"] is None
    return ", ".join(text for text in (settings(method), f"neighbourhood {ALL}" * every) if text)


def _budget(method: Method | None) -> Fraction | None:
    """Return the epsilon of a method that has one."""
    epsilon: Fraction | None = getattr(method, "epsilon", None)
    return epsilon


def _head(epsilon: Fraction | None, each: str) -> str:
    return "" if epsilon is None else f"epsilon = {show(epsilon)}{each}"


def _row(line: Line, row: Sequence[Compared | None], each: str) -> Row:
    made = next(entry for entry in row if entry is not None)
    tiles = (
        None
        if e is None
        else Tile(
            e.picture,
            e.lines(),
            loud=loud(e.plan.strength, e.noise_scale),
            head=_head(_budget(e.plan.method), each),
        )
        for e in row
    )
    # The column's head has epsilon, and the row's label the neighbourhood.
    said = ("epsilon",) if made.guarantee.relation.m is None else ("epsilon", "neighbourhood")
    chosen = settings(made.plan.method, but=said)
    return Row(line.name, (*_neighbours(made.guarantee), *[chosen] * bool(chosen)), tuple(tiles))


def _neighbours(guarantee: Guarantee) -> tuple[str, str]:
    """Return the two lines under a method's name that define neighbours."""
    relation = guarantee.relation
    if not guarantee.formal:
        return "heuristic:", "nothing is promised"
    if relation.m is not None:
        return "neighbours differ in", f"at most {pixels(relation.m)}"
    if relation.name == "singular-values":
        return "neighbours share", "U and V"
    return "neighbours differ", "in any way"
