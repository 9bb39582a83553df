"""Parsing users' choices of regions, and finding those regions in a photo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dpveil.core.certificate import OTHERS
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region, check_inside
from dpveil.core.region_origin import WHOLE
from dpveil.core.registry import Table
from dpveil.errors import InvalidParameter, NoRegion, UnknownName, suggestion
from dpveil.io.names import FORMATS
from dpveil.regions.finder import Finder, Order
from dpveil.regions.given_regions import (
    OBJECTS,
    GivenBox,
    GivenRegion,
    asked_box,
    box_of_numbers,
    mask_of_array,
    mask_of_file,
)


@dataclass(frozen=True)
class Whole(Finder):
    """The whole photo as one region: only its size and number of channels stay in the clear."""

    kind = WHOLE
    data_dependent = False
    at_once = 2

    @property
    def description(self) -> str:
        return "whole"

    def __call__(self, photo: Photo) -> list[Region]:
        return [Region.whole(photo)]


NAMED_FINDERS: Final = Table(
    "regions",
    {
        "whole": Whole,
        "faces": "dpveil.regions.faces:Faces",
        "text": "dpveil.regions.text:Text",
        "plates": "dpveil.regions.text:Plates",
        "codes": "dpveil.regions.other_finders:Codes",
        "eyes": "dpveil.regions.eyes:Eyes",
        "irises": "dpveil.regions.eyes:irises",
    },
)
"""What makes the finders, by their names on the command line."""

Spec = str | Path | Sequence[int] | np.ndarray | Box | Region | Finder
"""A name such as "whole", "x,y,w,h", four integers, a mask (file or array), or a ready-made object."""
FORMS: Final = (
    "whole, faces, text, plates, codes, eyes, irises, a box x,y,w,h in pixels, object:x,y,w,h, or the name of"
    " a mask image"
)
JOIN: Final = "+"  # between the names of several finders
DETECTED: Final = "detected"
"""What a detector of the user's finds: its file has to be named, so that it is in no table."""
LAST: Final = ("whole", "copy")
"""If a requested region is not found: protect the whole photo, or leave it in the clear; or else refuse."""
IF_NONE: Final = (*LAST, OTHERS, *(f"{OTHERS}{JOIN}{last}" for last in LAST))
"""What is asked if a region is not found: one of `LAST`; or to pass it over if another one is found, and if
none is, one of `LAST`, or else refuse.
"""


def parse(spec: object) -> Finder:
    """Return the finder for `spec`, checked as far as possible without a photo.

    Accepts the names of `NAMED_FINDERS`; a box as "x,y,w,h", four integers or `Box`; a box around what is no
    face as "object:x,y,w,h", which methods that replace faces fill with grey; a mask as the path of an image
    file or an array of booleans or uint8 levels (128 to 255 are protected); a `Region`; a finder. Raises
    `UnknownName`, `InvalidParameter`, `UsageError` if a face detector is missing, and for masks `PhotoError`
    or `NoRegion`.

    >>> parse("40,52,112,112").description
    '40,52,112,112'
    """
    finder = _parse(spec)
    finder.prepare()
    return finder


def _parse(spec: object) -> Finder:
    if isinstance(spec, Finder):
        return spec
    if isinstance(spec, str):
        return _parse_text(spec)
    if isinstance(spec, Path):
        return mask_of_file(spec)
    if isinstance(spec, Box):
        return GivenBox(spec)
    if isinstance(spec, Region):
        return GivenRegion(spec)
    if isinstance(spec, np.ndarray) and spec.ndim == 2:
        return mask_of_array(spec)
    if isinstance(spec, Sequence | np.ndarray):
        return GivenBox(box_of_numbers(list(spec)))
    raise InvalidParameter("regions", type(spec).__name__, "are not regions", hint=f"write {FORMS}")


def split_choices(spec: Spec) -> Sequence[Spec]:
    """Return the choices in a text such as "faces+text", or the choice alone.

    >>> split_choices("faces+text"), split_choices("+3,4,5,6")
    (['faces', 'text'], ['+3,4,5,6'])
    """
    names = [name.strip() for name in spec.split(JOIN)] if isinstance(spec, str) else []
    return names if len(names) > 1 and all(name in (*NAMED_FINDERS, DETECTED) for name in names) else [spec]


def search(
    photo: Photo, finders: Sequence[Finder], order: Order | None = None
) -> tuple[tuple[Region, ...], dict[str, NoRegion]]:
    """Return the regions of all finders, not grown yet, and the errors of those that found none.

    The errors are by the finders' descriptions. Several regions of one kind are numbered, with an `order` in
    that. Regions may overlap: a release reads the original for each, and their costs add. Raises `NoRegion`
    if there is no finder, and `RegionError` if a region does not fit the photo.
    """
    if not finders:
        raise NoRegion("no region was chosen", hint=f"choose {FORMS}")
    regions: list[Region] = []
    missing: dict[str, NoRegion] = {}
    for finder in finders:
        try:
            found = finder(photo) if order is None else finder.in_order(photo, order)
            if not found:
                raise NoRegion(f"nothing was found for {finder.description}", hint=f"choose {FORMS}")
            for region in found:
                check_inside(region.box, photo.width, photo.height)
            name, looked = finder.description, finder.data_dependent
            for region in found:
                origin = replace(region.origin, finder=name, found=region.origin.found or looked)
                regions.append(replace(region, origin=origin))
        except NoRegion as error:
            missing[finder.description] = error
    return tuple(_number_regions(regions)), missing


def check_if_none(value: str | None) -> str | None:
    """Return `value` if it is None or one of `IF_NONE`. Raises `InvalidParameter`."""
    if value not in (None, *IF_NONE):
        listed = f"{', '.join(IF_NONE[:-1])} or {IF_NONE[-1]}"
        hint = f"{suggestion(str(value), IF_NONE)}write {listed}, or leave it out to refuse"
        raise InvalidParameter("if_none", value, "is unknown", hint=hint)
    return value


def passes_over(if_none: str | None) -> bool:
    """Return whether what one finder does not find is passed over where another finds something.

    >>> passes_over("others+copy"), passes_over("copy")
    (True, False)
    """
    return if_none is not None and if_none.partition(JOIN)[0] == OTHERS


def last_of(if_none: str | None) -> str | None:
    """Return what becomes of a photo of which what was found is not enough: one of `LAST`, or None to refuse.

    >>> last_of("others+copy"), last_of("copy"), last_of("others")
    ('copy', 'copy', None)
    """
    return (if_none.partition(JOIN)[2] or None) if if_none is not None and passes_over(if_none) else if_none


def _parse_text(text: str) -> Finder:
    name = text.strip()
    if name in NAMED_FINDERS:
        return NAMED_FINDERS[name]()  # type: ignore[no-any-return]
    if name == DETECTED:
        hint = "name its ONNX file with {model}"
        raise InvalidParameter("detector model", None, "is missing", hint=hint, arguments={"model": "model"})
    if (names := split_choices(name)) != [name]:
        raise InvalidParameter("regions", name, "is several choices", hint=f"write {names}")
    if name.startswith(OBJECTS):
        return asked_box(name)
    if Path(name).suffix.lower() in FORMATS:
        return mask_of_file(name)
    if "," in name or name[:1] in set("+-0123456789"):
        return asked_box(name)
    raise UnknownName("regions", text, NAMED_FINDERS, hint=f"{suggestion(name, NAMED_FINDERS)}choose {FORMS}")


def _number_regions(regions: list[Region]) -> list[Region]:
    """Return `regions`, numbering those without a number if there are several of a kind: "box 1", "box 2"."""
    bare = Counter(region.origin.kind for region in regions if region.origin.number is None)
    seen: Counter[str] = Counter()
    numbered = []
    for region in regions:
        origin = region.origin
        if origin.number is None and bare[origin.kind] > 1 and origin.kind != WHOLE:
            seen[origin.kind] += 1
            origin = replace(origin, number=seen[origin.kind])
        numbered.append(replace(region, origin=origin))
    return numbered
