"""The process that decodes clips: what it answers to `dpveil.video.reading.Clip`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dpveil.errors import DPVeilError
from dpveil.processes import Channel, answer
from dpveil.video.decoding import CHANGED, Source
from dpveil.video.reading import Reader
from dpveil.video.writing import check_sound, join


def serve(channel: Channel) -> None:
    """Answer questions about clips."""
    answer(channel, lambda _: _answer)


def _answer(asked: list[Any]) -> tuple[Any, ...]:
    (name, path, *state, most, searched), what, *given = asked
    try:
        reader = _cached_reader(name, path, tuple(state), most, searched)
        if what == "frame":
            frame = reader.frame(*given)
            return ({"told": None},) if frame is None else ({"told": frame.time}, frame.image)
        if what == "facts":
            facts = vars(reader.facts) | {"time_base": str(reader.facts.time_base)}
            steps = np.array(facts.pop("steps"), np.int64).reshape(-1, 2)
            return {"told": facts}, steps
        if what == "sound":
            check_sound(reader, *given)
        else:
            segments, out, container = given
            join(segments, out, reader.facts, container=container, audio_from=reader)
        return ({"told": None},)
    except DPVeilError as error:
        return ({"refused": [type(error).__name__, error.message, str(error.hint)]},)


@lru_cache(maxsize=2)
def _cached_reader(name: str, path: str, state: tuple[int, ...], most: int, searched: bool) -> Reader:
    source = Source(path, name)
    if source.state != state:
        raise source.clip_error(CHANGED, "wait until it is complete, and try again")
    return Reader(source, most, searched=searched)
