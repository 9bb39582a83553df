"""Gates for recombination: the influence of hidden pixels, unlisted changes, and unreplaced pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpveil.noise.bits import SeededBits
from dpveil.release.pipeline import obfuscate
from dpveil_audit.faces.photos import SEES
from dpveil_audit.faces.recombination import DRAWN_WITH, Made, RecombinationVersion
from dpveil_audit.findings import Finding

EVERYWHERE: Final = 3
"""Photos, including the first, that differ from one another in nearly all hidden pixels."""


def same_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many pixels and regions seen by the other gates differ from the release of `obfuscate`."""
    case = made.case
    if case.angle is not None:
        return
    own = version.draw(made.treated, SeededBits(DRAWN_WITH), case.following)
    release = obfuscate(
        made.photo, case.method, regions=case.regions, bits=SeededBits(DRAWN_WITH), post_processing=case.steps
    )
    unlike = int((own != release.image).any(axis=2).sum())
    placed = [region.record for region in made.treated.regions]
    stated = release.certificate.regions
    unlike += sum(a.box != b.box or a.masked != b.masked for a, b in zip(placed, stated, strict=True))
    yield _finding("same", "pixels and regions unlike a release", made, unlike)


def hidden_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many pixels differ between releases with one draw of photos that differ in hidden pixels
    only.
    """
    apart = {
        name: int((made.drawn(version, number) != made.drawn(version)).any(axis=2).sum())
        for number, (name, _) in enumerate(made.photos[1:], 1)
    }
    worst = max(apart, key=lambda name: apart[name])
    what = f"pixels that hidden ones change, worst of {len(apart)}: {worst}"
    yield _finding("hidden", what, made, apart[worst])


def outside_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many pixels outside the listed regions differ between photo and release."""
    changed = (made.drawn(version) != made.photo.image).any(axis=2)
    count = int((changed & ~made.listed(version)).sum())
    yield _finding("outside", "pixels changed outside of the regions", made, count)


def copy_gate(version: RecombinationVersion, made: Made) -> Iterator[Finding]:
    """Yield how many listed pixels are released unchanged, in photos that differ in all of them."""
    images = [photo.image for _, photo in made.photos[:EVERYWHERE]]
    kept = made.listed(version)
    kept &= np.logical_or.reduce([(image != images[0]).any(axis=2) for image in images])
    for number, image in enumerate(images):
        kept &= (made.drawn(version, number) == image).all(axis=2)
    yield _finding("copy", "pixels of regions released as they are", made, int(np.count_nonzero(kept)))


def _finding(gate: str, what: str, made: Made, count: int) -> Finding:
    return Finding(gate, what, str(made.case), count, 0, count == 0, "pixels", sees=SEES)
