"""Gates for codecs of networks: what is released of equal codes, of one face alone, and of two faces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, Final

import numpy as np

from dpveil.codecs.neural import shown
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit.findings import Finding
from dpveil_audit.gates import ComparedPair, bound_findings, least_epsilon, of_releases
from dpveil_audit.lower_bound import Bound, Draws
from dpveil_audit.networks.case import (
    SIDE,
    TRAINED,
    Crops,
    NetworkCase,
    NetworkDrawn,
    NetworkVersion,
    Row,
    crops_of,
)

ROWS: Final = ((20, 60, 200), (230, 150, 130), (128, 128, 128), (0, 255, 255))
"""Faces that differ in all that the networks read, and are read as one gender."""
CODE: Final = TRAINED * np.array([[0.4, -0.7]])
"""The private code of every face, in the gate that holds it fixed."""
POSE: Final = (4.0, -2.0)
"""The public pose in which it is shown, in degrees: small, as poses have limits."""
PIXEL: Final = SIDE // 2
"""A pixel within the ellipse, in both directions; all there are alike."""
ANY: Final = "a pixel"
GREY: Final = 128


class Fixed:
    """A mechanism that draws the same code for every face; all else is as in `own`."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def release(self, codes: np.ndarray, *_: object, **__: object) -> np.ndarray:
        """Return the code for each face."""
        return np.repeat(CODE, len(codes), axis=0)


def around_gate(version: NetworkVersion, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many pixels differ between releases of faces with equal private codes and answers.

    In the cell's pose, and in another: what `release.render` shows.
    """
    found = np.stack([_fixed(version, case, row, pose) for row in ROWS for pose in (None, POSE)])
    by_face = found.reshape(len(ROWS), 2, SIDE, SIDE, 3)
    yield _counted("around", "pixels of equal codes that differ", case, by_face != by_face[:1])


def beyond_gate(version: NetworkVersion, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many coordinates of codes change with what is beyond the ellipse, and pixels drawn there."""
    hidden = ~shown(SIDE)
    for row in ROWS:
        crop = crops_of(np.array([row], np.int64))
        other = np.where(hidden[..., None], 255 - crop, crop)
        codes = [version.make(case).codec.held.encode(one) for one in (crop, other)]
        yield _counted("beyond", "coordinates that read beyond the ellipse", case, codes[0] != codes[1])
        drawn = version.make(case).release(crop, bits=SeededBits(1))
        yield _counted("beyond", "levels drawn beyond the ellipse", case, drawn[:, hidden] != GREY)


def alone_gate(version: NetworkVersion, case: NetworkCase) -> Iterator[Finding]:
    """Yield how many coordinates and levels of a face change with the other faces of its batch."""
    crops = crops_of(np.array(ROWS, np.int64))
    alone = np.concatenate([version.make(case).codec.held.encode(crop[None]) for crop in crops])
    for order in (slice(None), slice(None, None, -1)):
        codec = version.make(case).codec.held
        yield _counted(
            "alone", "coordinates that see other faces", case, codec.encode(crops[order]) != alone[order]
        )
        codec = version.make(case).codec.held
        single = np.concatenate([version.make(case).codec.held.decode(code[None]) for code in alone])
        both = codec.decode(alone[order]) != single[order]
        yield _counted("alone", "levels that see other faces", case, both)


def bound_gate(version: NetworkVersion, setting: NetworkDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield lower bounds on the cost of pairs of faces, from released pixels alone."""
    case, draws = setting.case, setting.draws

    @cache  # a face is in several pairs, whose bounds hold each by itself
    def seen(row: Row) -> Draws:
        crops = crops_of(np.tile(np.array([row], np.int64), (2 * draws, 1)))
        return version.make(case).release(crops, bits=bits)[:, PIXEL, PIXEL]

    def bound(pair: tuple[Row, Row], alpha: float) -> Bound:
        return of_releases((seen(pair[0]), seen(pair[1])), draws, alpha)

    promised = version.make(case).guarantee(height=SIDE, width=SIDE, channels=3)
    limit = float(promised.epsilon or 0)
    pairs = [
        ComparedPair(f"{case}, {one} and {two}", limit, partial(bound, (one, two)))
        for one, two in setting.pairs
    ]
    yield from bound_findings(pairs, f"{draws:,} draws", least=partial(least_epsilon, draws))


def _fixed(version: NetworkVersion, case: NetworkCase, row: Row, pose: Any) -> Crops:
    """Return the release of a face whose code is drawn as `CODE`, with the same bits for every answer."""
    method = version.make(case)
    method.__dict__["_own"] = Fixed(method._own)
    view = method.views(crops_of(np.array([row], np.int64)), bits=SeededBits(1))
    return np.asarray(view(pose if method.posed else None)[0])


def _counted(gate: str, what: str, case: NetworkCase, different: np.ndarray) -> Finding:
    count = int(np.count_nonzero(different))
    return Finding(gate, what, str(case), count, 0, count == 0, sees=ANY)
