"""What a worker tells the page beyond `/v1/plan`: outlines, kept faces, sentences; of the same plan.

Of a document it tells the first pages, and of a clip who is in it.
"""

from __future__ import annotations

import io
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from dpveil.accounting.meaning import success_bound
from dpveil.assets.file_reference import forbids_commerce, terms_of
from dpveil.catalogue import build
from dpveil.core.guarantee import Guarantee, count_noun, pixels
from dpveil.core.notes import Aside
from dpveil.core.rationals import Json, show
from dpveil.core.region import Region
from dpveil.errors import DPVeilError
from dpveil.faces.attribute_model import CAUTION, VALUES
from dpveil.io.reading import photo_error
from dpveil.io.unreadable import Refused
from dpveil.mechanisms.pixel.common_practice import Fill
from dpveil.mechanisms.rank_choice import RandomisedResponse
from dpveil.opencv import cv2
from dpveil.release.explain import CANDIDATES, explain_largest, percent_above
from dpveil.release.plan import Plan, plan_json
from dpveil.release.words import in_short, staying_note
from dpveil.service.documents_and_clips import DOCUMENT, choices_of, format_of_release, original_file
from dpveil.service.page.account import SIGNS, price_text

if TYPE_CHECKING:
    from dpveil.video.plan import VideoPlan

BUDGETS: Final = ("0.5", "1", "2", "4")
"""Budgets of one attribute that the page offers; beyond 4 there is little to gain (docs, "attributes")."""
WAYS: Final = {"faces": {}, "heads": {"protect": "head"}, "rendered": {"gallery": "heads", "outside": "none"}}
"""Settings of what draws faces, by the names that the page has for them."""
ALSO: Final = {"text": "rapidocr", "plates": "rapidocr", "codes": "cv2"}
"""What the page replaces beside faces if asked, and the library that finds it."""


def offers() -> dict[str, Json]:
    """Return settings and attributes of the ways to draw faces, and what else is found."""
    research = forbids_commerce(terms_of([build("attributes", {})]).values())
    ways: dict[str, Json] = {
        name: {"settings": {"method": "attributes", **more}, "attributes": _attributes(more)}
        for name, more in WAYS.items()
        if research or name != "rendered"
    }
    also: list[Json] = [name for name, library in ALSO.items() if find_spec(library)]
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


ACTS: Final = {
    "threshold": "a press on the question mark",
    "protect": "another choice under “Replace with”",
}
SETTING: Final = re.compile(r'\b(threshold|protect)="[^"]*"| \(see dpveil explain\)')
"""What is done on the page in the place of a setting that a note names, or of a command."""


def warnings(sentences: Iterable[str]) -> dict[str, list[Json]]:
    """Return the warnings of a plan or a certificate, and apart from them what is for information."""
    told: dict[str, list[Json]] = {"warnings": [], "notes": []}
    for text in sentences:
        said = SETTING.sub(lambda found: ACTS.get(found[1], ""), text)
        told["notes" if isinstance(text, Aside) else "warnings"].append(said)
    return told


def licence_notes(terms: Iterable[str]) -> list[str]:
    """Return a note if the terms of a trained file that was used forbid commerce."""
    return [Aside(RESEARCH)] * forbids_commerce(terms)


RESEARCH: Final = (
    "licence: for non-commercial research only, as is a trained file that is used; “A rendered face” with"
    " nothing kept of it is for any use"
)
KEPT: Final = "except"  # the setting that names the faces to be kept
GREY: Final = "a grey box"
FACES: Final = {"face": "a synthetic face", "head": "a synthetic head", "box": "a synthetic head"}
"""What replaces faces, by `protect`."""


def plan_details(planned: Plan, words: Mapping[str, str]) -> dict[str, Json]:
    """Return what the page shows of a plan: its JSON as `/v1/plan` has it, and what is seen and said.

    `kept` are the faces that stay as they are; `doubtful` are places that may be faces, and stay.
    Outlines are polygons [[x, y], ...] in pixels of the oriented photo.
    """
    return {
        "plan": plan_json(planned, words),
        "size": [planned.photo.width, planned.photo.height],
        "outlines": [outlines(region) for region in planned.regions],
        "kept": [
            {"number": one.origin.number, "box": _box(one), "outline": outlines(one)}
            for one in {one.origin.number: one for each in planned.regions for one in each.kept}.values()
        ],
        "doubtful": [_box(region) for region in planned.doubtful],
        "said": _sentences(planned),
    }


def outlines(region: Region) -> list[Any]:
    """Return the polygons around the pixels that are replaced; the corners of the box without a mask."""
    box = region.box
    if region.mask is None:
        right, below = box.x + box.w, box.y + box.h
        return [[[box.x, box.y], [right, box.y], [right, below], [box.x, below]]]
    # Twice the size, so that the lines run along the edges of pixels and not through their middles.
    mask = np.pad(np.kron(region.mask, np.ones((2, 2), np.uint8)), 1)
    found, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    corner = np.array([box.x, box.y])
    return [((line[:, 0] // 2) + corner).tolist() for line in found]


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
        "price": price_text(total),
        "free": total.free,
        "sentence": sentence,
        "bounds": [[str(many), percent_above(success_bound(total, many))] for many in CANDIDATES],
        **warnings([*said, *more, *licence_notes(used.values())]),
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


MOST_PAGES: Final = 4  # pages of a document that are shown
MOST_SHOWN: Final = 40  # people of a clip who are shown, and may be kept: all pictures fit into one answer
DPI, SIDE = 72, 680
"""In how many dots per inch pages are drawn, and the most pixels of a side that are shown."""


def media_details(told: dict[str, Any], contents: bytes) -> dict[str, Json]:
    """Return `pages`, pictures of the first pages of a document; of a clip its `tracks`, its `plan`, and what
    is `said` of that. Pictures are JPEG in base64, and those of tracks are left out if some are kept.
    """
    with original_file(told, contents) as (task, progress):
        if format_of_release(contents) == DOCUMENT:
            from dpveil.io.document import Document

            document = Document(task.source, task.stamp or (0, 0))
            try:
                numbers, most = range(min(document.pages, MOST_PAGES)), told["pixels"]
                first = [document.draw(number, DPI, most) for number in numbers]
            except Refused as refusal:
                raise photo_error(task.source, refusal) from refusal
            return {"of": document.pages, "pages": [_jpeg(Image.fromarray(page.image)) for page in first]}
        from dpveil.video.clip_in_batch import ClipRun
        from dpveil.video.reading import open_clip
        from dpveil.video.sheets import track_pictures

        plan = ClipRun(choices=choices_of(told)).plan(task, progress)
        shown = plan.tracks[:MOST_SHOWN]
        pictures = {} if told["settings"].get(KEPT) else track_pictures(shown, open_clip(task.source))
    return _clip_details(plan, {number: [*each.values()] for number, each in pictures.items()})


def _clip_details(plan: VideoPlan, pictures: dict[int, list[Image.Image]]) -> dict[str, Json]:
    from dpveil.video.facts import clock
    from dpveil.video.sheets import end_text, times_of

    seconds, shown = times_of(plan.facts), plan.tracks[:MOST_SHOWN]
    tracks: list[Json] = [
        {
            "number": track.number,
            "kind": track.kind,
            "words": f"{clock(seconds[track.first])} to {clock(seconds[track.last])}, {end_text(track)}",
            "pictures": [_jpeg(picture) for picture in pictures.get(track.number, ())],
        }
        for track in shown
    ]
    staying = staying_note([t.number for t in plan.tracks if t.visible], by_likeness=False, what="track")
    left = [Aside(f"left out of the release: {', '.join(plan.left_out)}")] * bool(plan.left_out)
    if more := len(plan.tracks) - len(shown):
        left.append(Aside(f"not shown here, and replaced: {count_noun(more, 'more track')}"))
    return {
        "tracks": tracks,
        "plan": {"strength": plan.strength, "regions": [], "in_the_clear": [*plan.in_the_clear]},
        "said": promise_details(plan, [draw.method for draw in plan.draws], staying, more=left),
    }


def _jpeg(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.thumbnail((SIDE, SIDE))
    picture.save(file, "JPEG", quality=75)
    return b64encode(file.getvalue()).decode()
