"""What a method guarantees for the regions of one photo, computed before anything is drawn.

Plans, explanations and certificates state it, and `verify` computes it again from a certificate's data. It
depends on public settings only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from dpveil.accounting import compose
from dpveil.accounting.compose import whole_region
from dpveil.accounting.draw_cost import Account
from dpveil.accounting.meaning import NONE, at_least, check_strength_name, strength, success_bound
from dpveil.catalogue import method_from_certificate
from dpveil.core.certificate import FEW_COLOURS, UNPROTECTED, Certificate, shown_by_colours
from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region, RegionRecord, first_overlap
from dpveil.core.region_origin import FACE, Origin
from dpveil.errors import INTACT, CertificateError, RegionError, TooWeak
from dpveil.mechanisms.method import Method, Size
from dpveil.release.words import (
    CHOSEN,
    MISSING,
    bit_cautions,
    cautions,
    clear_parts,
    covers,
    few_pixels_warning,
    passing,
)

ACCOUNTANT: Final = (
    "basic composition in exact rationals; disjoint regions under noise of one scale count as one release"
)
NO_ACCOUNTANT: Final = "none"
MOST_SIZES: Final = 2
"""Most sizes of regions of a saved release that are checked for pure noise, as each may take seconds."""


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


@dataclass(frozen=True)
class Quote:
    """The guarantee, and what stays in the clear, of releasing these `regions` by `method`.

    The photo has width × height pixels and 1 or 3 channels.
    `passed` are the requests of which nothing was found, and which were to be passed over then.

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> face = RegionRecord(Box(40, 52, 88, 120), Origin("face", number=1, found=True))
    >>> quote = Quote(DPPix(epsilon=1), (face,), width=640, height=480, channels=3)
    >>> str(quote.total), quote.guarantees[0].scope.covers
    ('1-DP, any-image', 'face 1: 88×120 pixels at 40,52, 3 channels')
    """

    method: Method
    regions: tuple[RegionRecord, ...]
    width: int
    height: int
    channels: int
    passed: tuple[str, ...] = ()

    @classmethod
    def of(cls, method: Method, regions: Sequence[Region], photo: Photo, passed: Sequence[str] = ()) -> Quote:
        """Return the quote for regions of a photo as they are placed; raises what would prevent a draw."""
        records = tuple(region.record for region in regions)
        size = {"width": photo.width, "height": photo.height}
        for record in records:
            if problem := record.problem(**size):
                raise RegionError(f"the region {record.in_words()} {problem}", hint="give it another origin")
        quote = cls(method, records, **size, channels=photo.channels, passed=tuple(passed))
        quote.prepare()
        return quote

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return tuple(self._promise(record) for record in self.regions)

    @cached_property
    def total(self) -> Guarantee:
        """The composed guarantee of all regions; a method may charge less if no two boxes overlap."""
        total = compose(self.guarantees)
        if len(self.regions) < 2 or first_overlap([record.box for record in self.regions])[0]:
            return total
        return self.method.cost_of_disjoint(total, [self._size(record) for record in self.regions])

    @cached_property
    def strength(self) -> str:
        """The strength of the total: strong, moderate, weak or practically none (docs: explain)."""
        return strength(self.total)

    def about_all(self, index: int) -> Guarantee | None:
        """Return the guarantee of one region's noise for all of its pixels together; None if unknown."""
        return about_all(self.method, self.guarantees[index], self._size(self.regions[index]))

    @cached_property
    def few_only(self) -> bool:
        """Whether the guarantee is for few pixels only, and practically none for the largest region."""
        if self.total.relation.m is None or self.strength == NONE:
            return False
        areas = [record.box.w * record.box.h for record in self.regions]
        whole = self.about_all(areas.index(max(areas)))
        return whole is not None and strength(whole) == NONE

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        return self.total.scope.in_the_clear

    @property
    def accountant(self) -> str:
        """The rules by which the numbers were computed, in words."""
        chosen = self.method.calibration
        return f"{ACCOUNTANT}; noise calibrated by {chosen}" if chosen else ACCOUNTANT

    def warnings(self, *, sizes: int | None = None) -> tuple[str, ...]:
        """Return the warnings about method, regions and total.

        Regions are checked for pure noise only if they have one of the first `sizes` different sizes (None:
        all), because calibrating for a size takes up to seconds.
        """
        few = (few_pixels_warning(self.total),) if self.few_only else ()
        about = (self.method, self.regions, self.channels, self.total)
        return few + cautions(*about, sizes=sizes)

    def prepare(self) -> None:
        """Raise any error that would prevent drawing one of the regions, before budget is spent on them."""
        for height, width in dict.fromkeys((r.box.h, r.box.w) for r in self.regions):
            self.method.prepare(height=height, width=width, channels=self.channels)

    @cached_property
    def _passed_notes(self) -> tuple[str, ...]:
        """What is told by the requests that were passed over: once, as there may be many and many regions."""
        return passing(self.passed)

    def _size(self, record: RegionRecord) -> Size:
        return {"height": record.box.h, "width": record.box.w, "channels": self.channels}

    def _promise(self, record: RegionRecord) -> Guarantee:
        method = self.method.of_region(record)
        cost = method.guarantee(**self._size(record))
        clear = clear_parts(record, width=self.width, height=self.height)
        clear += method.shown_by_place(record)
        if chosen := ", ".join(method.set_by_user):
            clear += (CHOSEN.format(chosen),)
        clear += self._passed_notes
        words = covers(record, self.channels)
        scope = Scope(words, cost.scope.in_the_clear + clear)
        return replace(cost, scope=scope)


def require_strength(
    least: str | None,
    given: str | None,
    total: Guarantee | None,
    missing: Sequence[str] = (),
    regions: Sequence[RegionRecord] = (),
) -> None:
    """Raise `TooWeak` for a strength below `least` (strong, moderate or weak), or that is not all.

    A requested region that is `missing` stays in the clear, without any guarantee, and the few colours of
    some sources of `regions` may show what is hidden.
    """
    if least is None:
        return
    coloured, enough = shown_by_colours(regions), at_least(given, check_strength_name(least))
    if not enough or missing or coloured:
        objection = FEW_COLOURS * (enough and coloured)
        raise TooWeak(asked=least, strength=given, total=total, missing=missing, objection=objection)


def quote_of(certificate: Certificate) -> Quote:
    """Return the quote that a certificate's method, parameters and regions give, computed anew.

    Raises `CertificateError` for one that describes no file, and what `method_from_certificate` raises for
    unknown methods.
    """
    output = certificate.output
    if output is None:
        raise CertificateError("the certificate describes no file", hint=INTACT)
    return Quote(
        method_from_certificate(certificate.method, certificate.parameters),
        certificate.regions,
        width=output.width,
        height=output.height,
        channels=output.channels,
        passed=certificate.passed_over,
    )


def with_sentences(certificate: Certificate) -> Certificate:
    """Return a saved certificate with the sentences that this version makes of its data.

    These are the scopes of its guarantees and its `warnings`. Regions of all but the first MOST_SIZES sizes
    are not checked for pure noise.
    """
    if not certificate.guarantees:
        return replace(certificate, warnings=(UNPROTECTED,))
    missing = tuple(MISSING.format(text) for text in certificate.exposed_requests)
    quote = quote_of(certificate)
    warnings = (*bit_cautions(certificate.bits), *quote.warnings(sizes=MOST_SIZES), *missing)
    return replace(certificate, guarantees=quote.guarantees, composition=quote.total, warnings=warnings)


def quote_of_sizes(method: Method, sizes: Sequence[Size]) -> Quote:
    """Return the quote for regions of these sizes, side by side in a larger photo.

    They are detected faces if the method draws faces, else boxes.
    """
    found = method.draws_faces
    cell = None if method.order is None else (0, 0, 0, 0)  # any: its sentences do not state which
    records, left = [], 0
    for number, size in enumerate(sizes, 1):
        origin = Origin(FACE, "faces", number=number, found=True, cell=cell) if found else Origin("region")
        records.append(RegionRecord(Box(left, 0, size["width"], size["height"]), origin))
        left += size["width"]
    height = max(size["height"] for size in sizes) + 1
    return Quote(method, tuple(records), width=left + 1, height=height, channels=sizes[0]["channels"])
