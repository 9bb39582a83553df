"""A clip: what is known about it, and its frames, read again and again by processes with limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from dpveil.core.parameters import check_count
from dpveil.errors import ClipError, OutputError
from dpveil.processes import Ended, Pool
from dpveil.video.containers import Source, pyav
from dpveil.video.decoding import LIES, MAX_PIXELS, bounds
from dpveil.video.facts import Facts, Frame

SECONDS: Final = 4 * 3600
"""Time to open a clip all of which has to be decoded for that; others, and frames, take much less."""
POOL: Final = Pool("dpveil.video.writing:serve", memory=1 << 33, seconds=SECONDS)
"""The processes, with 8 GiB each; the same one answers as long as one thread asks."""
MOST_FACTS: Final = 1 << 28
ENDS: Final = "it ends the process that reads it"
WHY_ENDED: Final = {"memory": "reading it needs too much memory", "time": "reading it takes too long"}
"""What is said of a clip that ended its process, by why."""


def open_clip(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Clip:
    """Return the clip in the file at `path` with its facts.

    Only regular files are read, in MP4 or MOV, Matroska or WebM, AVI, or MPEG transport and program streams,
    by their contents; `max_pixels` limits the pixels of a frame. Raises `ClipError` with the file, the
    problem and the remedy, and `UsageError` without PyAV.
    """
    if find_spec("av") is None:
        pyav()  # raises, without a process
    return Clip(Source(path), check_count(max_pixels, "max_pixels"))


class Clip:
    """A clip, which processes with limits decode; `facts` are what is known about it.

    It is one of dpveil's own clips, or refused, if it is not to be `searched` for its times.
    """

    def __init__(self, source: Source, most: int, *, searched: bool = True) -> None:
        self.source, self.most, self._searched = source, most, searched
        with source.open():
            self._stamp = _stamp(source.path)
        stated, (steps,) = self.ask("facts")
        unit, runs = Fraction(stated.pop("time_base")), tuple((int(a), int(b)) for a, b in steps)
        dropped = tuple(stated.pop("dropped"))
        self.facts = Facts(**stated, time_base=unit, steps=runs, dropped=dropped)

    def ask(self, what: str, *given: Any, most: int = MOST_FACTS) -> tuple[Any, list[np.ndarray]]:
        """Return what a process answers about this clip; raises `ClipError`, and `OutputError` of `join`."""
        source = self.source
        which = [source.name, str(source.path), *self._stamp, self.most, self._searched]
        try:
            answer, found = POOL.ask([which, what, *given], most=most)
        except Ended as error:
            problem = WHY_ENDED.get(error.why, ENDS)
            raise source.clip_error(problem, "leave it out, or convert it first") from error
        if "refused" in answer:
            kind, problem, hint = answer["refused"]
            raise {"OutputError": OutputError}.get(kind, ClipError)(problem, hint=hint)
        if _stamp(source.path) != self._stamp:  # regions of one clip would be replaced in another
            hint = "wait until it is complete, and try again"
            raise source.clip_error("it changed while it was read", hint)
        return answer["value"], found

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """Return the frames from number `start` to before `stop`, or to the last, one after the other.

        Raises `InvalidParameter` for numbers that the clip does not have, and `ClipError` as soon as a frame
        is damaged or is not what `facts` say: its number, its time, its size.
        """
        return self._frames(*bounds(self.facts, start, stop))

    def _frames(self, start: int, stop: int) -> Iterator[Frame]:
        facts = self.facts
        for index, time in enumerate(islice(facts.times, start, stop), start):
            own, images = self.ask("frame", start, stop, index, most=3 * facts.width * facts.height)
            if own != time or [one.shape for one in images] != [(facts.height, facts.width, 3)]:
                raise self.source.clip_error(LIES)
            yield Frame(index, time, images[0])
        self.ask("frame", start, stop, stop)  # raises if there are more


SKIPPED_FRAMES: Final = 60  # as many are decoded and dropped rather than sought: keyframes are as far apart


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def pick_frames(clip: Clip, wanted: Iterable[int]) -> Iterator[Frame]:
    """Yield these frames of a clip in order, seeking where there is much between them."""
    left = sorted(set(wanted))
    while left:
        run = [left.pop(0)]
        while left and left[0] - run[-1] <= SKIPPED_FRAMES:
            run.append(left.pop(0))
        due = set(run)
        for frame in clip.frames(run[0], run[-1] + 1):
            if frame.index in due:
                yield frame


MOST_WAITING: Final = 8  # frames between two stages
MOST_BYTES: Final = 2**25  # of them, unless one frame has more
Item = TypeVar("Item")


def room_for(facts: Facts) -> int:
    """Return how many frames of a clip may wait between two stages.

    >>> from fractions import Fraction
    >>> one = dict(sha256="", format="mp4", codec="h264", audio=False, time_base=Fraction(1), start=0)
    >>> [room_for(Facts(**one, steps=(), width=w, height=w * 9 // 16)) for w in (640, 1920, 3840)]
    [8, 5, 1]
    """
    return max(1, min(MOST_WAITING, MOST_BYTES // (3 * facts.width * facts.height)))


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
