"""Every sentence about regions and costs, made of a certificate's data by the version that shows it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Final

from dpveil.accounting.meaning import NONE, strength
from dpveil.core.certificate import SEEDED
from dpveil.core.guarantee import Guarantee, count_noun, pixels
from dpveil.core.notes import Aside, Note
from dpveil.core.rationals import show
from dpveil.core.region import Box, Region, RegionRecord, first_overlap
from dpveil.core.region_origin import (
    BESIDE,
    BLOCKLESS,
    BOX,
    BY_LIKENESS,
    CODE,
    EXCEPT,
    EYE,
    FACE,
    LIKE,
    LIKENESS,
    LINKED,
    MASK,
    OBJECT,
    PLATE,
    REDUCED,
    ROUNDED,
    SAME,
    TEXT,
    WHOLE,
    Origin,
)
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.method import Method
from dpveil.regions.finder import Selection
from dpveil.regions.given_regions import asked_box

LOW_STRENGTH: Final = {
    "weak": (
        "WEAK PROMISE: whoever can name two possible originals can mostly tell which one it was, or in a"
        " few cases for certain (see dpveil explain)"
    ),
    NONE: (
        "PRACTICALLY NO PROMISE: whoever can name two possible originals can almost surely tell which one"
        " it was (see dpveil explain)"
    ),
}
"""The warning about a photo's total guarantee, by its strength."""
HEURISTIC: Final = "NO FORMAL GUARANTEE: this method is common practice, may be undone, and promises nothing"
TRACES: Final = "traces of the region that lossy {} spread over the rest of the photo"
SPREAD: Final = (
    "lossy {} may leave traces of what is replaced anywhere in the photo;"
    " what is replaced is wider for it, and looks worse; start from its JPEG or PNG original"
)
REDUCED_TRACES: Final = (
    "traces of the region anywhere in the photo: which few colours the source has, and how they are dithered,"
    " may follow from all of the original"
)
REDUCED_SPREAD: Final = (
    "not publishable: the source has {}, and colours and dither anywhere may show what is hidden;"
    " start from the original before its colours were reduced, protect the whole photo, or, if reducing them"
    " lost nothing, release it with --trust-source lossless"
)
PAGE_TRACES: Final = "traces of the region that lossy pictures of the PDF may spread around it"
PAGE_SPREAD: Final = (
    "lossy pictures in the PDF may leave traces around what is replaced;"
    " replace whole pages, or start from lossless scans"
)
VOUCHED: Final = "the owner of the source says that it lost nothing; otherwise it shows {}"
CHANNELS: Final = "whether the photo is grey, which may follow from pixels that are replaced"
SILHOUETTE: Final = f"the head's silhouette with its hair, {SAME}"
MASKED: Final = "the mask's silhouette"
NOTHING: Final = "that no region was found: the guarantee compares photos in which none is"
STORED: Final = "that the input was stored as {}, and its block grid"
TABLES: Final = ", and in a release that is a JPEG, too, its quantisation tables and its chroma sampling"
STORED_SO: Final = {"palette": "a palette", "PDF": "pages"}
"""What a source without blocks has, in words; those of few bits are called by these."""
OVERLAP: Final = "{} and {} overlap: each reads the original, so their costs add"
LARGE_DELTA: Final = Fraction(1, 100)  # a certificate warns of any δ above this
MISSING: Final = "NOT FOUND: {}; what it would have protected is released as it is"
"""Warns that a requested region was not found and stays in the clear, as `if_none` allowed."""
FEW: Final = (
    "PROMISED ABOUT ANY {} ALONE: about all of a region, such as a face, the promise is practically none"
    " (see dpveil explain)"
)
CHOSEN: Final = (
    "{}: chosen by the user and not covered; if the original was looked at to choose, this reveals"
    " something of it"
)
INSTEAD: Final = "nothing was found, and the whole photo is replaced instead"
INSTEAD_BY_A_FACE: Final = (
    f"{INSTEAD}, by one face as large as the photo: methods that replace faces draw nothing else; fill, or"
    " noise such as dp-pix, hides a photo without drawing a face"
)
UNSURE: Final = 0.3  # score below which a found region is for a person to check, as it may be something else
PURE_NOISE: Final = 128  # noise scale in grey levels above which hardly anything of a region remains visible
NOISE: Final = "practically pure noise"
SMALLER: Final = 256  # the neighbourhood, in pixels, with which the warning of pure noise compares


def covers(record: RegionRecord, channels: int) -> str:
    """Return the sentence of `Scope.covers` for a region."""
    return f"{record.in_words()}, {channels} channel{'s' if channels > 1 else ''}"


def clear_parts(record: RegionRecord, *, width: int, height: int) -> tuple[str, ...]:
    """Return what the release of a region of a width × height photo leaves in the clear, by its origin."""
    origin, face = record.origin, record.origin.kind == FACE
    found, outside = sentences(origin)
    if origin.cell is not None:
        found = tuple(text.replace(SAME, f"{ROUNDED}, {SAME}") for text in found)
    stored: tuple[str, ...] = ()
    if (codec := origin.grown_to) is not None:  # what a release shows of how the input was stored
        blocks = STORED.format(codec) + TABLES * (codec == "JPEG")
        stored = (
            f"that the input had {STORED_SO.get(codec, f'{codec} pixels')}" if codec in BLOCKLESS else blocks,
        )
    if record.masked is None and record.box == Box(0, 0, width, height):
        none = (NOTHING,) if origin.fallback else ()
        return ("the photo's size in pixels and its number of channels", *found, *none, *stored)
    outline = [] if record.masked is None else [SILHOUETTE if origin.outlined else MASKED]
    traces: tuple[str, ...] = ()
    if codec is not None:
        kinds = {"PDF": PAGE_TRACES, **dict.fromkeys(REDUCED, REDUCED_TRACES)}
        text = kinds.get(codec, TRACES.format(codec))
        vouched = (VOUCHED.format(text),) * (codec in BLOCKLESS)
        traces = (text,) if origin.escapes else vouched
    place = found or ("position and size of the region",)
    outline += [BESIDE] if face and EXCEPT.search(origin.finder) else []
    outline += [LIKENESS] if face and BY_LIKENESS.search(origin.finder) else []
    return (*place, *outline, *stored, *traces, CHANNELS, outside)


def traces(records: Sequence[RegionRecord]) -> tuple[str, ...]:
    """Return the warnings about traces that a lossy source or its few colours left beyond any margin."""
    told = []
    for codec in dict.fromkeys(r.origin.grown_to for r in records if r.origin.escapes):
        if codec in REDUCED:
            told.append(REDUCED_SPREAD.format(STORED_SO.get(codec, f"{codec} pixels")))
        elif codec:
            told.append(PAGE_SPREAD if codec == "PDF" else SPREAD.format(codec))
    return tuple(told)


def bit_cautions(bits: str) -> tuple[str, ...]:
    """Return the warning about a kind of bit source; none for secure bits."""
    if bits == "secure":
        return ()
    return (SEEDED if bits == "seeded" else f"NOT FOR PUBLICATION: nothing is known about {bits!r} bits",)


def cautions(
    method: Method,
    records: Sequence[RegionRecord],
    channels: int,
    total: Guarantee,
    *,
    sizes: int | None = None,
) -> tuple[str, ...]:
    """Return the warnings about the method, the regions' sizes and their total.

    Regions are checked for pure noise only if they have one of the first `sizes` different sizes (None: all),
    because calibrating for a size takes up to seconds.
    """
    notes = [*total_warnings(total)]
    paid = [r for r in records if method.of_region(r) is method]  # nothing of objects beside faces is read
    pairs, (a, b) = first_overlap([record.box for record in paid])
    more = f" ({pairs - 1} more pairs do)" if pairs > 1 else ""
    if pairs and total.formal and not total.free:
        both = [r.origin.name for r in (paid[a], paid[b])]
        notes.append(OVERLAP.format(*both) + more)
    notes += traces(records)
    looked = list(dict.fromkeys((record.box.h, record.box.w) for record in records))[:sizes]
    noisy = {size: pure_noise(method, *size, channels) for size in looked}
    told = ((record.label, noisy.get((record.box.h, record.box.w))) for record in records)
    return (*notes, *(f"{label}: {text}" for label, text in told if text))


def total_warnings(total: Guarantee) -> tuple[str, ...]:
    """Return the warnings about a photo's total guarantee."""
    said = LOW_STRENGTH.get(strength(total), "") if total.formal else HEURISTIC
    return tuple(text for text in (said, large_delta_warning(total)) if text)


def growth_note(asked: Box, record: RegionRecord, also: str) -> str:
    """Return a note that a larger box is replaced than was given, and why; it is never in a certificate.

    `also` says what the method replaces around a box, if anything.
    """
    codec = record.origin.grown_to
    why = [also] * bool(also)
    why += [f"whole {codec} blocks are replaced, which hold traces of the region"] * (codec is not None)
    return f"the box {asked} became {record.box}: {', and '.join(why) or 'the method places it so'}"


def not_searched(kind: str, smallest: int) -> Aside:
    """Return a note on which sizes were not searched for in a photo; it is never in a certificate."""
    small = f"{kind}s below {count_noun(smallest, 'pixel')} of height were not looked for"
    return Aside(f"{small}, and larger ones may have been missed: all of these stay visible")


def few_pixels_warning(total: Guarantee) -> str:
    """Return the warning that a guarantee is for few pixels, and practically none for a whole region."""
    return FEW.format(pixels(total.relation.m or 0).upper())


NO_PROMISE: Final = "nothing is promised"
ABOUT: Final = {
    "latent-cell": " about the code of a face",
    "singular-values": " about the singular values",
    "database-record": " about any record",
    "person": " about any person",
}
"""What a guarantee is about, by its relation, where that is not all that is replaced."""


def linked_faces_clause(total: Guarantee, before: str = "") -> str:
    """Return, after `before`, what a guarantee does not cover of linked faces; empty if none are."""
    return f"{before} but which faces are of one person" * (LINKED in total.scope.in_the_clear)


def in_short(total: Guarantee, of: str = " of what was replaced") -> str:
    """Return the numbers of a guarantee, for people, and `of` what nothing is kept where that is so.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> about = {"relation": Relation("m-pixels", 16), "scope": Scope("a photo")}
    >>> in_short(Guarantee(kind="pure", epsilon=2, **about))
    'ε = 2 about any 16 pixels'
    >>> in_short(Guarantee(kind="pure", epsilon=0, **about))
    'nothing of what was replaced is kept (ε = 0)'
    """
    if not total.formal:
        return NO_PROMISE
    if total.free:
        return f"nothing{of} is kept{linked_faces_clause(total)} (ε = 0)"
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    numbers = ", ".join(
        f"{letter} = {show(value)}"
        for n, letter in letters.items()
        if (value := getattr(total, n)) is not None
    )
    distance = f" per unit of {total.metric}" if total.metric else ""
    m = total.relation.m
    about = f" about any {pixels(m)}" if m else ABOUT.get(total.relation.name, "")
    return numbers + distance + about + linked_faces_clause(total, " about all")


QUOTED: Final = {
    "pure": "{neighbours} change the chances of every possible release at most by the factor {odds}"
    " (ε = {epsilon})",
    "approximate": "{neighbours} change the chances of every set of releases at most by the factor {odds}"
    " (ε = {epsilon}), but for a probability of δ = {delta}",
    "zcdp": "{neighbours} are as hard to tell apart by the release as zero-concentrated differential privacy"
    " with ρ = {rho} requires",
    "metric": "{neighbours} at distance d ({metric}) change the chances of every possible release at most by"
    " the factor e^(ε·d), with ε = {epsilon}",
}
"""What a guarantee says, by its kind, for `quotation`."""


def quotation(total: Guarantee | None, tool: str, sha256: str = "") -> str:
    """Return one sentence on a release that can be quoted as it is; `sha256` names its file.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> whole = {"relation": Relation("any-image"), "scope": Scope("a photo")}
    >>> quotation(Guarantee(kind="pure", epsilon=2, **whole), "dpveil 1.0")
    'What dpveil 1.0 replaced here is differentially private: any two photos of the same size change the ...'
    """
    file = f" in the file with SHA-256 {sha256}" if sha256 else " here"
    if total is None or not total.formal:
        return f"Nothing is promised about what {tool} shows{file}."
    rest = "; nothing is promised about anything else in it, or about where the replaced places are."
    if total.free:
        but = linked_faces_clause(total)
        said = f"was drawn without regard to what the original shows there{but}:"
        said += f" nothing{' else' * bool(but)} of that is kept (ε = 0)"
        return f"What {tool} put in the replaced places{file} {said}{rest}"
    numbers = {name: show(value) for name in ("epsilon", "delta", "rho") if (value := getattr(total, name))}
    large = (total.epsilon or 0) > 99  # beyond, floats have no such power
    odds = "e^ε" if large else f"{math.ceil(1000 * math.exp(float(total.epsilon or 0))) / 1000:g}"
    alike = total.relation.in_words() + " with the same faces linked" * bool(linked_faces_clause(total))
    words = {"neighbours": alike, "odds": odds, "metric": total.metric, "delta": "0"}
    said = QUOTED[total.kind].format(**{**words, **numbers})
    return f"What {tool} replaced{file} is differentially private: {said}{rest}"


def share(records: Sequence[RegionRecord], width: int, height: int) -> str:
    """Return how many of a photo's pixels are protected; empty if one region is the whole photo.

    >>> share([RegionRecord(Box(40, 52, 10, 10))], width=640, height=480)
    '100 of 307,200 pixels'
    """
    if any(record.full and record.box == Box(0, 0, width, height) for record in records):
        return ""
    overlapping = first_overlap([record.box for record in records])[0] > 0
    each = (r.box.w * r.box.h if r.masked is None else r.masked for r in records)
    pixels = width * height
    return f"{'at most ' * overlapping}{min(sum(each), pixels):,} of {pixels:,} pixels"


def unsure_note(count: int) -> tuple[str, ...]:
    """Return the note on so many regions with a score below `UNSURE`, if any."""
    was = "was" if count == 1 else "were"
    text = f"{count_noun(count, 'region')} {was} found with a score below {UNSURE} and may be something else"
    return (text,) * bool(count)


def staying_note(numbers: Sequence[int], *, by_likeness: bool, what: str = "face") -> tuple[str, ...]:
    """Return the note that tells the owner which faces stay, or that reference photos matched none."""
    if numbers:
        stay = "{} {} stays as it is" if len(numbers) == 1 else "{}s {} stay as they are"
        return (stay.format(what, _numbers_text(numbers)),)
    nobody = "nobody stays: no face was clearly one that is to stay by its likeness, and all are replaced"
    return (nobody,) * by_likeness


def doubtful_note(places: Sequence[Region]) -> tuple[Note, ...]:
    """Return the note on places that may be faces and stay in the clear, if any."""
    if not places:
        return ()
    one = len(places) == 1
    what = "one place that may be a face is" if one else f"{len(places)} places that may be faces are"
    them = "it" if one else "them"
    form = f"{what} not hidden: look there, and replace {them} too with {{threshold}}"
    return (Note(form, threshold=finding_threshold(places)),)


def finding_threshold(places: Sequence[Region]) -> str:
    """Return a threshold with which all of these places would have been found, in two digits."""
    least = min(place.score or 0.0 for place in places)
    return f"{max(0.01, math.floor(100 * least) / 100):.2g}"


def large_delta_warning(guarantee: Guarantee) -> str:
    """Return the warning of a δ above `LARGE_DELTA`; empty for a smaller one."""
    if guarantee.delta is None or guarantee.delta <= LARGE_DELTA:
        return ""
    return f"WITH PROBABILITY {show(guarantee.delta)} NOTHING IS PROMISED (delta)"


def pure_noise(method: Method, height: int, width: int, channels: int) -> str:
    """Return the warning that a region of this size would be practically pure noise; empty if it is not."""
    size = {"height": height, "width": width, "channels": channels}
    scale = method.noise_scale(**size)
    if scale is None or scale <= PURE_NOISE:
        return ""
    text = f"{NOISE}, of scale {scale:,.0f} grey levels where 255 is white"
    wide = getattr(method, "neighbourhood", SMALLER) or width * height
    if wide <= SMALLER or "neighbourhood" not in {field.name for field in fields(method)}:  # type: ignore[arg-type]
        return f"{text}; a smaller neighbourhood, or a larger block or epsilon, means less"
    less = replace(method, neighbourhood=SMALLER).noise_scale(**size) or 0.0  # type: ignore[type-var]
    if less >= scale:
        return text
    digits = 0 if less >= 10 else 2
    return f"{text}; a neighbourhood of {SMALLER} pixels would have {less:,.{digits}f}, and promise less"


OUTSIDE: Final = "everything outside the region"
FACES_TOO: Final = (
    f"where faces are, if they were looked for: with the pixels of this region in sight, {SAME}"
)
"""What is told beside regions of text and the like: they are covered once faces are found."""


def _about(place: str, many: str, rest: str) -> tuple[str, str, str]:
    count = f"how many {many} were found, and that none was found elsewhere"
    return f"position and size of {place}, {SAME}", count, f"{OUTSIDE}, with {rest}"


FACE_BOX, FACE_COUNT, NO_OTHER_FACE = _about(
    "the face box", "faces", "every face that was not found or not chosen"
)
PLACE, COUNT, NO_OTHER = _about("the region", "regions", "every {} that was not found")
TEXT_BOX, TEXT_COUNT, NO_OTHER_TEXT = _about(
    "the box of text, and so about how long the text is", "lines of text", "all text that was not found"
)
BY_REQUEST: Final = {
    "text": (TEXT, TEXT_BOX, TEXT_COUNT, NO_OTHER_TEXT),
    "plates": (
        PLATE,
        *_about(
            "the plate's box, and so about how long its text is", "plates", "every plate that was not found"
        ),
    ),
    "codes": (CODE, *_about("the code's box", "QR and bar codes", "every code that was not found")),
    **dict.fromkeys(
        ("eyes", "irises"),
        (
            EYE,
            *_about(
                "the eye's box, rounded to a public grid",
                "faces with eyes",
                "the face around it and all eyes that were not found",
            ),
        ),
    ),
}
"""By the first word of a request: the kind of what it finds, and the three sentences about that."""
TEXT_CHOICE: Final = (
    "how many lines of text do not clearly say something else than what was asked for, and that all others"
    f" do: this follows from the letters of all lines, also of those that are replaced, {SAME}"
)
NONE_FOUND: Final = {
    word: (f"no {one} was found", f"{many} that {was} missed {stay} visible")
    for words, one, many, was, stay in (
        ("faces", "face", "faces", "were", "stay"),
        ("text", "text", "text", "was", "stays"),
        ("plates", "plate", "plates", "were", "stay"),
        ("codes", "QR or bar code", "codes", "were", "stay"),
        ("eyes irises", "eye", "eyes", "were", "stay"),
    )
    for word in words.split()
}
"""By the first word of a request: what is so if it is passed over, and what follows from that."""
NONE_BUT_KEPT: Final = (
    "no face was found, or none but those that are to stay as they are",
    "these and faces that were missed stay visible",
)
"""The same of a request that keeps faces, and may have found these."""


def sentences(origin: Origin) -> tuple[tuple[str, ...], str]:
    """Return what finding a region tells, each with its own sentence, and what stays beside it."""
    word = origin.finder.partition(" ")[0]
    if origin.kind == FACE:
        return (FACE_BOX, FACE_COUNT), NO_OTHER_FACE
    if not origin.found:
        return (), OUTSIDE
    kind, *told = BY_REQUEST.get(word, ("", ""))
    if origin.kind == kind:
        place, count, rest = told
        if LIKE in origin.finder:
            count, rest = TEXT_CHOICE, f"{rest}, or that was read as something else than what was asked for"
        return (place, count, FACES_TOO), rest
    if word == "detected":  # by a user's own detector
        return (PLACE, COUNT, FACES_TOO), NO_OTHER.format(origin.kind)
    return (PLACE, COUNT), OUTSIDE


def passing(requests: Sequence[str]) -> tuple[str, ...]:
    """Return what is told, in one sentence, if nothing was found of these requests, which are passed over."""
    same = "the guarantee compares photos with the same result"
    told = (f"that {what}: {same}; {visible}" for what, visible in _passed_over(requests))
    return tuple(filter(None, ["; ".join(told)]))


def passed_notes(requests: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each kind of request of which nothing was found.

    >>> passed_notes(["faces margin=0", "text", "faces"])
    ('no face was found: faces that were missed stay visible', 'no text was found: text that was missed ...')
    """
    return tuple(f"{what}: {visible}" for what, visible in _passed_over(requests))


def kept_alone_notes(requests: Sequence[str]) -> tuple[str, ...]:
    """Return a note if nothing was replaced by a request that keeps faces, of which these may be all."""
    return passed_notes([request for request in requests if EXCEPT.search(request)])


def _passed_over(requests: Sequence[str]) -> dict[tuple[str, str], None]:
    told = []
    for request in requests:
        word = request.partition(" ")[0]
        other = f"nothing was found for {request}", "what was missed stays visible"
        kept = word == "faces" and EXCEPT.search(request)
        told.append(NONE_BUT_KEPT if kept else NONE_FOUND.get(word, other))
    return dict.fromkeys(told)


MASK_REQUEST: Final = re.compile(r"(?:.* )?mask sha256:[0-9a-f]{64}")
"""Requests of masks, and of regions with a mask."""
FACES: Final = "faces"  # the first word of a request for faces, and the default regions of face-space methods
BOXES_ALONE: Final = "no face was looked for: every face outside the given boxes stays visible"
MOST_NAMED: Final = 8  # most faces that a sentence names


def request_kind(text: str) -> str:
    """Return the kind of region that a request asks for; empty for a finder's own.

    >>> request_kind("faces except=2"), request_kind("object:1,2,3,4"), request_kind("signs")
    ('face', 'object', '')
    """
    if text.partition(" ")[0] == FACES:
        return FACE
    if (word := text.partition(" ")[0]) in BY_REQUEST:
        return BY_REQUEST[word][0]
    if text == WHOLE:
        return WHOLE
    if MASK_REQUEST.fullmatch(text):
        return MASK
    try:
        return OBJECT if asked_box(text).object else BOX
    except InvalidParameter:
        return ""


def kept_faces_sentences(request: Sequence[str], regions: Sequence[RegionRecord]) -> tuple[str, ...]:
    """Return a sentence for every request for faces of which some were to stay as they are.

    >>> from dpveil.core.region_origin import Origin
    >>> from dpveil.core.region import Box
    >>> one = RegionRecord(Box(0, 0, 9, 9), Origin("face", "faces except=2", number=1, found=True))
    >>> kept_faces_sentences(["faces except=2"], [one])
    ('face 2 stays as it is, as was asked for',)
    """
    told = list[str]()
    for text in dict.fromkeys(record.origin.finder for record in regions):
        asked = Selection.of(text) if text in request else None
        if asked is not None and asked.exclude:
            told += staying_note(asked.exclude, by_likeness=False)
        elif asked is not None and asked.by_likeness:
            told.append("faces that are like those of reference photos, or unlike, stay as they are")
        elif asked is not None and asked.only:
            told.append(f"every face but {_numbers_text(asked.only)} stays as it is")
    return tuple(f"{text}, as was asked for" for text in told)


def _numbers_text(numbers: Sequence[int]) -> str:
    named = list(map(str, numbers[:MOST_NAMED]))
    named += [f"{len(numbers) - MOST_NAMED} more"] * (len(numbers) > MOST_NAMED)
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
