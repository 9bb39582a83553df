"""Faces that are close to one another: what is replaced around them meets, or reaches around one that stays.

Like what was overlooked this is for the owner of the original, and in no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from jaxtyping import UInt16

from dpveil.accounting.account import Account
from dpveil.accounting.compose import whole_region
from dpveil.accounting.meaning import success_bound
from dpveil.core.guarantee import Guarantee
from dpveil.core.origin import FACE
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import RegionError
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size


def about_all(method: Method, promised: Guarantee, size: Size) -> Guarantee | None:
    """Return the same noise's guarantee for any two photos: the better of group privacy and its own account.

    `promised` is the guarantee of a region of this size. None if no rule is known.
    """
    grouped = whole_region(promised, size["height"] * size["width"])
    account = method.account_of([size], None)
    if grouped is None or grouped == promised or account is None:
        return grouped
    numbers = numbers_of(account, promised.kind, promised.delta)
    if numbers is None:
        return grouped
    own = replace(promised, relation=grouped.relation, **numbers)
    return min(grouped, own, key=lambda each: (success_bound(each, 2), each.epsilon or each.rho))


def numbers_of(account: Account, kind: str, delta: Fraction | None) -> dict[str, Any] | None:
    """Return an account's guarantee of one kind, as keywords of `Guarantee`, at this δ; None without one."""
    if kind == "pure" and account.pure is not None:
        return {"epsilon": account.pure}
    if kind == "zcdp" and account.rho is not None:
        return {"rho": account.rho}
    if kind == "approximate" and delta is not None:
        return {"epsilon": account.epsilon(delta), "delta": delta}
    return None


MOST: Final = 10
"""Most faces that a sentence names."""


@dataclass(frozen=True)
class Crowd:
    """Faces, by their numbers, around which what is replaced could not be bounded.

    The regions of those that are `overlapping` have pixels in common with other regions. Of those that are
    `excepted` hair or neck may be replaced with a neighbour.
    """

    overlapping: tuple[int, ...] = ()
    excepted: tuple[int, ...] = ()

    @classmethod
    def of(cls, regions: Sequence[Region], photo: Photo) -> Crowd:
        """Return the crowd of the regions of a photo, as they are placed."""
        kept = {one.origin.number: one for region in regions for one in region.kept}
        if len(regions) + len(kept) < 2:
            return cls()
        times = np.zeros((photo.height, photo.width), np.uint16)
        for region in regions:
            times[region.box.slices] += _replaced(region)
        faces = {r.origin.number: r for r in regions if r.origin.kind == FACE}
        near = [n for n, region in faces.items() if (_replaced(region) * times[region.box.slices] > 1).any()]
        reached = [n for n, one in kept.items() if _reached(one, times)]
        return cls(*(tuple(sorted(n for n in found if n is not None)) for found in (near, reached)))

    def in_words(self) -> str:
        """Return a sentence that names the faces; empty if there are none.

        >>> Crowd((1, 2, 4), (3,)).in_words()
        'regions of faces 1, 2 and 4 overlap others; hair or neck of face 3, which stays, may be replaced'
        """
        said, stays = list[str](), "which stays" if len(self.excepted) == 1 else "which stay"
        if self.overlapping:
            said.append(f"regions of {_named(self.overlapping)} overlap others")
        if self.excepted:
            said.append(f"hair or neck of {_named(self.excepted)}, {stays}, may be replaced")
        return "; ".join(said)

    def to_json(self) -> dict[str, list[int]]:
        """Return the numbers as a JSON object."""
        return {"overlapping": [*self.overlapping], "excepted": [*self.excepted]}


def check_kept(asked: Sequence[Region], placed: Sequence[Region]) -> None:
    """Raise `RegionError` if a region would replace pixels that another one keeps."""
    kept = {one.box for region in asked for one in region.kept}
    for region in placed:
        if any(region.touches(box) for box in kept):
            hint = "leave the region out, or let that face be replaced, too"
            raise RegionError(f"the region {region.label} reaches over a face that stays", hint=hint)


def _replaced(region: Region) -> UInt16[np.ndarray, "h w"]:
    """Return 1 for every pixel of a region's box that is replaced."""
    full = np.ones((region.box.h, region.box.w), np.uint16)
    return full if region.mask is None else region.mask.astype(np.uint16)


def _reached(face: Region, times: UInt16[np.ndarray, "H W"]) -> bool:
    """Return whether anything is replaced of the head of a face that stays, which is placed by its box."""
    from dpveil.faces.geometry.head_frame import HEAD, HeadFrame, between
    from dpveil.faces.geometry.landmarks import SEEN, of_box

    height, width = times.shape
    head = HEAD.region(between(of_box(face.box), SEEN, HeadFrame(1)), width, height)
    return head is not None and bool(times[head[0].slices][head[1]].any())


def _named(numbers: Sequence[int]) -> str:
    """Return faces by their numbers, not more than `MOST`."""
    more = [f"{len(numbers) - MOST} more"] * (len(numbers) > MOST)
    *first, last = [*map(str, numbers[:MOST]), *more]
    return f"faces {', '.join(first)} and {last}" if first else f"face {last}"
