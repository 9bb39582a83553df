"""The road: photo, regions, guarantee, debit, one draw per region, certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Protocol, cast

import numpy as np
from jaxtyping import UInt8

from dpveil.catalogue import build
from dpveil.core.certificate import MOST_REGIONS, UNPROTECTED, Certificate, RegionRecord
from dpveil.core.guarantee import Guarantee
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import InvalidParameter, RegionError
from dpveil.mechanisms.method import Method, check_bits
from dpveil.noise.bits import BitSource, SecureBits, kind_of
from dpveil.postprocessing import Step, parse_all
from dpveil.regions import Finder, Spec, parse, search
from dpveil.release.saving import Release
from dpveil.release.treatment import suited, treatment
from dpveil.release.words import (
    MISSING,
    NO_ACCOUNTANT,
    NONE_FOUND,
    accountant,
    bit_cautions,
    cautions,
    composition,
    mislabelled,
    promise,
)

IF_NONE = (None, "whole", "copy")


class Ledger(Protocol):
    """Whoever keeps budgets: `debit` commits the cost, or raises `BudgetExceeded` and nothing is drawn."""

    def debit(self, guarantee: Guarantee) -> None:
        """Commit what one photo costs, before any noise exists."""


def obfuscate(
    photo: Photo | UInt8[np.ndarray, ...],
    method: str | Method,
    *,
    regions: Spec | Sequence[Spec] | None = None,
    bits: BitSource | None = None,
    ledger: Ledger | None = None,
    if_none: str | None = None,
    post_processing: Sequence[str | Step] | str | Step = (),
    **parameters: Any,
) -> Release:
    """Return a release of `photo` in which every pixel of `regions` went through `method`.

    `photo` is a `Photo`, or a uint8 array of h × w or h × w × (1 or 3) levels. `method` is a name with its
    `parameters`, or a ready-made method; face-space methods, such as "latent", put other faces in place.
    `regions` is one choice or several: "whole", "faces", a box "x,y,w,h" in pixels, a mask; each reads the
    original, so what overlaps costs twice. By default it is "whole", and "faces" for face-space methods.
    `bits=None` is a fresh `SecureBits`; with `bits` given the result is a function of the arguments alone.
    `post_processing` names steps, such as "median:3", that follow the draw within each region and cost
    nothing. Where one of the choices is not found `NoRegion` is raised, unless `if_none` is "whole" (protect
    everything) or "copy" (protect what the other choices found, or nothing, and say so). Raises errors of
    `dpveil.errors`; nothing is released then. Source: docs, "Guarantees".

    >>> release = obfuscate(np.zeros((8, 8), np.uint8), "dp-pix", epsilon=1, block=8)
    >>> release.image.shape, str(release.certificate.composition)
    ((8, 8, 1), '1-DP, any-image')
    """
    chosen = build(method, parameters)
    given = photo if isinstance(photo, Photo) else Photo(photo)
    steps = parse_all(post_processing)
    asked = chosen.regions if regions is None else regions
    finders = suited([parse(spec) for spec in _listed(asked)], chosen)
    request = tuple(finder.description for finder in finders)
    notes = tuple(note for finder in finders for note in finder.notes)
    found, missing = _found(given, finders, if_none)
    _check_few(found, request)
    if not found:
        return _copy(given, request, notes)
    notes += missing
    treated = treatment(given, found, chosen)
    records = _records(treated.regions, given)
    size = {"width": given.width, "height": given.height, "channels": given.channels}
    guarantees = tuple(promise(chosen, record, **size) for record in records)
    total = composition(chosen, records, guarantees, given.channels)
    for record in records:
        chosen.prepare(height=record.box.h, width=record.box.w, channels=given.channels)
    source = SecureBits() if bits is None else check_bits(bits)
    warnings = bit_cautions(kind_of(source)) + cautions(chosen, records, given.channels, total) + notes
    if ledger is not None:
        ledger.debit(total)

    image = treated.draw(source, steps)
    image.flags.writeable = False
    certificate = Certificate(
        method=chosen.name,
        parameters=chosen.parameters(),
        request=request,
        guarantees=guarantees,
        regions=records,
        composition=total,
        accountant=accountant(chosen),
        bits=kind_of(source),
        post_processing=tuple(step.description for step in steps),
        warnings=warnings,
    )
    return Release(image, certificate, given.notes)


def _found(
    photo: Photo, finders: Sequence[Finder], if_none: str | None
) -> tuple[tuple[Region, ...], tuple[str, ...]]:
    """Return the regions to protect, and a warning for each choice that stays in the clear beside them."""
    if if_none not in IF_NONE:
        raise InvalidParameter(
            "if_none", if_none, "is unknown", hint="whole, copy, or leave it out to refuse"
        )
    found, missing = search(photo, finders)
    if missing and if_none is None:
        raise next(iter(missing.values()))
    if missing and if_none == "whole":
        return (replace(Region.whole(photo), label=NONE_FOUND),), ()
    return found, tuple(MISSING.format(description) for description in missing)


def _records(regions: Sequence[Region], photo: Photo) -> tuple[RegionRecord, ...]:
    records = tuple(RegionRecord.of(region) for region in regions)
    for record in records:
        if problem := mislabelled(record, width=photo.width, height=photo.height):
            raise RegionError(f"the region {record.in_words()} {problem}", hint="give it another label")
    return records


def _check_few(found: Sequence[Region], request: Sequence[str]) -> None:
    if max(len(found), len(request)) > MOST_REGIONS:
        raise RegionError(
            f"there are more than {MOST_REGIONS:,} regions", hint="protect a larger one around them, or whole"
        )


def _copy(photo: Photo, request: tuple[str, ...], notes: tuple[str, ...]) -> Release:
    certificate = Certificate(
        method=None,
        parameters={},
        request=request,
        guarantees=(),
        regions=(),
        composition=None,
        accountant=NO_ACCOUNTANT,
        bits="none",
        warnings=(UNPROTECTED, *notes),
    )
    return Release(photo.image, certificate, photo.notes)


def _listed(regions: Spec | Sequence[Spec]) -> list[Spec]:
    """Return a list of choices: four whole numbers are one box, any other list or tuple is several."""
    if not isinstance(regions, list | tuple) or (regions and isinstance(regions[0], Integral)):
        return [cast(Spec, regions)]
    return list(cast(Sequence[Spec], regions))
