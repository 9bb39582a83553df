"""A clip: what is known about it, and its frames, read again and again from one open file."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from dpveil.core.parameters import check_count
from dpveil.errors import ClipError, InvalidParameter, OutputError
from dpveil.processes import Ended, Pool
from dpveil.video.decoding import (
    MATROSKA,
    MOST_FRAMES,
    MOV,
    NAMES,
    Clock,
    Look,
    Source,
    Upright,
    Way,
    as_clip_error,
    container_of,
    damage_error,
    decode_frames,
    early,
    left_out_streams,
    pyav,
)
from dpveil.video.facts import Facts, Frame, runs

MAX_PIXELS: Final = 8192 * 4320
"""Default limit on the pixels of a frame: 8K. A clip needs memory for some dozens of frames."""
DECODED: Final[set[str]] = set()
"""SHA-256 of the clips of which this process has decoded every frame."""
SECONDS: Final = 4 * 3600
"""Time to open a clip all of which has to be decoded for that; others, and frames, take much less."""
POOL: Final = Pool("dpveil.video.writing:serve", memory=1 << 33, seconds=SECONDS)
"""The processes, with 8 GiB each; the same one answers as long as one thread asks."""
MOST_FACTS: Final = 1 << 28
ENDS: Final = "it ends the process that reads it"
ENDED: Final = {"memory": "reading it needs too much memory", "time": "reading it takes too long"}
"""What is said of a clip that ended its process, by why."""
LIES: Final = "what decodes is not what was found when it was opened"
ONE_EACH: Final = frozenset({"h264", "hevc", "vp9", "av1", "libdav1d", "mjpeg", "prores"})
"""Decoders that show one frame for each packet of a MOV, MP4 or Matroska file, at the packet's time."""
WITHOUT_B: Final = ONE_EACH | {"mpeg4"}
"""Those that do so where no frame depends on a later one."""
USUAL_RATE: Final = 25
"""Frames a second of a clip that states nothing."""
LOOKED_AT: Final = 48
"""Frames decoded to see whether the packets tell the times: more than a decoder holds back."""


@dataclass(frozen=True)
class Survey:
    """What was found: `usual` is the units of time that stand for a missing one, `clean` that none was."""

    facts: Facts
    look: Look
    usual: int
    clean: bool


def survey(way: Way, *, whole: bool = True) -> Survey:
    """Return what is found in a clip; raises `ClipError`.

    The times of frames are those of the packets where a packet is a frame, the first frames have these
    times, and the file states every one: else all is decoded once, or the clip is refused if not `whole`.
    Without B-frames, as dpveil writes it, MPEG-4 also has a frame in each packet.
    """
    with way.stream() as (container, stream):
        if stream.time_base is None or stream.time_base <= 0:
            raise damage_error(way.source)
        rate = stream.guessed_rate or stream.average_rate
        usual = max(1, round(1 / ((rate or USUAL_RATE) * stream.time_base)))
        stated = _by_packets(way, container, stream, ONE_EACH if whole else WITHOUT_B)
        head = list(islice(_looks(way), LOOKED_AT))
        if not head:
            raise way.source.clip_error("it has no frames", "give the name of a clip")
        clean, fields = True, any(look.fields for look, _ in head)
        own = [time for _, time in head]
        if (fields or stated is None or own != stated[:LOOKED_AT]) and not whole:
            raise damage_error(way.source, "its packets do not tell when each frame is shown")
        if fields or stated is None or own != stated[:LOOKED_AT]:
            stated, clean, fields = _by_decoding(way, usual)
        look = replace(head[0][0], fields=fields)
        upright = Upright(look, way.source, way.most)
        start, steps = runs(stated)
        bright = (f"brightness above white ({look.hdr})",) if look.hdr else ()
        facts = Facts(
            sha256=way.source.sha256(),
            format=NAMES[way.demuxer],
            codec=stream.codec_context.codec.canonical_name,
            width=upright.width,
            height=upright.height,
            time_base=stream.time_base,
            start=start,
            steps=steps,
            audio=bool(container.streams.audio),
            dropped=(*left_out_streams(container, stream), *bright),
        )
    way.source.check()
    return Survey(facts, look, usual, clean)


def _looks(way: Way) -> Iterator[tuple[Look, int | None]]:
    """Yield the look of every frame, and its time in the file."""
    with way.stream() as (container, stream):
        for look, frame in way.looks(decode_frames(container, stream, way.source), stream):
            yield look, frame.pts


def _by_packets(way: Way, container: Any, stream: Any, decoders: frozenset[str]) -> list[int] | None:
    """Return the times that the packets state, in order; None where these may not be the frames'."""
    if way.demuxer not in (MOV, MATROSKA) or stream.codec_context.codec.name not in decoders:
        return None
    times: list[int] = []
    with as_clip_error(way.source, "its list of frames"):
        for packet in container.demux(stream):
            if packet.size == 0 and packet.pts is None:
                continue
            if packet.is_corrupt:
                raise damage_error(way.source, f"frame {len(times)} is damaged")
            if packet.pts is None or packet.is_discard:
                return None
            times.append(packet.pts)
            _check_number(way, len(times))
    if len(times) < stream.frames:
        raise early(way.source)
    times.sort()
    return times if len(set(times)) == len(times) else None


def _by_decoding(way: Way, usual: int) -> tuple[list[int], bool, bool]:
    """Return the times of all frames, whether all are the file's own, and whether any consists of fields."""
    times: list[int] = []
    clock, fields = Clock(usual, way.source), False
    for look, own in _looks(way):
        times.append(clock.time(own))
        fields |= look.fields
        _check_number(way, len(times))
    return times, not clock.repaired, fields


def _check_number(way: Way, count: int) -> None:
    if count > MOST_FRAMES:
        raise way.source.clip_error(f"it has more than {MOST_FRAMES:,} frames", "cut it into parts")


def open_clip(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Clip:
    """Open the clip in the file at `path`, and find its facts; use it as a context manager.

    Only regular files are read, in MP4 or MOV, Matroska or WebM, AVI, or MPEG transport and program streams,
    by their contents; `max_pixels` limits the pixels of a frame. Raises `ClipError` with the file, the
    problem and the remedy, and `UsageError` without PyAV.
    """
    if find_spec("av") is None:
        pyav()  # raises, without a process
    most = check_count(max_pixels, "max_pixels")
    return Clip(Source(path), most)


class Clip:
    """An open clip, which processes with limits decode; `facts` are what is known about it.

    It is of one of dpveil's own clips, or refused, if it is not to be `searched` for its times.
    """

    def __init__(self, source: Source, most: int, *, searched: bool = True) -> None:
        self.source, self.most, self._searched = source, most, searched
        try:
            told, (steps,) = self.ask("facts")
        except BaseException:
            source.close()
            raise
        unit, runs = Fraction(told.pop("time_base")), tuple((int(a), int(b)) for a, b in steps)
        dropped = tuple(told.pop("dropped"))
        self.facts = Facts(**told, time_base=unit, steps=runs, dropped=dropped)

    def __enter__(self) -> Clip:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    def check(self) -> None:
        """Raise `ClipError` if the file was written to since it was opened."""
        self.source.check()

    def ask(self, what: str, *given: Any, most: int = MOST_FACTS) -> tuple[Any, list[np.ndarray]]:
        """Return what a process answers about this clip; raises `ClipError`, and `OutputError` of `join`."""
        source = self.source
        which = [source.name, source.path, *source.state, self.most, self._searched]
        try:
            told, found = POOL.ask([which, what, *given], most=most)
        except Ended as error:
            raise source.clip_error(
                ENDED.get(error.why, ENDS), "leave it out, or convert it first"
            ) from error
        if "refused" in told:
            kind, problem, hint = told["refused"]
            raise {"OutputError": OutputError}.get(kind, ClipError)(problem, hint=hint)
        return told["told"], found

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """Return the frames from number `start` to before `stop`, or to the last, one after the other.

        Raises `InvalidParameter` for numbers that the clip does not have, and `ClipError` as soon as a frame
        is damaged or is not what `facts` say: its number, its time, its size.
        """
        return self._frames(*_bounds(self.facts, start, stop))

    def _frames(self, start: int, stop: int) -> Iterator[Frame]:
        facts = self.facts
        for index, time in enumerate(islice(facts.times, start, stop), start):
            told, images = self.ask("frame", start, stop, index, most=3 * facts.width * facts.height)
            looks = [(one.shape, one.dtype.name) for one in images]
            if told != time or looks != [((facts.height, facts.width, 3), "uint8")]:
                raise damage_error(self.source, LIES)
            yield Frame(index, time, images[0])
        self.ask("frame", start, stop, stop)  # raises if there are more, or the file was written to
        self.check()
        if start == 0 and stop == facts.frames:
            DECODED.add(facts.sha256)


def _bounds(facts: Facts, start: int, stop: int | None) -> tuple[int, int]:
    last = facts.frames if stop is None else stop
    if not 0 <= start < last <= facts.frames:
        raise InvalidParameter("frames", f"{start}..{last}", f"are not in 0..{facts.frames}")
    return start, last


class Reader:
    """A clip that this process decodes; `facts` are what is known about it."""

    facts: Facts

    def __init__(self, source: Source, most: int = MAX_PIXELS, *, searched: bool = True) -> None:
        self.way = Way(source, container_of(source), most)
        self._found = survey(self.way, whole=searched)
        self.facts = self._found.facts
        self._upright = Upright(self._found.look, source, most)
        self._running: tuple[tuple[int, int, int], Iterator[Frame]] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.way.source.close()

    def frame(self, start: int, stop: int, index: int) -> Frame | None:
        """Return a frame of those from `start` to `stop`, the next one at once; None after the last."""
        due = (start, stop, index)
        if index == stop and (self._running is None or self._running[0] != due):
            deque(self.frames(stop - 1, stop), maxlen=0)  # raises unless it is the last one
            return None
        if self._running is None or self._running[0] != due:
            self._running = due, self.frames(index, stop)
        frames = self._running[1]
        found = next(frames, None)
        self._running = None if found is None else ((start, stop, index + 1), frames)
        return found

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """Return frames as `Clip.frames` does."""
        return self._frames(*_bounds(self.facts, start, stop))

    def _frames(self, start: int, stop: int) -> Iterator[Frame]:
        times = list(islice(self.facts.times, stop))
        index = start - 1
        for index, (time, picture) in enumerate(self._frames_at(start, times), start):
            if index >= stop or time != times[index]:
                raise damage_error(self.way.source, LIES)
            with as_clip_error(self.way.source, f"frame {index}"):
                image = self._upright.image(picture)
            yield Frame(index, time, image)
            if index == stop - 1 < self.facts.frames - 1:
                break
        if index != stop - 1:
            raise damage_error(self.way.source, LIES)
        self.way.source.check()

    def _frames_at(self, start: int, times: list[int]) -> Iterator[tuple[int, Any]]:
        """Return times and pictures of the frames from `start` on."""
        look, usual = self._found.look, self._found.usual
        near = times[max(0, start - 2)] if start and self._found.clean else None
        reached = None if near is None else self._frames_from(near, times[start])
        return reached or islice(self.way.read_frames(look, usual), start, None)

    def _frames_from(self, near: int, time: int) -> Iterator[tuple[int, Any]] | None:
        """Return the frames from `time` on, decoded from a keyframe before `near`; None if there is none.

        What precedes a keyframe may be missing, or may refer to frames before it.
        """
        found = self.way.read_frames(self._found.look, self._found.usual, near)
        try:
            for shown in found:
                if shown[0] >= time:
                    return chain([shown], found) if shown[0] == time else None
        except ClipError:
            pass
        return None


SKIP: Final = 60
"""Frames that are decoded and dropped rather than seeking."""


def pick_frames(clip: Clip, wanted: Iterable[int]) -> Iterator[Frame]:
    """Yield these frames of a clip in order, seeking where there is much between them."""
    left = sorted(set(wanted))
    while left:
        run = [left.pop(0)]
        while left and left[0] - run[-1] <= SKIP:
            run.append(left.pop(0))
        due = set(run)
        for frame in clip.frames(run[0], run[-1] + 1):
            if frame.index in due:
                yield frame


MOST: Final = 8
"""Most frames between two stages."""
BYTES: Final = 2**25
"""Most bytes of them, unless one frame has more."""
Item = TypeVar("Item")


def room_for(facts: Facts) -> int:
    """Return how many frames of a clip may wait between two stages.

    >>> from fractions import Fraction
    >>> one = dict(sha256="", format="mp4", codec="h264", audio=False, time_base=Fraction(1), start=0)
    >>> [room_for(Facts(**one, steps=(), width=w, height=w * 9 // 16)) for w in (640, 1920, 3840)]
    [8, 5, 1]
    """
    return max(1, min(MOST, BYTES // (3 * facts.width * facts.height)))


def ahead(items: Iterator[Item], most: int) -> Generator[Item]:
    """Yield items in order, of which a thread makes up to `most` in advance.

    What making one raises is raised in its turn. Close it, also after an error: the thread has ended then.
    """
    end = object()
    worker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        due = deque(worker.submit(next, items, end) for _ in range(most))
        while (item := due.popleft().result()) is not end:
            due.append(worker.submit(next, items, end))
            yield item  # type: ignore[misc]
    finally:
        worker.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()
