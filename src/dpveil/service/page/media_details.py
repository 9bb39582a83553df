"""What a worker tells the page of a document or clip: its first pages, or its people and what is promised."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from PIL import Image

from dpveil.core.guarantee import count_noun
from dpveil.core.notes import Aside
from dpveil.core.rationals import Json
from dpveil.io.reading import photo_error
from dpveil.io.unreadable import Refused
from dpveil.release.words import staying_note
from dpveil.service.documents_and_clips import DOCUMENT, choices_of, format_of_release, original_file
from dpveil.service.page.plan_details import KEPT, promise_details

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
            return _pages(task, told["pixels"])
        from dpveil.video.clip_in_batch import ClipRun
        from dpveil.video.reading import open_clip

        plan = ClipRun(choices=choices_of(told)).plan(task, progress)
        return _clip_details(plan, open_clip(task.source), told["settings"])


def _pages(task: Any, most: int) -> dict[str, Json]:
    from dpveil.io.document import Document

    document = Document(task.source, task.stamp)
    try:
        numbers = range(min(document.pages, MOST_PAGES))
        photos = [document.draw(number, DPI, most) for number in numbers]
    except Refused as refusal:
        raise photo_error(task.source, refusal) from refusal
    return {"of": document.pages, "pages": [_jpeg(Image.fromarray(photo.image)) for photo in photos]}


def _clip_details(plan: Any, clip: Any, settings: Mapping[str, Any]) -> dict[str, Json]:
    from dpveil.core.region_origin import FACE
    from dpveil.video.facts import clock
    from dpveil.video.sheets import end_text, times_of, track_pictures

    seconds, shown = times_of(plan.facts), plan.tracks[:MOST_SHOWN]
    pictures = {} if settings.get(KEPT) else track_pictures(shown, clip)
    tracks: list[Json] = [
        {
            "number": track.number,
            "kind": track.kind,
            "words": f"{clock(seconds[track.first])} to {clock(seconds[track.last])}, {end_text(track)}",
            "pictures": [_jpeg(picture) for picture in pictures.get(track.number, {}).values()],
        }
        for track in shown
    ]
    staying = staying_note([t.number for t in plan.tracks if t.visible], by_likeness=False, what="track")
    left = [Aside(f"left out of the release: {', '.join(plan.left_out)}")] * bool(plan.left_out)
    if more := len(plan.tracks) - len(shown):
        left.append(Aside(f"{count_noun(more, 'more track')} are not shown here, and replaced"))
    return {
        "tracks": tracks,
        "choosable": {track.kind for track in plan.tracks} == {FACE} and len(plan.request) == 1,
        "plan": {"strength": plan.strength, "regions": [], "in_the_clear": [*plan.in_the_clear]},
        "said": promise_details(plan, [draw.method for draw in plan.draws], staying, more=left),
    }


def _jpeg(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.thumbnail((SIDE, SIDE))
    picture.save(file, "JPEG", quality=75)
    return b64encode(file.getvalue()).decode()
