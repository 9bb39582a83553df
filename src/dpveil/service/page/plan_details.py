"""What a worker tells the page beyond `/v1/plan`: outlines, kept faces, and sentences; of the same plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from dpveil.accounting.meaning import NONE, success_bound
from dpveil.assets.file_reference import forbids_commerce, terms_of
from dpveil.catalogue import build
from dpveil.core.guarantee import Guarantee, count_noun, pixels
from dpveil.core.notes import Aside
from dpveil.core.rationals import Json, show
from dpveil.core.region import Region
from dpveil.core.region_origin import FACE
from dpveil.errors import DPVeilError, RegionError
from dpveil.faces.attribute_model import CAUTION, VALUES
from dpveil.mechanisms.pixel.common_practice import Fill
from dpveil.mechanisms.rank_choice import RandomisedResponse
from dpveil.opencv import cv2
from dpveil.regions.given_regions import OBJECTS
from dpveil.release.explain import CANDIDATES, explain_largest, percent_above
from dpveil.release.plan import Plan, plan, plan_json
from dpveil.release.words import BOXES_ALONE, LOW_STRENGTH, few_pixels_warning, in_short, staying_note
from dpveil.service.page.account import SIGNS, price_text
from dpveil.service.request_settings import Request

BUDGETS: Final = ("0.5", "1", "2", "4")
"""Budgets of one attribute that the page offers; beyond 4 there is little to gain (docs, "attributes")."""
FOR_ANY_USE: Final = "A rendered face"
WAYS: Final[tuple[tuple[str, str, str, dict[str, Json]], ...]] = (
    ("faces", "Inner face only", "Forehead to chin: hair, ears and neck stay.", {}),
    ("heads", "Whole head", "With hair, ears and neck: it hides more.", {"protect": "head"}),
    (
        "rendered",
        FOR_ANY_USE,
        "For any use, also in print: less like a photo.",
        {"gallery": "heads", "outside": "none"},
    ),
    ("fill", "A grey box", "For faces, and anything else that you frame.", {"level": 128}),
)
"""What replaces a face: a name, what it is called, words about it, and settings of `fill` or `attributes`."""
ALSO: Final = {
    "text": ("Text", "rapidocr"),
    "plates": ("Number plates", "rapidocr"),
    "codes": ("QR and bar codes", "cv2"),
}
"""What the page replaces beside faces if asked: what it is called, and the library that finds it."""


def offers() -> dict[str, Json]:
    """Return the ways to replace a region, the attributes that each can keep, and what else is replaced."""
    also: list[Json] = [
        {"name": name, "title": title} for name, (title, library) in ALSO.items() if find_spec(library)
    ]
    research = forbids_commerce(terms_of([build("attributes", {})]).values())
    ways: list[Json] = [
        {
            "name": name,
            "title": title,
            "words": words,
            "settings": {"method": "fill" if name == "fill" else "attributes", **more},
            "keeps": name != "fill",
            "attributes": [] if name == "fill" else _attributes(more),
        }
        for name, title, words, more in WAYS
        if research or name != "rendered"
    ]
    return {"ways": ways, "also": also, "caution": " ".join(CAUTION)}


def _attributes(settings: Mapping[str, Any]) -> list[Json]:
    told: list[Json] = []
    for name, values in VALUES.items():
        responses = {e: RandomisedResponse(epsilon=e, values=len(values)) for e in BUDGETS}
        missing = ""
        try:
            build("attributes", {**settings, "attributes": f"{name}=1"})
        except DPVeilError as error:  # no model that reads it is installed
            missing = error.message
        budgets: list[Json] = [
            {"epsilon": e, "kept": f"{100 * float(each.keep_probability):.0f} %"}
            for e, each in responses.items()
        ]
        told.append({"name": name, "values": list(values), "budgets": budgets, "missing": missing})
    return told


ACTS: Final[Mapping[str, str]] = {
    "threshold": "a press on the question mark",
    "protect": "another choice under “Replace with”",
}
"""What is done on the page in the place of a setting that a note names."""
SETTING: Final = re.compile(rf'\b({"|".join(ACTS)})="[^"]*"')
"""A setting with its value in the text of a note."""
SAID: Final[Mapping[str, str]] = {
    LOW_STRENGTH["weak"]: (
        "Weak promise: whoever knows the two photos in question can tell in most cases which one was"
        " released, or in a few cases for certain."
    ),
    LOW_STRENGTH[NONE]: (
        "Practically no promise: whoever knows the two photos in question can tell almost surely which one"
        " was released."
    ),
    BOXES_ALONE: "No face is replaced: every face outside your boxes stays as it is.",
}
"""Sentences that name commands of the command line, as the page says them."""
FEW: Final = (
    "Promised about any {} alone: about all pixels of a region together the promise is practically none."
)


def warnings(sentences: Iterable[str], total: Guarantee | None) -> dict[str, list[Json]]:
    """Return the warnings of a plan or a certificate, and apart from them what is for information."""
    told: dict[str, list[Json]] = {"warnings": [], "notes": []}
    m = None if total is None else total.relation.m
    few = {} if total is None or m is None else {few_pixels_warning(total): FEW.format(pixels(m))}
    for text in sentences:
        said = SETTING.sub(lambda found: ACTS[found[1]], text)
        told["notes" if isinstance(text, Aside) else "warnings"].append({**SAID, **few}.get(said, said))
    return told


OUT: Final = f"“{FOR_ANY_USE}” with nothing kept of it is for any use"


def licence_notes(terms: Iterable[str]) -> list[str]:
    """Return a note if the terms of a trained file that was used forbid commerce."""
    research = forbids_commerce(terms)
    return [
        Aside(f"licence: for non-commercial research only, as is a trained file that is used; {OUT}")
    ] * research


KEPT: Final = "except"  # the setting that names the faces to be kept
GREY: Final = "a grey box"
FACES: Final = {"face": "a synthetic face", "head": "a synthetic head", "box": "a synthetic head"}
"""What replaces faces, by `protect`."""


def plan_details(planned: Plan, settings: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Json]:
    """Return what the page shows of a plan: its JSON as `/v1/plan` has it, and what is seen and said.

    `kept` are the faces that `settings` except, as they would be replaced; `doubtful` are places that may be
    faces and stay in the clear. Outlines are polygons [[x, y], ...] in pixels of the oriented photo.
    """
    return {
        "plan": plan_json(planned, words),
        "size": [planned.photo.width, planned.photo.height],
        "outlines": [outlines(region) for region in planned.regions],
        "kept": _kept_faces(planned, settings),
        "doubtful": [_box(region) for region in planned.doubtful],
        "said": _sentences(planned),
    }


def outlines(region: Region) -> list[Any]:
    """Return the polygons around the pixels that are replaced; the corners of the box without a mask.

    >>> from dpveil.core.region import Box
    >>> outlines(Region(Box(2, 3, 4, 5)))
    [[[2, 3], [6, 3], [6, 8], [2, 8]]]
    """
    box = region.box
    if region.mask is None:
        right, below = box.x + box.w, box.y + box.h
        return [[[box.x, box.y], [right, box.y], [right, below], [box.x, below]]]
    # Twice the size, so that the lines run along the edges of pixels and not through their middles.
    mask = np.pad(np.kron(region.mask, np.ones((2, 2), np.uint8)), 1)
    found, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    corner = np.array([box.x, box.y])
    return [((line[:, 0] // 2) + corner).tolist() for line in found]


def _kept_faces(planned: Plan, settings: Mapping[str, Any]) -> list[Json]:
    if not settings.get(KEPT):
        return []
    rest = {name: value for name, value in settings.items() if name != KEPT}
    given = settings.get("regions")
    given = given if isinstance(given, list) else [given]
    objects = [text for text in given if str(text).strip().startswith(OBJECTS)]
    request = Request.of({**rest, "regions": ["faces", *objects]})  # under objects no face is counted
    try:
        every = plan(planned.photo, request.method, regions=request.finders)
    except RegionError:
        return []
    shown = {region.origin.number for region in planned.regions if region.origin.kind == FACE}
    return [
        {"number": region.origin.number, "box": _box(region), "outline": outlines(region)}
        for region in every.regions
        if region.origin.kind == FACE and region.origin.number not in shown
    ]


def _box(region: Region) -> list[Json]:
    return [region.box.x, region.box.y, region.box.w, region.box.h]


def _sentences(planned: Plan) -> dict[str, Json]:
    if planned.total is None or planned.quote is None:
        return {}
    methods = [planned.method.of_region(record) for record in planned.quote.regions]
    one = explain_largest(planned.quote).sentence if len(planned.regions) == 1 else ""
    staying = sorted({kept.origin.number or 0 for region in planned.regions for kept in region.kept})
    return promise_details(planned, methods, staying_note(staying, by_likeness=False), one)


def promise_details(
    planned: Any, methods: Iterable[Any], unsaid: Sequence[str], one: str = "", more: Sequence[str] = ()
) -> dict[str, Json]:
    """Return what is said of the plan of a photo or clip, whose regions or tracks these methods replace.

    The page says beside the promise who stays, so that note is `unsaid`; `more` is said, too. `one` is the
    sentence of a single region.
    """
    total, names = planned.total, FACES
    shown = [GREY if isinstance(m, Fill) else names.get(str(getattr(m, "protect", "")), "") for m in methods]
    sentence = one or (
        f"Together: {planned.strength}. Of two candidates for all of them, equally likely before, nobody"
        f" names the true one with more than {percent_above(success_bound(total, 2))}."
    )
    said = [text for text in planned.warnings if text not in unsaid]
    used = terms_of((planned.method, *planned.post_processing))
    return {
        "total": in_short(total, of=""),
        "each": [_costs(guarantee) for guarantee in planned.guarantees],
        "by": [*shown],
        "cost": _cost(total, shown),
        "price": price_text(total),
        "free": total.free,
        "sentence": sentence,
        "bounds": [[str(many), percent_above(success_bound(total, many))] for many in CANDIDATES],
        **warnings([*said, *more, *licence_notes(used.values())], total),
    }


def _costs(guarantee: Guarantee) -> str:
    if guarantee.free:
        return ""
    if guarantee.kind not in ("pure", "approximate", "zcdp"):
        return str(guarantee)
    numbers = ((sign, getattr(guarantee, name)) for name, sign in SIGNS.items())
    cost = " and ".join(f"{sign} {show(number)}" for sign, number in numbers if number)
    few = guarantee.relation.m
    return f"costs {cost}" if few is None else f"costs {cost}, for any {pixels(few)} alone"


def _cost(total: Guarantee, shown: Sequence[str]) -> str:
    """Return how many regions are replaced and by what, and what they cost.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> two = Guarantee(kind="pure", epsilon=2, relation=Relation("any-image"), scope=Scope("a box"))
    >>> _cost(two, ["a synthetic face", "a grey box", "a synthetic face"])
    '3 places are replaced: 2 by a synthetic face, one by a grey box. What they cost adds up.'
    """
    one, kinds = len(shown) == 1, Counter(text for text in shown if text)
    what = f"{count_noun(len(shown), 'place').capitalize()} {'is' if one else 'are'} replaced"
    if len(kinds) > 1:
        what += ": " + ", ".join(f"{'one' if n == 1 else n} by {text}" for text, n in kinds.items())
    elif kinds:
        (kind,) = kinds
        what += f" by {kind}" if one else f", each by {kind}"
    if total.free:
        return f"{what}. Nothing of what is there is kept, which costs nothing."
    return f"{what}." if one else f"{what}. What they cost adds up."
