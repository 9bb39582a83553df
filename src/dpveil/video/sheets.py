"""Sheets for a clip's owner, which show the original: its tracks on a timeline, and pictures over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.arrays import UInt8
from dpveil.core.guarantee import count_noun
from dpveil.core.origin import WHOLE
from dpveil.video.facts import Facts, Frame, Key, Track, clock
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import Clip, pick_frames
from dpveil.video.words import followed_span

PRIVATE: Final = "NOT FOR PUBLICATION: shows the original, for the eyes of whoever holds the clip"
MOST_ROWS: Final = 100
"""Most tracks on a sheet; a line says how many are left out."""
TILE: Final = 112
"""Side of a thumbnail; this and all lengths below are in pixels."""
GAP: Final = 14
MARGIN: Final = 36
WORDS: Final = 390
"""Width of the words about a track."""
BAR: Final = 620
"""Width of the timeline."""
HEAD: Final = 118
"""Height above the first row."""
COLUMNS: Final = 4
"""Pictures in a row of a sheet over time."""
PICTURE: Final = 300
"""Width of a picture over time."""
PAPER: Final = (250, 249, 246)
INK: Final = (28, 30, 34)
SOFT: Final = (104, 108, 116)
RULE: Final = (214, 211, 204)
ALARM: Final = (176, 42, 32)
REPLACED: Final = (32, 110, 106)
VISIBLE: Final = (208, 120, 20)
Levels = UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True)
class Row:
    """One track: its number, lines of words, pictures of it with their times, and when it is there.

    `spans` are pairs of times in seconds; one that is `visible` stays as it is.
    """

    number: int
    words: tuple[str, ...]
    pictures: tuple[tuple[float, Levels], ...]
    spans: tuple[tuple[float, float], ...]
    visible: bool = False


@dataclass(frozen=True)
class Moment:
    """Pictures of one moment, below each other: the original and its release, or one of them."""

    seconds: float
    pictures: tuple[Levels, ...]


def draw_tracks(title: str, seconds: float, cuts: Sequence[float], rows: Sequence[Row]) -> Levels:
    """Return the sheet of a clip's tracks, at most `MOST_ROWS` of them; `cuts` are times in seconds."""
    shown, most = rows[:MOST_ROWS], max((len(row.pictures) for row in rows), default=0)
    words = MARGIN + most * (TILE + GAP)
    left = words + WORDS
    step = TILE + GAP + 22
    page = Image.new("RGB", (left + BAR + MARGIN, HEAD + max(1, len(shown)) * step + MARGIN), PAPER)
    draw = ImageDraw.Draw(page)
    _head(draw, page.width, title)
    bottom = HEAD + len(shown) * step
    for cut in cuts:
        at = left + BAR * cut / max(seconds, 1e-9)
        draw.line((at, HEAD - 8, at, bottom), fill=RULE, width=1)
    _scale(draw, left, seconds)
    for place, row in enumerate(shown):
        _drawn_row(page, draw, row, HEAD + place * step, (words, left), seconds)
    if not shown:
        draw.text((MARGIN, HEAD), "no track", SOFT, _font(20))
    if len(rows) > len(shown):
        text = f"and {len(rows) - len(shown):,} more tracks, which the plan has"
        draw.text((MARGIN, page.height - MARGIN), text, ALARM, _font(18))
    return np.asarray(page)


def draw_moments(title: str, moments: Sequence[Moment]) -> Levels:
    """Return a sheet of pictures over time, in reading order, each with its time."""
    height, width = moments[0].pictures[0].shape[:2]
    size = PICTURE, max(1, min(2 * PICTURE, round(PICTURE * height / width)))
    step = len(moments[0].pictures) * (size[1] + 4) + 30 + GAP
    columns = min(COLUMNS, len(moments))
    rows = -(-len(moments) // columns)
    least = MARGIN * 2 + 2 * (PICTURE + GAP)
    page = Image.new(
        "RGB", (max(least, MARGIN * 2 + columns * (PICTURE + GAP)), HEAD + rows * step + MARGIN), PAPER
    )
    draw = ImageDraw.Draw(page)
    _head(draw, page.width, title)
    for place, moment in enumerate(moments):
        x, y = MARGIN + place % columns * (PICTURE + GAP), HEAD + place // columns * step
        draw.text((x, y), clock(moment.seconds), INK, _font(17))
        for below, picture in enumerate(moment.pictures):
            page.paste(_fit(picture, size), (x, y + 26 + below * (size[1] + 4)))
    return np.asarray(page)


def _head(draw: ImageDraw.ImageDraw, width: int, title: str) -> None:
    draw.rectangle((0, 0, width, 34), fill=ALARM)
    draw.text((MARGIN, 8), PRIVATE, (255, 255, 255), _font(16))
    draw.text((MARGIN, 50), title, INK, _font(26))


def _scale(draw: ImageDraw.ImageDraw, left: int, seconds: float) -> None:
    """Write times over the timeline, at round steps."""
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000)
    step = next((each for each in steps if seconds / each <= 7), steps[-1])
    for number in range(int(seconds / step) + 1 if seconds > 0 else 1):
        at = left + BAR * number * step / max(seconds, 1e-9)
        draw.line((at, HEAD - 14, at, HEAD - 8), fill=SOFT, width=1)
        text = clock(number * step)
        text = text if step < 1 else text.rpartition(".")[0]
        draw.text((at, HEAD - 34), text, SOFT, _font(14), anchor="ma" if number else "la")


def _drawn_row(
    page: Image.Image, draw: ImageDraw.ImageDraw, row: Row, top: int, lefts: tuple[int, int], seconds: float
) -> None:
    colour, (words, left) = VISIBLE if row.visible else REPLACED, lefts
    for place, (time, picture) in enumerate(row.pictures):
        x = MARGIN + place * (TILE + GAP)
        fitted = _fit(picture, (TILE, TILE))
        page.paste(fitted, (x + (TILE - fitted.width) // 2, top + (TILE - fitted.height) // 2))
        draw.text((x, top + TILE + 2), clock(time), SOFT, _font(13))
    draw.text((words, top), f"{row.number}", colour, _font(34))
    for place, text in enumerate(row.words):
        draw.text((words + 70, top + 6 + place * 22), text, INK if place == 0 else SOFT, _font(16))
    middle = top + TILE // 2
    draw.line((left, middle, left + BAR, middle), fill=RULE, width=2)
    for first, last in row.spans:
        ends = (left + BAR * time / max(seconds, 1e-9) for time in (first, last))
        a, b = ends
        draw.rectangle((a, middle - 9, max(b, a + 3), middle + 9), fill=colour)


def _fit(picture: Levels, size: tuple[int, int]) -> Image.Image:
    """Return a picture as large as it can be within a size."""
    image = Image.fromarray(np.ascontiguousarray(picture))
    ratio = min(size[0] / image.width, size[1] / image.height)
    fitted = max(1, round(image.width * ratio)), max(1, round(image.height * ratio))
    return image.resize(fitted, Image.Resampling.LANCZOS if ratio < 1 else Image.Resampling.BICUBIC)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def moments(facts: Facts, count: int, within: Sequence[tuple[int, int]] = ()) -> list[int]:
    """Return up to `count` frames that are spread evenly over the time of a clip, the middle of each part.

    `within` are pairs of the first and the last frame of what is to be seen; without any, all frames count.
    """
    times = [float(time) for time in facts.times]
    shown = [n for n in range(facts.frames) if not within or any(a <= n <= b for a, b in within)]
    if len(shown) <= count:
        return shown
    first, last = times[shown[0]], times[shown[-1]]
    wanted = [first + (last - first) * (2 * k + 1) / (2 * count) for k in range(count)]
    return sorted({min(shown, key=lambda n: abs(times[n] - time)) for time in wanted})


PICTURES: Final = 12
"""Moments on a sheet over time."""
AROUND: Final = 0.35
"""What a thumbnail shows around a box, in shares of its sides."""
ENDED: Final = {
    "left": "left the picture",
    "cut": "the shot ended",
    "end": "the clip ended",
    "merged": "another track goes on",
    "lost": "LOST: look there",
}
"""How tracks end, in words."""
BY_HAND: Final = "by hand"
"""How the finder of a track ends that a user added."""
GREY: Final = 128


def track_sheet(plan: VideoPlan, clip: Clip) -> Levels:
    """Return the tracks of a plan, numbered, each with its first, a middle and its last picture."""
    facts, shown = clip.facts, plan.tracks[:MOST_ROWS]
    wanted = {(track.number, frame) for track in shown for frame in _thirds(track)}
    pictures: dict[tuple[int, int], Levels] = {}
    for frame in pick_frames(clip, (frame for _, frame in wanted)):
        for track in shown:
            if (track.number, frame.index) in wanted:
                pictures[track.number, frame.index] = _crop_around(
                    frame.image, at(track, frame.index), track.kind
                )
    seconds = times_of(facts)
    rows = [_row(track, seconds, pictures) for track in shown]
    rows += [Row(track.number, (), (), ()) for track in plan.tracks[MOST_ROWS:]]
    title = f"{plan.clip}: {count_noun(len(plan.tracks), 'track')}, {count_noun(len(plan.cuts), 'cut')}"
    return draw_tracks(title, float(facts.seconds), [seconds[cut] for cut in plan.cuts], rows)


def preview_sheet(plan: VideoPlan, clip: Clip) -> Levels:
    """Return moments of a clip with what will be replaced in grey. Nothing is drawn, and nothing paid."""
    facts, seconds = clip.facts, times_of(clip.facts)
    told = [
        Moment(seconds[frame.index], (_cover_grey(plan, frame),))
        for frame in pick_frames(clip, moments(facts, PICTURES, _spans(plan)))
    ]
    return draw_moments(f"{plan.clip}: what will be replaced", told)


def at(track: Track, frame: int) -> Key:
    """Return where a track is in a frame: on the straight line between its keys."""
    frames = [key.frame for key in track.keys]
    x, y, w, h = (
        round(float(np.interp(frame, frames, [getattr(key, name) for key in track.keys]))) for name in "xywh"
    )
    return Key(frame, x, y, max(1, w), max(1, h))


def times_of(facts: Facts) -> list[float]:
    """Return the time of each frame in seconds after the first."""
    return [float((time - facts.start) * facts.time_base) for time in facts.times]


def end_text(track: Track) -> str:
    """Return how a track ends, in words; of one that a user added, that it is so."""
    added = track.finder.endswith(BY_HAND) or (track.finder == track.kind != WHOLE)
    return "added by hand" if added else ENDED[track.end]


def _spans(plan: VideoPlan) -> list[tuple[int, int]]:
    return [(track.first, track.last) for track in plan.tracks if not track.visible]


def _thirds(track: Track) -> Iterator[int]:
    """Yield the first frame in which a track is followed, a middle one, and the last, each once."""
    first, last = followed_span(track)
    yield from dict.fromkeys((first, (first + last) // 2, last))


def _row(track: Track, seconds: list[float], pictures: dict[tuple[int, int], Levels]) -> Row:
    first, last = seconds[track.first], seconds[track.last]
    score = "" if track.score is None else f"score {track.score:.2f}, "
    person = "" if track.person is None else f", person {track.person}"
    state = "stays visible, as you chose" if track.visible else "will be replaced"
    words = (
        f"{track.kind}, {clock(first)} to {clock(last)}",
        f"{count_noun(track.last - track.first + 1, 'frame')}{person}",
        f"{score}{end_text(track)}",
        state,
    )
    shown = tuple((seconds[frame], pictures[track.number, frame]) for frame in _thirds(track))
    return Row(track.number, words, shown, ((first, last),), track.visible)


def _crop_around(image: Levels, key: Key, kind: str) -> Levels:
    """Return the part of a picture around a key; all of it if nothing of the box is in the picture."""
    height, width = image.shape[:2]
    aside, above = round(AROUND * key.w), round(AROUND * key.h)
    x, y = max(0, key.x - aside), max(0, key.y - above)
    part = image[y : max(0, key.y + key.h + above), x : max(0, key.x + key.w + aside)]
    return image if kind == WHOLE or not part.size or x >= width or y >= height else part.copy()


def _cover_grey(plan: VideoPlan, frame: Frame) -> Levels:
    """Return a frame in which what will be replaced is grey."""
    covered = frame.image.copy()
    covered[plan.scene.hidden_mask(plan.scene.spots(frame.index))] = GREY
    return covered


def write_sheet(path: Path, levels: Levels, *, replace: bool) -> None:
    """Write a sheet as PNG, readable by its owner alone. Raises `OutputError`."""
    from dpveil.io import encode, write_together

    write_together([(path, encode(levels, "png"))], replace=replace, private=True)
