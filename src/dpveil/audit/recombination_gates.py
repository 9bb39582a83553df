"""Gates for recombination: what hidden pixels change, what is changed beside them, what is left of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpveil.audit.findings import Finding
from dpveil.audit.photos import SEES, Pixels, Places, places
from dpveil.audit.recombination import Made, RecombinationVersion
from dpveil.core.certificate import RegionRecord
from dpveil.noise.bits import SeededBits
from dpveil.pipeline import obfuscate
from dpveil.treatment import Treatment

DRAWN_WITH: Final = 1
"""The seed of draws that have to be the same for every photo: what they are plays no part."""
EVERYWHERE: Final = 3
"""Photos, the first among them, that differ in nearly all hidden pixels from one another."""


def same_gate(made: Made) -> Iterator[Finding]:
    """Yield by how many pixels and regions what the other gates see is unlike what `obfuscate` releases."""
    case = made.case
    if case.angle is not None:
        return
    own = made.treated.draw(SeededBits(DRAWN_WITH), case.following)
    release = obfuscate(
        made.photo, case.method, regions=case.regions, bits=SeededBits(DRAWN_WITH), post_processing=case.steps
    )
    unlike = int((own != release.image).any(axis=2).sum())
    records = tuple(RegionRecord.of(region) for region in made.treated.regions)
    unlike += sum(one != other for one, other in zip(records, release.certificate.regions, strict=True))
    yield _finding("same", "pixels and regions unlike a release", made, unlike)


def hidden_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield by how many pixels releases of one draw differ, where photos differ in hidden pixels only."""
    treated = version.treated(made)
    first = _drawn(version, treated, made)
    apart = {}
    for name, other in made.photos[1:]:
        changed = _drawn(version, made.among(treated, other), made)
        apart[name] = int((changed != first).any(axis=2).sum())
    worst = max(apart, key=lambda name: apart[name])
    what = f"pixels that hidden ones change, worst of {len(apart)}: {worst}"
    yield _finding("hidden", what, made, apart[worst])


def outside_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many pixels outside of the regions that are listed differ between photo and release."""
    treated = version.treated(made)
    changed = (_drawn(version, treated, made) != made.photo.image).any(axis=2)
    count = int((changed & ~_listed(version, treated, made)).sum())
    yield _finding("outside", "pixels changed outside of the regions", made, count)


def copy_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many listed pixels are released as they are, in photos that differ in all of them."""
    treated = version.treated(made)
    first, *others = (photo for _, photo in made.photos[:EVERYWHERE])
    kept = _listed(version, treated, made)
    kept &= np.logical_or.reduce([(photo.image != first.image).any(axis=2) for photo in others])
    for photo in (first, *others):
        kept &= (_drawn(version, made.among(treated, photo), made) == photo.image).all(axis=2)
    yield _finding("copy", "pixels of regions released as they are", made, int(np.count_nonzero(kept)))


def _drawn(version: RecombinationVersion, treated: Treatment, made: Made) -> Pixels:
    return version.draw(treated, SeededBits(DRAWN_WITH), made.case.following)


def _listed(version: RecombinationVersion, treated: Treatment, made: Made) -> Places:
    return places(version.listed(treated), made.case.height, made.case.width)


def _finding(gate: str, what: str, made: Made, count: int) -> Finding:
    return Finding(gate, what, str(made.case), count, 0, count == 0, "pixels", sees=SEES)
