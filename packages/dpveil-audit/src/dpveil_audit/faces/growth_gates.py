"""Gates for growth: differences between neighbours outside the replaced pixels, before and after release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dpveil.core.photo import Photo
from dpveil.core.region import Region, RegionRecord
from dpveil.mechanisms.pixel import DPPix, Fill
from dpveil.noise.bits import SeededBits
from dpveil.release.saving import Release
from dpveil.release.words import TRACES
from dpveil_audit.faces.growth import GrowthVersion, MadeLossy
from dpveil_audit.faces.photos import SEES, Places, places
from dpveil_audit.findings import Finding

DRAWN: Final = DPPix(epsilon=1, block=4, neighbourhood=16)
DRAWN_WITH: Final = 1
"""Seed of draws that are to be the same for every photo."""


def escape_gate(version: GrowthVersion, made: MadeLossy) -> Iterator[Finding]:
    """Yield how many decoded pixels outside the replaced ones differ between neighbours."""
    asked, ((_, first), *others) = made.asked, made.photos
    replaced, release = version.painted(first, asked, SeededBits(DRAWN_WITH))
    apart = {
        name: int(((other.image != first.image).any(axis=2) & ~replaced).sum()) for name, other in others
    }
    yield _worst("escape", "outside pixels that reveal a region", made, apart, named=_named(release))


def release_gate(version: GrowthVersion, made: MadeLossy) -> Iterator[Finding]:
    """Yield how many pixels differ between releases of neighbours with the same draws.

    After a fill, anywhere; after noise, outside the regions that the certificate lists.
    """
    asked, ((_, first), *others) = made.asked, made.photos
    for method, anywhere in ((Fill(level=0), True), (DRAWN, False)):
        one = version.release(first, asked, method, SeededBits(DRAWN_WITH))
        inside = np.zeros_like(_listed(one)) if anywhere else _listed(one)
        apart = {}
        for name, other in others:
            two = version.release(other, asked, method, SeededBits(DRAWN_WITH))
            apart[name] = int(((two.image != one.image).any(axis=2) & ~inside).sum())
        what = f"pixels that tell releases by {method.name} apart"
        yield _worst("release", what, made, apart, named=_named(one))


def stated_gate(version: GrowthVersion, made: MadeLossy) -> Iterator[Finding]:
    """Yield how many pixels a certificate lists and a release does not replace, or vice versa."""
    asked, (_, photo) = made.asked, made.photos[0]
    replaced, release = version.painted(photo, asked, SeededBits(DRAWN_WITH))
    wrong = {
        "asked for and not replaced": int((_of(asked, photo) & ~replaced).sum()),
        "replaced and not listed": int((replaced & ~_listed(release)).sum()),
        "changed and not listed": int(((release.image != photo.image).any(axis=2) & ~_listed(release)).sum()),
        "listed and not replaced": abs(_count(release.certificate.regions, photo) - int(replaced.sum())),
    }
    yield _worst("stated", "pixels that are not as the certificate says", made, wrong)


def _worst(gate: str, what: str, made: MadeLossy, counts: dict[str, int], *, named: bool = False) -> Finding:
    """Return the finding of the largest count; none if the certificate names what is left outside."""
    worst = max(counts, key=lambda name: counts[name])
    count = 0 if named else counts[worst]
    what = f"{what}, worst of {len(counts)}: {worst}"
    return Finding(gate, what, str(made.case), count, 0, count == 0, "pixels", sees=SEES)


def _named(release: Release) -> bool:
    return all(
        TRACES.format("WebP") in guarantee.scope.in_the_clear for guarantee in release.certificate.guarantees
    )


def _of(regions: Sequence[Region], photo: Photo) -> Places:
    return places(regions, photo.height, photo.width)


def _listed(release: Release) -> Places:
    """Return the boxes that a certificate lists."""
    inside = np.zeros(release.image.shape[:2], np.bool_)
    for record in release.certificate.regions:
        inside[record.box.slices] = True
    return inside


def _count(records: Sequence[RegionRecord], photo: Photo) -> int:
    """Return the number of replaced pixels by a certificate; masks of several regions must not overlap."""
    if any(record.masked is not None for record in records):
        return sum(record.masked or 0 for record in records)
    return int(_of([Region(record.box) for record in records], photo).sum())
