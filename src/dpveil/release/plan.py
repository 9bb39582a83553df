"""Plans: what a method will replace in a photo, and its guarantee, before any budget is spent."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, Final, Protocol, cast

from dpveil.assets.file_reference import terms_of
from dpveil.catalogue import build
from dpveil.core.certificate import MOST_REGIONS, OTHERS, UNPROTECTED, Certificate
from dpveil.core.guarantee import Guarantee, count_noun, strength_text
from dpveil.core.notes import Aside, notes_with_options
from dpveil.core.photo import Photo
from dpveil.core.rationals import Json
from dpveil.core.region import Box, CoverageDigests, Region
from dpveil.core.region_origin import BOX, FACE
from dpveil.errors import BudgetRefused, InvalidParameter, NoRegion, RegionError, TooNear
from dpveil.io.reading import Source, read
from dpveil.mechanisms.method import Method, Placement
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, bits_kind, check_bits
from dpveil.postprocessing import Step, parse_all
from dpveil.regions import Finder, Spec, check_if_none, parse, search
from dpveil.regions.chroma import keep_blocks
from dpveil.regions.finder import Order
from dpveil.regions.other_finders import ARGUMENTS, NOTHING_FOUND_HINT, NonFaceFinder
from dpveil.regions.spec import JOIN, last_of, passes_over, split_choices
from dpveil.release import words
from dpveil.release.quote import NO_ACCOUNTANT, Quote, require_strength
from dpveil.release.saving import Payment, Release

DEFAULT_WITHOUT_FACES: Final = "fill"
"""The default method where nothing but text and the like is to be replaced: it costs nothing."""


def choose_method(
    method: str | Method | None, regions: Spec | Sequence[Spec] | None, parameters: Mapping[str, Any]
) -> tuple[Method, tuple[Finder, ...]]:
    """Return the method and the finders, as it uses them.

    Without a method it is `DEFAULT_WITHOUT_FACES` if all regions are text and the like, and else
    `catalogue.DEFAULT`. Raises as `build`, `parse` and `Method.accepts`.
    """
    finders = None if regions is None or method or parameters else [parse(spec) for spec in as_specs(regions)]
    made = build(default_method(finders) if finders else method, parameters)
    if finders is None:
        finders = [parse(spec) for spec in as_specs(made.regions if regions is None else regions)]
    return made, made.accepts(finders)


def default_method(finders: Sequence[Finder]) -> str | None:
    """Return the name of the default method for these regions; None for `catalogue.DEFAULT`."""
    without_faces = finders and all(isinstance(finder, NonFaceFinder) for finder in finders)
    return DEFAULT_WITHOUT_FACES if without_faces else None


def as_specs(regions: Spec | Sequence[Spec]) -> list[Spec]:
    """Return a list of choices: four whole numbers are one box, any other list or tuple is several.

    >>> as_specs("faces+text"), as_specs([1, 2, 3, 4])
    (['faces', 'text'], [[1, 2, 3, 4]])
    """
    if not isinstance(regions, list | tuple) or (regions and isinstance(regions[0], Integral)):
        return [*split_choices(cast(Spec, regions))]
    return [part for spec in cast(Sequence[Spec], regions) for part in split_choices(spec)]


def choose_regions(
    photo: Photo, finders: Sequence[Finder], order: Order | None, if_none: str | None
) -> tuple[tuple[Region, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the regions that `finders` find, and the requests of which nothing was found; see `plan`.

    These are missing and stay in the clear, or, if the user allowed it, are passed over; one list is empty.
    Raises `NoRegion`, and `RegionError` for more than `MOST_REGIONS`.
    """
    found, errors = search(photo, finders, order)
    missing, last = tuple(errors), last_of(if_none)
    passed = missing if found and passes_over(if_none) else ()
    if missing and not passed:
        if last is None:
            raise _refusal([*errors.values()], bool(found), passes_over(if_none))
        if last == "whole":
            return (Region.whole(photo, fallback=True),), (), ()
    if max(len(found), len(finders)) > MOST_REGIONS:
        hint = "protect a larger one around them, or whole"
        raise RegionError(f"there are more than {MOST_REGIONS:,} regions", hint=hint)
    return found, () if passed else missing, passed


def _refusal(errors: Sequence[NoRegion], found: bool, passing: bool) -> NoRegion:
    error, *more = errors
    if passing and more:
        message = ", and ".join(dict.fromkeys(each.message for each in errors))
        # one that finds something is enough
        hint = NOTHING_FOUND_HINT.replace(" copy", f" {OTHERS}{JOIN}copy")
        return NoRegion(message, hint=hint, arguments=ARGUMENTS)
    if not found:
        return error
    message, hint = error.message_and_hint({name: f"{{{name}}}" for name in error.arguments})
    alone = f"or replace what else is found alone: {{if_none}} {OTHERS}"
    arguments = {"if_none": "if_none", **error.arguments}
    return NoRegion(message, hint="; ".join(filter(None, [hint, alone])), arguments=arguments)


@dataclass(frozen=True, eq=False)
class Plan:
    """How `method` will treat one photo; created by `plan`, read by previews and explanations.

    `request` describes the requested regions, as in a certificate, and `missing` those of them that were not
    found and stay in the clear, or `passed` those that are passed over then. `notes` are warnings of finders.
    `grown` says which given regions became larger, and why. `smallest` is the height in pixels below which
    none was searched for, by kind of region; `doubtful` are places that look a little like what was searched
    for, and stay in the clear.
    `quote` and `placement` are None if the photo would be copied without any protection.
    """

    photo: Photo
    method: Method
    request: tuple[str, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    post_processing: tuple[Step, ...]
    placement: Placement | None
    quote: Quote | None
    grown: tuple[str, ...] = ()
    smallest: Mapping[str, int] = field(default_factory=dict)
    doubtful: tuple[Region, ...] = ()
    passed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the method and the guarantee only: a representation ends up in logs."""
        promise = (
            "an unprotected copy"
            if self.total is None
            else f"{self.total}: {strength_text(self.total, self.strength)}"
        )
        return f"Plan({self.method.name}, {count_noun(len(self.regions), 'region')}, {promise})"

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions as they will be replaced, in the order of the request."""
        return () if self.placement is None else self.placement.regions

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return () if self.quote is None else self.quote.guarantees

    @property
    def total(self) -> Guarantee | None:
        """The composed guarantee of the whole photo; None for a copy."""
        return None if self.quote is None else self.quote.total

    @cached_property
    def coverage(self) -> CoverageDigests | None:
        """The photo and the pixels of it that are replaced, which a ledger compares; None for a copy."""
        total = self.total
        return None if total is None else CoverageDigests.of(self.photo, self.regions, total.relation)

    @property
    def strength(self) -> str | None:
        """The strength of the total: strong, moderate, weak or practically none; None for a copy."""
        return None if self.quote is None else self.quote.strength

    @property
    def unsure(self) -> tuple[Region, ...]:
        """The regions whose finder gave them a score below `UNSURE`, and which may be something else."""
        return tuple(r for r in self.regions if r.score is not None and r.score < words.UNSURE)

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a release by this plan reveals of the original."""
        everything = ("everything: the photo is copied as it is",)
        return everything if self.quote is None else self.quote.in_the_clear

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that is to be known before a release: the certificate's warnings, except those about the bit
        source, the `remarks`, how many regions are `unsure`, and how many places `doubtful`.
        """
        return (*self.cautions, *self.remarks, *self.doubts)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Notes on how many regions are `unsure`, and how many places `doubtful`, if any."""
        return (*words.unsure_note(len(self.unsure)), *words.doubtful_note(self.doubtful))

    @property
    def cautions(self) -> tuple[str, ...]:
        """The warnings that follow from what the certificate states, except those about the bit source."""
        missing = tuple(words.MISSING.format(description) for description in self.missing)
        if self.quote is None:
            return (UNPROTECTED,)
        return (*self.quote.warnings(), *missing)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for the owner of the original, which no certificate has: see `Release.notes`."""
        faces = self.method.draws_faces
        origins = [region.origin for region in self.regions]
        notes = [*self.notes, *self.method.notes, *self.photo.notes, *self.grown]
        if any(origin.fallback for origin in origins):
            notes.append(words.INSTEAD_BY_A_FACE if faces else words.INSTEAD)
        if faces and FACE not in self.smallest and any(o.kind == BOX or o.faceless for o in origins):
            notes.append(words.BOXES_ALONE)
        notes += () if self.placement is None else self.placement.notes
        kept = words.kept_faces_sentences(self.request, () if self.quote is None else self.quote.regions)
        more = (*kept, *words.passed_notes(self.passed))
        notes += [Aside(text) for text in more if text not in notes]
        return (*notes, *(words.not_searched(kind, height) for kind, height in self.smallest.items()))

    def check_strength(self, least: str | None) -> None:
        """Raise `TooWeak` as `require_strength`."""
        regions = () if self.quote is None else self.quote.regions
        require_strength(least, self.strength, self.total, self.missing, regions)

    def release(
        self,
        *,
        bits: BitSource | None = None,
        ledger: Budget | None = None,
        subject: str | None = None,
        key: str | bytes | None = None,
        again: bool = False,
        other_regions: bool = False,
    ) -> Release:
        """Debit the total from `subject` in `ledger`, draw the noise, and return release and certificate.

        `bits=None` means a fresh `SecureBits`; with `bits` given, the result is a function of plan and bits
        alone. Every call draws new noise and costs the total again; with a `key`, which names the work unit,
        it does so until the release was saved, and then raises `AlreadyPaid`, unless `again` asks for another
        paid draw. A photo whose earlier releases, whoever paid, cover other pixels is refused, unless
        `other_regions` accepts that the sum holds for what all of them cover. Raises `BudgetRefused` or
        `LedgerError` before anything is drawn, and `InvalidParameter` for objects that are no bit source or
        no ledger, and for bits with a ledger that are not secure.
        """
        source = SecureBits() if bits is None else check_bits(bits)
        more = {"again": again, "other_regions": other_regions}
        check_payment(ledger, subject, key, source, **more)
        if self.quote is None or self.placement is None:
            if ledger is not None:
                hint = "replace the whole photo, or leave it out"
                raise BudgetRefused("an unprotected copy cannot be paid from a budget", hint=hint)
            _, blocks = keep_blocks(self.photo, self.photo.image, ())
            return Release(self.photo.image, self._certificate(None, "none"), self.remarks, blocks=blocks)
        certificate = self._certificate(self.quote, bits_kind(source))
        if self.photo.blocks is not None:
            self.photo.blocks()  # of a JPEG that cannot be written again nothing is paid for
        paid = None if ledger is None else pay(ledger, subject, key, certificate, self.coverage, **more)
        image, blocks = self.placement.draw(source, self.post_processing), None
        if self.photo.blocks is not None:
            image, blocks = keep_blocks(self.photo, image, self.placement.regions)
        image.flags.writeable = False
        return Release(image, certificate, self.remarks, paid, blocks)

    def _certificate(self, quote: Quote | None, bits: str) -> Certificate:
        made: dict[str, Any] = {
            "method": None,
            "parameters": {},
            "guarantees": (),
            "regions": (),
            "composition": None,
            "strength": None,
            "accountant": NO_ACCOUNTANT,
            "missing": self.missing,
            "warnings": self.cautions,
        }
        if quote is not None:
            made = {
                "method": self.method.name,
                "parameters": self.method.parameters(),
                "guarantees": quote.guarantees,
                "regions": quote.regions,
                "composition": quote.total,
                "strength": quote.strength,
                "accountant": quote.accountant,
                "missing": self.missing or self.passed,
                "if_none": OTHERS if self.passed else None,
                "post_processing": tuple(step.description for step in self.post_processing),
                "warnings": words.bit_cautions(bits) + self.cautions,
                "terms": terms_of((self.method, *self.post_processing)),
            }
        return Certificate(request=self.request, bits=bits, **made)


def plan(
    photo: Source,
    method: str | Method | None = None,
    *,
    regions: Spec | Sequence[Spec] | None = None,
    if_none: str | None = None,
    post_processing: Sequence[str | Step] | str | Step = (),
    at_least: str | None = None,
    **parameters: Any,
) -> Plan:
    """Return how `method` will treat `photo`: its regions and guarantees. Draws and spends nothing.

    `photo` is whatever `dpveil.read` accepts. `method` is a name with its `parameters`, or a ready-made
    method; without one every face is replaced by a synthetic face (`catalogue.DEFAULT`), and text alone is
    filled. Face-space methods, such as "latent", replace faces by others and cover text.
    `regions` is one choice or several: "whole", "faces", "text", "plates", "codes", "eyes", "irises",
    "faces+text", a box "x,y,w,h" in pixels, a mask. The original is read for each, so overlaps cost twice.
    The default is "whole", and "faces" for face-space methods.
    `post_processing` names steps, such as "median:3", that are applied to each region after the draw at no
    cost. If one of the choices is not found, `NoRegion` is raised, unless `if_none` is "whole" (protect the
    whole photo), "copy" (protect what the other choices found, possibly nothing, and warn), or "others"
    (protect what the other choices found; "others+whole" and "others+copy" if none found anything). A
    strength below `at_least` raises `TooWeak`. Raises errors of `dpveil.errors`. Source: docs, "Guarantees".

    >>> import numpy as np
    >>> made = plan(np.zeros((8, 8), np.uint8), "dp-pix", epsilon=1, block=8)
    >>> str(made.total), made.strength, made.regions[0].box
    ('1-DP, any-image', 'strong', Box(x=0, y=0, w=8, h=8))
    """
    made_by, finders = choose_method(method, regions, parameters)
    given = read(photo)
    check_if_none(if_none)
    steps = tuple(parse_all(post_processing)) if post_processing else ()
    seen, order = made_by.search(given, finders)
    found, missing, passed = choose_regions(seen, finders, order, if_none)
    placement = place_all(made_by, given, found) if found else None
    placed = () if placement is None else placement.regions
    check_kept(found, placed)
    heights = [(n, finder.kind) for finder in finders if (n := finder.smallest_in(seen)) is not None]
    chosen = any(getattr(finder, "likeness", None) is not None for finder in finders)
    staying = sorted({one.origin.number or 0 for region in found for one in region.kept})
    stay = words.staying_note(staying, by_likeness=chosen) if found else ()
    stay = (*(map(Aside, stay) if staying else stay), *words.kept_alone_notes([*missing, *passed]))
    made = Plan(
        photo=given,
        method=made_by,
        request=tuple(finder.description for finder in finders),
        missing=missing,
        passed=passed,
        notes=(*(note for finder in finders for note in (*finder.notes, *finder.notes_on(seen))), *stay),
        post_processing=steps,
        placement=placement,
        quote=None if placement is None else Quote.of(made_by, placed, given, passed),
        grown=_growth_notes(made_by, found, placed),
        smallest={kind: n for n, kind in sorted(heights, reverse=True)},  # the least of a kind comes last
        doubtful=doubtful_places(seen, finders, placed),
    )
    made.check_strength(at_least)
    return made


def place_all(method: Method, photo: Photo, found: Sequence[Region]) -> Placement:
    """Return the placement of regions; a `RegionError` names all faces that are too near to one that stays,
    and those that can be replaced without them.
    """
    try:
        return method.place(photo, found)
    except TooNear:
        errors = {one: error for one in found if (error := _why_too_near(method, photo, one))}
        faces = [one for one in found if one.origin.kind == FACE]
        # A given box has no number by which it could be left out, and some are too near only together.
        if not errors or not all(one.origin.number for one in {*faces, *errors}):
            raise
    near = [one.label + ("" if one.score is None else f" (score {one.score:.2f})") for one in errors]
    rest = [str(one.origin.number) for one in faces if one not in errors]
    kept = " and ".join(dict.fromkeys(error.kept for error in errors.values()))
    are = "is" if len(near) == 1 else "are"
    raise RegionError(
        f"{', '.join(near)} {are} too near to {kept} to be replaced while that stays",
        hint=f"replace the others alone with {{only}} {','.join(rest)}, or all" if rest else "replace all",
        arguments={"only": "only"},
    )


def _why_too_near(method: Method, photo: Photo, region: Region) -> TooNear | None:
    try:
        method.place(photo, [region])
    except TooNear as error:
        return error
    return None


def doubtful_places(photo: Photo, finders: Sequence[Finder], placed: Sequence[Region]) -> tuple[Region, ...]:
    """Return the places that no finder was sure of and of which the middle is not replaced.

    So there are none in a photo that is replaced as a whole.
    """
    seen = (place for finder in finders for place in finder.doubtful_in(photo))
    middles = ((each, Box(each.box.x + each.box.w // 2, each.box.y + each.box.h // 2, 1, 1)) for each in seen)
    return tuple(each for each, middle in middles if not any(region.touches(middle) for region in placed))


def check_kept(asked: Sequence[Region], placed: Sequence[Region]) -> None:
    """Raise `RegionError` if a region would replace pixels that another one keeps."""
    kept = {one.box: one for region in asked for one in region.kept}
    for region in placed:
        if any(region.meets(one) for one in kept.values()):
            hint = "leave the region out, or let that face be replaced, too"
            raise RegionError(f"the region {region.label} reaches over a face that stays", hint=hint)


def _growth_notes(method: Method, asked: Sequence[Region], placed: Sequence[Region]) -> tuple[str, ...]:
    if len(asked) != len(placed):  # a plug-in may place one region for several
        return ()
    pairs = zip(asked, placed, strict=True)
    return tuple(
        words.growth_note(before.box, after.record, method.of_region(after.record).also_replaced)
        for before, after in pairs
        if before.box != after.box and not before.origin.found
    )


MOST_PIXELS: Final = 2**31  # most pixels of a size that is explained


def plan_json(plan: Plan, options: Mapping[str, str]) -> dict[str, Json]:
    """Return a plan as JSON: regions, guarantees, total, strength, warnings, and what the largest one means.

    `options` are the words for arguments, as in `DPVeilError.told`. A copy has no total and no `largest`.
    """
    from dpveil.release.explain import explain_largest

    entries = zip(() if plan.quote is None else plan.quote.regions, plan.guarantees, strict=True)
    return {
        "regions": [{**region.to_json(), "guarantee": each.to_json()} for region, each in entries],
        "total": None if plan.total is None else plan.total.to_json(),
        "strength": plan.strength,
        "in_the_clear": list(plan.in_the_clear),
        "warnings": list(notes_with_options(plan.warnings, options)),
        "largest": None if plan.quote is None else explain_largest(plan.quote).to_json(),
    }


def size_of(text: str | None) -> tuple[int, int]:
    """Return width and height in pixels of a size such as "128x128"; raises `InvalidParameter`."""
    parts = re.fullmatch(r"\s*([0-9]{1,9})\s*[xX×]\s*([0-9]{1,9})\s*", text or "")
    if parts is None or not int(parts[1]) * int(parts[2]):
        problem = "is missing" if text is None else "is not a size"
        raise InvalidParameter("size", text, problem, hint="width x height in pixels, such as 128x128")
    width, height = int(parts[1]), int(parts[2])
    if width * height > MOST_PIXELS:
        hint = f"at most {MOST_PIXELS:,} pixels"
        raise InvalidParameter("size", text, "is larger than any photo", hint=hint)
    return width, height


def obfuscate(
    photo: Source,
    method: str | Method | None = None,
    *,
    regions: Spec | Sequence[Spec] | None = None,
    bits: BitSource | None = None,
    ledger: Budget | None = None,
    subject: str | None = None,
    key: str | bytes | None = None,
    again: bool = False,
    other_regions: bool = False,
    if_none: str | None = None,
    post_processing: Sequence[str | Step] | str | Step = (),
    at_least: str | None = None,
    **parameters: Any,
) -> Release:
    """Return a release of `photo` in which `method` was applied to every pixel of `regions`.

    `bits`, `ledger`, `subject`, `key`, `again` and `other_regions` are as in `Plan.release`, all other
    arguments as in `plan`. With `bits` given, the result is a function of the arguments alone. Raises errors
    of `dpveil.errors` and then releases nothing. Source: docs, "Guarantees".

    >>> import numpy as np
    >>> release = obfuscate(np.zeros((8, 8), np.uint8), "dp-pix", epsilon=1, block=8)
    >>> release.image.shape, str(release.certificate.composition)
    ((8, 8, 1), '1-DP, any-image')
    """
    made = plan(
        photo,
        method,
        regions=regions,
        if_none=if_none,
        post_processing=post_processing,
        at_least=at_least,
        **parameters,
    )
    paying = {"ledger": ledger, "subject": subject, "key": key}
    return made.release(bits=bits, **paying, again=again, other_regions=other_regions)  # type: ignore[arg-type]


class Budget(Protocol):
    """What pays for releases, as `dpveil.ledger.Ledger`."""

    def debit(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        *,
        again: bool = False,
        covered: CoverageDigests | None = None,
        other_regions: bool = False,
    ) -> Payment:
        """Debit a release for good, or raise `BudgetRefused`, `AlreadyPaid` or `LedgerError`.

        On return the debit survives a loss of power, and bits may be drawn.
        """


def check_payment(
    ledger: Budget | None,
    subject: str | None,
    key: str | bytes | None,
    bits: BitSource,
    *,
    again: bool = False,
    other_regions: bool = False,
) -> None:
    """Raise `InvalidParameter` unless these arguments of a release belong together.

    With a ledger all bits but secure ones are refused: whoever knows a seed undoes the release, whatever was
    paid, and of other sources nothing is known.
    """
    if ledger is None:
        named = {"subject": subject is not None, "key": key is not None}
        for name, given in {**named, "again": again, "other_regions": other_regions}.items():
            if given:
                raise InvalidParameter(name, None, "is given without a ledger", hint="give a ledger, too")
        return
    if not callable(getattr(ledger, "debit", None)):
        hint = 'give an object with the method debit, such as dpveil.Ledger("sqlite:///budget.db")'
        raise InvalidParameter("ledger", type(ledger).__name__, "is not a ledger", hint=hint)
    if subject is None:
        raise InvalidParameter("subject", None, "is missing", hint="name who pays, such as album-7")
    if (kind := bits_kind(bits)) != SECURE:
        reason = "is reproducible" if kind == SEEDED else "is not known to be secure"
        problem = f"{reason}, and no budget pays for that"
        raise InvalidParameter("bits", type(bits).__name__, problem, hint="leave out bits, or the ledger")


def pay(
    ledger: Budget,
    subject: str | None,
    key: str | bytes | None,
    certificate: Certificate,
    covered: CoverageDigests | None,
    *,
    again: bool = False,
    other_regions: bool = False,
) -> Payment:
    """Debit the total of a certificate for good; on return, bits may be drawn.

    `covered` is the photo and what is covered of it. Without a key, the work unit is the photo's content with
    these settings, and every call draws it again; with one, only `again` does once it was stored.
    """
    total = certificate.composition
    if subject is None or total is None or covered is None:
        raise InvalidParameter("subject", None, "is missing", hint="name who pays, such as album-7")
    if key is None:
        settings = json.dumps(certificate.settings, sort_keys=True).encode()
        # the photo's content and the settings, of which a ledger keeps an HMAC only
        key, again = hashlib.sha256(hashlib.sha256(settings).digest() + covered.photo).digest(), True
    return ledger.debit(subject, total, key, again=again, covered=covered, other_regions=other_regions)
