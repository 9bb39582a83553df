"""`dpveil compare`: one photo released by every method at several budgets, on one sheet with measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from dpveil.catalogue import DEFAULT, build, row_of
from dpveil.cli import exits, say
from dpveil.cli.command import CommandLineError, options_of
from dpveil.cli.options import NO_REGIONS, AsJson, Chosen, Force, MaxPixels, Text, number, takes_regions
from dpveil.cli.review import check_apart_from, check_name
from dpveil.cli.sheet import Row, Sheet, Tile, draw_sheet, fit_picture, loud, noise_line
from dpveil.core.array_types import UInt8
from dpveil.core.guarantee import Guarantee, pixels
from dpveil.core.parameters import ALL
from dpveil.core.photo import Photo
from dpveil.core.rationals import Json, show
from dpveil.core.region import Box
from dpveil.core.registry import METHODS
from dpveil.errors import (
    DPVeilError,
    InvalidParameter,
    ModelError,
    NoRegion,
    RegionError,
    UnknownName,
    UsageError,
)
from dpveil.io.reading import read
from dpveil.io.writing import encode, write_together
from dpveil.mechanisms.method import Method
from dpveil.metrics import METRICS
from dpveil.noise.bits import BitSource
from dpveil.regions import Spec
from dpveil.release.plan import Plan, plan
from dpveil.release.saving import Release

DELTA: Final = "1e-6"  # default δ for methods that require one
USUAL: Final = "the default"  # the settings of what `dpveil obfuscate` does without options


@dataclass(frozen=True)
class Line:
    """One method at one neighbourhood: an object for every budget, None for a duplicate or a refused one."""

    name: str
    neighbourhood: int | None
    methods: tuple[Method | None, ...]


def neighbourhoods_of(words: Sequence[str]) -> tuple[int | None, ...]:
    """Return the neighbourhoods in pixels, without duplicates; "all" is None. Raises `InvalidParameter`."""
    found = [None if word.strip() == ALL else number(word) for word in words]
    for value in found:
        if isinstance(value, str):
            hint = f"a whole number, or {ALL}"
            raise InvalidParameter("--neighbourhood", value, "is not a number of pixels", hint=hint)
    return tuple(dict.fromkeys(found))  # type: ignore[arg-type]


def lines_of(
    names: Sequence[str],
    budgets: Sequence[str],
    neighbourhoods: Sequence[int | None],
    *,
    every: bool,
    options: Mapping[str, str] | None = None,
    **common: Any,
) -> tuple[list[Line], list[str]]:
    """Return the lines of the comparison and notes on methods left out, which write arguments as `options`.

    Numbers are as the user wrote them. A parameter is passed to the methods that have it, as are `common`
    ones; a default δ only to those that require it. With `every`, methods that require other parameters, or
    files that are missing, and budgets that a method does not take, are left out with a note; otherwise they
    raise `InvalidParameter` or `ModelError`. The first of all methods is the default, as `plan` has it.
    Raises `UnknownName` for an unknown method.
    """
    made: list[Line] = []
    refused: dict[str, DPVeilError] = {}
    for name in names:
        varies = name in METHODS and "neighbourhood" in {field.name for field in fields(METHODS[name])}
        seen: set[Method | None] = set()  # some do not have all parameters that vary
        for m in neighbourhoods if varies else neighbourhoods[:1]:
            row: list[Method | None] = []
            for epsilon in budgets:
                method = None
                try:
                    method = _built(name, {**common, "epsilon": epsilon, "neighbourhood": m})
                except (UsageError, ModelError) as error:
                    argument = getattr(error, "name", "")
                    if not every or argument in ("delta", "block", "neighbourhood"):
                        raise
                    refused[f"{name} at {epsilon}" if argument == "epsilon" else name] = error
                row.append(None if method in seen else method)
                seen.add(method)
            if there := next(filter(None, row), None):
                made.append(Line(name, getattr(there, "neighbourhood", None), tuple(row)))
    built = [one for line in made for one in line.methods]
    if refused and not any(getattr(one, "epsilon", None) for one in built):
        raise next(iter(refused.values()))
    if common.get("metric") and not any(getattr(one, "metric", None) for one in built):
        hint = "--method latent"
        raise InvalidParameter("metric", common["metric"], "is taken by no method here", hint=hint)
    if every:
        made.insert(0, Line(DEFAULT, None, (build(None, {}), *[None] * (len(budgets) - 1))))
    return made, left_out(refused, options or {})


def _built(name: str, given: Mapping[str, Any]) -> Method:
    """Return the method with those parameters that it has, a default δ if required, and `typical` ones.

    Raises `UnknownName` and `InvalidParameter`.
    """
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    known = {field.name for field in fields(METHODS[name])}
    own = METHODS[name].typical | {n: v for n, v in given.items() if n in known and v is not None}
    own |= {"guarantee": "metric"} if "metric" in own else {}
    try:
        return build(name, own)
    except InvalidParameter:
        if "delta" not in known or "delta" in own:
            raise
        return build(name, {**own, "delta": DELTA})


def left_out(refused: Mapping[str, DPVeilError], options: Mapping[str, str]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, error in refused.items():
        reasons.setdefault(str(CommandLineError(error, options)), []).append(name)
    return [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}"
        for why, names in reasons.items()
    ]


def settings(method: Method, *, but: Sequence[str] = ()) -> str:
    """Return the parameters that are not their defaults, without those in `but` and hashes of files.

    >>> settings(build("dp-samp", {"epsilon": 5, "clusters": 8}))
    'epsilon 5, clusters 8'
    """
    if method == build(None, {}):
        return USUAL
    usual = row_of(type(method))["parameters"]
    told = []
    for name, value in method.parameters().items():
        if value not in (None, usual[name]) and name not in but and "sha256:" not in str(value):
            word = name.replace("_", " ")
            told.append(word if value is True else f"{word} {value}")
    return ", ".join(told)


WIDE: Final = 340  # width in pixels of a square picture on the sheet; others have about the same area
CONTEXT: Final = 0.4  # margin shown around the regions, relative to their extent


def bounding_view(boxes: Sequence[Box], photo: Photo) -> Box:
    """Return the part of the photo to show: the bounding box of all regions with a margin."""
    left, top = min(b.x for b in boxes), min(b.y for b in boxes)
    right, bottom = max(b.x + b.w for b in boxes), max(b.y + b.h for b in boxes)
    more = round(CONTEXT * max(right - left, bottom - top))
    x, y = max(0, left - more), max(0, top - more)
    return Box(x, y, min(photo.width, right + more) - x, min(photo.height, bottom + more) - y)


NOT_PRIVATE: Final = "for the eyes of whoever holds the original: NOT FOR PUBLICATION"
UNITS: Final = {"psnr": " dB"}  # units of the measures that have one
Levels = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True)
class Compared:
    """One release: its plan, noise scale in grey levels, measures against the original, and picture."""

    plan: Plan
    noise_scale: float | None
    measures: dict[str, float]
    picture: Levels

    @classmethod
    def of(cls, planned: Plan, release: Release, view: Box, cell: tuple[int, int]) -> Compared:
        """Return a release within its regions, and what is seen of it in the view of the photo."""
        method, photo = planned.method, planned.photo
        boxes = [region.box for region in planned.regions]
        crops = [(photo.image[box.slices], release.image[box.slices]) for box in boxes]
        scales = [method.noise_scale(height=b.h, width=b.w, channels=photo.channels) for b in boxes]
        measures = {
            name: sum(measure(a, b, data_range=255) for a, b in crops) / len(crops)
            for name, measure in METRICS.items()
        }
        seen = release.image[view.slices]
        smaller = view.w > cell[0] or view.h > cell[1]  # keeps no picture as large as the photo in memory
        picture = np.asarray(fit_picture(seen, cell)) if smaller else seen.copy()
        noise = max((scale for scale in scales if scale is not None), default=None)
        return cls(planned, noise, measures, picture)

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.total or self.plan.guarantees[0]

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; an infinite measure, of an unchanged region, is null."""
        return {
            "method": self.plan.method.name,
            "parameters": self.plan.method.parameters(),
            "regions": [region.record.to_json() for region in self.plan.regions],
            "guarantee": self.guarantee.to_json(),
            "strength": self.plan.strength,
            "noise_scale": self.noise_scale,
            **{name: value if math.isfinite(value) else None for name, value in self.measures.items()},
        }

    def cells(self) -> tuple[str, str, str]:
        """Return the promise and its strength, without a metric's long name; the noise; and all measures."""
        promise = str(self.guarantee).replace(f", d = {self.guarantee.metric}", "")
        promise += f": {self.plan.strength}" * self.guarantee.formal
        noise = "a face drawn anew" if self.plan.method.draws_faces else noise_line(self.noise_scale)
        measures = []
        for name, value in self.measures.items():
            shown = f"{value:.{1 if name in UNITS else 3}f}{UNITS.get(name, '')}"
            measures.append(f"{name.upper()} {shown if math.isfinite(value) else 'infinite'}")
        return promise, noise, "  ".join(measures)


@dataclass(frozen=True)
class Comparison:
    """All releases of one photo, in lines of one method and neighbourhood.

    `regions` maps boxes to their names; `view` is the part of the photo that is shown, and `cell` the width
    and height of a picture on the sheet, in pixels.
    """

    photo: Photo
    regions: Mapping[Box, str]
    view: Box
    cell: tuple[int, int]
    lines: tuple[tuple[Line, tuple[Compared | None, ...]], ...]

    @property
    def made(self) -> list[Compared]:
        return [each for _, row in self.lines for each in row if each is not None]

    def to_json(self) -> dict[str, Json]:
        boxes = self.regions.items()
        regions: list[Json] = [{"label": name, "box": [b.x, b.y, b.w, b.h]} for b, name in boxes]
        compared: list[Json] = [made.to_json() for made in self.made]
        return {"regions": regions, "compared": compared, "warning": NOT_PRIVATE}

    def draw(self) -> UInt8[np.ndarray, "H W 3"]:
        count, whole = len(self.made), Box(0, 0, self.photo.width, self.photo.height)
        each = " per region" if len(self.regions) > 1 else ""
        heads = []
        for column in zip(*(line.methods for line, _ in self.lines), strict=True):
            epsilon = next((e for e in (getattr(one, "epsilon", None) for one in column) if e), None)
            heads.append("" if epsilon is None else f"epsilon = {show(epsilon)}{each}")
        box, label = next(iter(self.regions.items()))
        about = f"{label.capitalize()}, {box.w} by {box.h} pixels"
        if len({frozenset(region.origin.kind for region in one.plan.regions) for one in self.made}) > 1:
            about = "Each method's own regions"
        elif len(self.regions) > 1:
            about = f"{len(self.regions)} regions together"
        sheet = Sheet(
            warning=NOT_PRIVATE,
            title=f"One photo, {count} ways to release it" if count > 1 else "One photo and a release",
            lines=WORDS,
            original=self.photo.image,
            boxes=() if self.view == whole else tuple(self.regions),
            columns=tuple((about, head) for head in heads),
            rows=tuple(sheet_row(line, row) for line, row in self.lines),
            cell=self.cell,
        )
        return draw_sheet(sheet)


def sheet_row(line: Line, row: Sequence[Compared | None]) -> Row:
    """Return the row of the sheet, whose label defines neighbours; the column's head has epsilon."""
    tiles = (
        None if e is None else Tile(e.picture, e.cells(), loud(e.plan.strength, e.noise_scale)) for e in row
    )
    made = next(entry for entry in row if entry is not None)
    relation, said = made.guarantee.relation, ["epsilon"]
    if not made.guarantee.formal:
        words = ["heuristic:", "nothing is promised"]
    elif relation.m is not None:
        words, said = ["neighbours differ in", f"at most {pixels(relation.m)}"], ["epsilon", "neighbourhood"]
    elif relation.name == "singular-values":
        words = ["neighbours share", "U and V"]
    else:
        words = ["neighbours differ", "in any way"]
    chosen = settings(made.plan.method, but=said)
    return Row(line.name, (*words, *[chosen] * bool(chosen)), tuple(tiles))


WORDS: Final = (
    "Under each release: what it promises, how strong its noise is (255 is white), and how near the original"
    " it is within the regions (equal: SSIM 1, PSNR infinite).",
    "With epsilon alone, an observer can tell two neighbouring photos apart with odds of at most e to the"
    " power of epsilon; with a delta, rare outputs may tell more.",
    "Red promise: practically none, or not formal, so not worth publishing. Red noise: above 128 grey levels"
    " hardly anything is left to see.",
)


NONE: Final = NoRegion("no method takes these regions", hint="see --regions of dpveil compare")


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

    `regions` are those of methods that draw faces ("faces") and of others ("whole"). `bits=None` means fresh
    secure bits for each release. With `every`, methods that do not accept these regions, find none, or whose
    files are missing, are left out with a note, which writes arguments as `options`; otherwise they raise.
    """
    refused: dict[str, DPVeilError] = {}
    planned: list[tuple[Line, list[Plan | None]]] = []
    for line in lines:
        row: list[Plan | None] = []
        for method in line.methods:
            try:
                kind = "faces" if method is not None and method.draws_faces else "whole"
                own = None if method is None else plan(photo, method, regions=regions[kind])
                row.append(own)
            except (UsageError, RegionError) as error:
                if not every:
                    raise
                refused[line.name] = error
                row.append(None)
        if any(row):
            planned.append((line, row))
    if not planned:
        raise next((error for error in refused.values() if isinstance(error, NoRegion)), NONE)
    plans = [made for _, row in planned for made in row if made]
    first = next((made for made in plans if made.method != build(None, {})), plans[0])
    view = bounding_view([region.box for made in plans for region in made.regions], photo)
    # about equal areas, wide enough for captions and not too tall
    width = min(round(WIDE * math.sqrt(view.w / view.h)), 640)
    cell = max(WIDE, width), min(max(1, round(width * view.h / view.w)), 520)
    rows: list[tuple[Line, tuple[Compared | None, ...]]] = []
    for line, each in planned:
        made = (p if p is None else Compared.of(p, p.release(bits=bits), view, cell) for p in each)
        rows.append((line, tuple(made)))
    found = {region.box: region.origin.in_words() for region in first.regions}
    return Comparison(photo, found, view, cell, tuple(rows)), left_out(refused, options or {})


BUDGETS = ("1", "5", "20")  # default values of ε
NEIGHBOURHOODS = ("256", "all")  # default neighbourhoods in pixels


@takes_regions
def compare_command(
    context: typer.Context,
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="One photo.")],
    out: Annotated[Path, typer.Option(metavar="SHEET.png", help="The sheet. Keep it private.")] = Path(
        "compare.png"
    ),
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="See `dpveil methods`. Repeatable. Default: all.")
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(metavar="E", help="Repeatable. Default: 1, 5 and 20.")
    ] = None,
    delta: Annotated[
        Text, typer.Option(metavar="D", help="δ. Default: 1e-6, for methods that need one.")
    ] = None,
    block: Annotated[str, typer.Option(metavar="B", help="Side of a block in pixels.")] = "16",
    neighbourhood: Annotated[
        list[str] | None,
        typer.Option(metavar="M", help="A number of pixels, or all. Repeatable. Default: 256 and all."),
    ] = None,
    regions: Chosen = NO_REGIONS,
    force: Force = False,
    json: AsJson = False,
    max_pixels: MaxPixels = 100_000_000,
) -> int:
    """Lay releases of one photo by several methods and budgets side by side, each with what it promises.

    \b
    Examples:
      dpveil compare photo.jpg --out compare.png
      dpveil compare group.jpg --out compare.png --regions faces --epsilon 2 --epsilon 10

    Without --regions each method takes its own: the whole photo, or every face that is found.
    SSIM and PSNR are computed from the original, and the costs of many releases add up: the sheet is for the
    owner of the original only, NOT FOR PUBLICATION.
    """
    check_name(out, "--out")
    check_apart_from([photo], {"--out": out}, replace=force)
    options = options_of(context)
    lines, missing = lines_of(
        tuple(dict.fromkeys(method or METHODS.rows)),
        tuple(dict.fromkeys(epsilon or BUDGETS)),
        neighbourhoods_of(neighbourhood or NEIGHBOURHOODS),
        every=method is None,
        options=options,
        delta=delta,
        block=number(block),
    )
    usual = sorted({"faces" if one.draws_faces else "whole" for line in lines for one in line.methods if one})
    finders = regions.finders(usual)
    chosen = {kind: finders if regions.specs else [finders[n]] for n, kind in enumerate(usual)}
    original = read(photo, max_pixels=max_pixels)
    compared, notes = compare(original, lines, chosen, every=method is None, options=options)
    for text in (*missing, *notes):
        say.note(f"note: {text}")
    write_together([(out, encode(compared.draw(), "png"))], replace=force)
    if json:
        say.document({"sheet": str(out), **compared.to_json()})
    else:
        say.answer(f"wrote {out}")
    say.note(f"{out}: {NOT_PRIVATE}")
    return exits.DONE
