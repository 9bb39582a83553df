"""The sheet for a clip's owner, which shows the original: its tracks on a timeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.array_types import UInt8
from dpveil.core.guarantee import count_noun
from dpveil.core.region_origin import WHOLE
from dpveil.video.facts import FIXED, Facts, Track, clock
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import Clip, pick_frames
from dpveil.video.words import followed_span

PRIVATE: Final = "NOT FOR PUBLICATION: shows the original, for the eyes of whoever holds the clip"
MOST_ROWS: Final = 100  # most tracks on a sheet; a line says how many are left out
TILE: Final = 112  # side of a thumbnail; this and all lengths below are in pixels
GAP, MARGIN = 14, 36
WORDS_WIDTH: Final = 390  # width of the words about a track
BAR_WIDTH: Final = 620  # width of the timeline
HEADER: Final = 118  # height above the first row
AROUND: Final = 0.35  # what a thumbnail shows around a box, in shares of its sides
PAPER, INK, SOFT, RULE = (250, 249, 246), (28, 30, 34), (104, 108, 116), (214, 211, 204)
ALARM, REPLACED, VISIBLE = (176, 42, 32), (32, 110, 106), (208, 120, 20)
TRACK_ENDS: Final = {
    "left": "left the picture",
    "cut": "the shot ended",
    "end": "the clip ended",
    "merged": "another track goes on",
    "lost": "LOST: look there",
}
"""How tracks end, in words."""
BY_HAND: Final = "by hand"  # how the finder of a track ends that a user added
Levels = UInt8[np.ndarray, "h w 3"]


def track_sheet(plan: VideoPlan, clip: Clip) -> Levels:
    shown, seconds = plan.tracks[:MOST_ROWS], times_of(clip.facts)
    pictures = track_pictures(shown, clip)
    words, step = MARGIN + 3 * (TILE + GAP), TILE + GAP + 22
    left, length = words + WORDS_WIDTH, max(float(clip.facts.seconds), 1e-9)
    size = left + BAR_WIDTH + MARGIN, HEADER + len(shown) * step + MARGIN
    title = f"{plan.clip}: {count_noun(len(plan.tracks), 'track')}, {count_noun(len(plan.cuts), 'cut')}"
    page, draw = _new_page(size, title)
    for cut in plan.cuts:
        at = left + BAR_WIDTH * seconds[cut] / length
        draw.line((at, HEADER - 8, at, HEADER + len(shown) * step), fill=RULE, width=1)
    small = ImageFont.load_default(14)
    for tenth in range(0, 11, 2):
        at = left + BAR_WIDTH * tenth / 10
        draw.line((at, HEADER - 14, at, HEADER - 8), fill=SOFT, width=1)
        draw.text((at, HEADER - 34), clock(length * tenth / 10), SOFT, small, anchor="ma")
    for row, track in enumerate(shown):
        top = HEADER + row * step
        for column, (index, picture) in enumerate(pictures[track.number].items()):
            x = MARGIN + column * (TILE + GAP)
            page.paste(picture, (x + (TILE - picture.width) // 2, top + (TILE - picture.height) // 2))
            draw.text((x, top + TILE + 2), clock(seconds[index]), SOFT, ImageFont.load_default(13))
        colour = VISIBLE if track.visible else REPLACED
        draw.text((words, top), f"{track.number}", colour, ImageFont.load_default(34))
        for line, text in enumerate(_lines(track, seconds)):
            place, ink = (words + 70, top + 6 + line * 22), SOFT if line else INK
            draw.text(place, text, ink, ImageFont.load_default(16))
        middle = top + TILE // 2
        draw.line((left, middle, left + BAR_WIDTH, middle), fill=RULE, width=2)
        start, stop = (left + BAR_WIDTH * seconds[frame] / length for frame in (track.first, track.last))
        draw.rectangle((start, middle - 9, max(stop, start + 3), middle + 9), fill=colour)
    if len(plan.tracks) > len(shown):
        text = f"and {len(plan.tracks) - len(shown):,} more tracks, which the plan has"
        draw.text((MARGIN, page.height - MARGIN), text, ALARM, ImageFont.load_default(18))
    return np.asarray(page)


def track_pictures(tracks: Sequence[Track], clip: Clip) -> dict[int, dict[int, Image.Image]]:
    """Return by number how each track looks, by frame: the first in which it is followed, a middle one, and
    the last, each once, in at most `TILE` × `TILE` pixels.
    """
    wanted = dict[int, list[int]]()
    for track in tracks:
        first, last = followed_span(track)
        wanted[track.number] = [*dict.fromkeys((first, (first + last) // 2, last))]
    pictures: dict[int, dict[int, Image.Image]] = {track.number: {} for track in tracks}
    for frame in pick_frames(clip, {frame for frames in wanted.values() for frame in frames}):
        for track in tracks:
            if frame.index in wanted[track.number]:
                part = _crop_around(frame.image, track, frame.index)
                pictures[track.number][frame.index] = _fit(part, (TILE, TILE))
    return pictures


def _new_page(size: tuple[int, int], title: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    page = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, 0, page.width, 34), fill=ALARM)
    draw.text((MARGIN, 8), PRIVATE, (255, 255, 255), ImageFont.load_default(16))
    draw.text((MARGIN, 50), title, INK, ImageFont.load_default(26))
    return page, draw


def _fit(picture: Levels, size: tuple[int, int]) -> Image.Image:
    image = Image.fromarray(np.ascontiguousarray(picture))
    ratio = min(size[0] / image.width, size[1] / image.height)
    fitted = max(1, round(image.width * ratio)), max(1, round(image.height * ratio))
    return image.resize(fitted, Image.Resampling.LANCZOS if ratio < 1 else Image.Resampling.BICUBIC)


def times_of(facts: Facts) -> list[float]:
    """Return the time of each frame in seconds after the first."""
    return [float((time - facts.start) * facts.time_base) for time in facts.times]


def end_text(track: Track) -> str:
    """Return how a track ends, in words; of one that a user added, that it is so."""
    added = track.finder.endswith(BY_HAND) or (track.kind in FIXED and track.finder == track.kind != WHOLE)
    return "added by hand" if added else TRACK_ENDS[track.end]


def _lines(track: Track, seconds: list[float]) -> tuple[str, ...]:
    score = "" if track.score is None else f"score {track.score:.2f}, "
    person = "" if track.person is None else f", person {track.person}"
    return (
        f"{track.kind}, {clock(seconds[track.first])} to {clock(seconds[track.last])}",
        f"{count_noun(track.last - track.first + 1, 'frame')}{person}",
        f"{score}{end_text(track)}",
        "stays visible, as you chose" if track.visible else "will be replaced",
    )


def _crop_around(image: Levels, track: Track, frame: int) -> Levels:
    at = [key.frame for key in track.keys]
    x, y, w, h = (round(float(np.interp(frame, at, [getattr(k, n) for k in track.keys]))) for n in "xywh")
    aside, above = round(AROUND * w), round(AROUND * h)
    part = image[max(0, y - above) : max(0, y + h + above), max(0, x - aside) : max(0, x + w + aside)]
    return image if track.kind == WHOLE or not part.size else part


def write_sheet(path: Path, levels: Levels, *, replace: bool) -> None:
    """Write a sheet as PNG, readable by its owner alone. Raises `OutputError`."""
    from dpveil.io.writing import encode, write_together

    write_together([(path, encode(levels, "png"))], replace=replace, private=True)
