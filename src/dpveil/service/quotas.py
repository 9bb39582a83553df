"""What each key may take, so that none has the whole: requests a minute, work at once, and memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from dpveil.service.keys import LOCAL, Caller
from dpveil.service.problems import Busy, TooMany
from dpveil.service.settings import Limits

AGAIN_SECONDS: Final = 2
"""Seconds after which a key that has enough under way may ask again."""


class Rates:
    """How often each key asked: a bucket of `rate` requests that fills up within a minute."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, caller: Caller, now: float) -> None:
        """Count a request at the time `now`, in seconds; raises `TooMany` if the bucket is empty."""
        left = self._at(caller, now)
        if left < 1:
            after = 1 + int((1 - left) * 60 / caller.rate)
            raise TooMany(f"this key asks more than {caller.rate} times a minute", after=after)
        self._left[caller.number] = (left - 1, now)

    def more(self, caller: Caller, photos: int, now: float) -> None:
        """Count the further photos of a request that was let in: the requests after it wait for them."""
        self._left[caller.number] = (self._at(caller, now) - photos, now)

    def _at(self, caller: Caller, now: float) -> float:
        left, before = self._left.get(caller.number, (float(caller.rate), now))
        return min(float(caller.rate), left + (now - before) * caller.rate / 60)


@dataclass
class _Work:
    """What one key has under way, and the turns of its photos at workers."""

    turns: asyncio.Semaphore
    count: int = 0


class Turns:
    """What each key has under way: `caller.parallel` requests and jobs, beyond which none is let in.

    The photos of one request may be more: `caller.parallel` of them are with workers, or wait for one, at
    once, and the rest of them wait for each other.
    """

    def __init__(self) -> None:
        self._work: dict[str, _Work] = {}

    @contextmanager
    def request(self, caller: Caller) -> Iterator[None]:
        """Count a request until what it asks for is begun or answered; raises `TooMany`."""
        work = self._work.get(caller.number)
        if work is not None and work.count >= caller.parallel:
            problem = f"this key has as many requests and jobs under way as it may: {caller.parallel}"
            raise TooMany(problem, after=AGAIN_SECONDS)
        self.begin(caller)
        try:
            yield
        finally:
            self.end(caller)

    def begin(self, caller: Caller) -> None:
        """Count a job, until `end`."""
        work = self._work.get(caller.number)
        if work is None:
            work = self._work[caller.number] = _Work(asyncio.Semaphore(caller.parallel))
        work.count += 1

    def end(self, caller: Caller) -> None:
        """Count a request or job no more."""
        work = self._work[caller.number]
        work.count -= 1
        if not work.count:
            del self._work[caller.number]

    @asynccontextmanager
    async def turn(self, caller: Caller) -> AsyncIterator[None]:
        """Wait until it is the turn of a photo of a request or job that is counted."""
        async with self._work[caller.number].turns:
            yield


class Held:
    """The bytes of all uploads in memory: `limits.held_bytes` at most, and `limits.key_bytes` of each key.

    Where no key is needed, whoever asks has the whole.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.now = limits, 0
        self.of_keys: Counter[str] = Counter()

    @contextmanager
    def share(self, caller: Caller = LOCAL) -> Iterator[Share]:
        """Give one request a share, which it gives back when it ends."""
        share = Share(self, None if caller is LOCAL else caller.number)
        try:
            yield share
        finally:
            share.free()


@dataclass
class Share:
    """What one request holds in memory: of the memory of all, and of that of a `key` by its number."""

    held: Held
    key: str | None = None
    size: int = 0

    def add(self, size: int) -> None:
        """Hold more; raises `TooMany` for more than a key may hold, and `Busy` for more than all may."""
        limits = self.held.limits
        if self.key is not None and self.held.of_keys[self.key] + size > limits.key_bytes:
            raise TooMany("the uploads of this key fill the memory that it has for them", after=AGAIN_SECONDS)
        if self.held.now + size > limits.held_bytes:
            raise Busy("uploads of others fill the memory for them", after=5)
        self._count(size)

    def part(self, size: int) -> Share:
        """Give `size` bytes of this share to a share of its own, as for one photo of several."""
        self.size -= size
        return Share(self.held, self.key, size)

    def free(self) -> None:
        """Give everything back."""
        self._count(-self.size)

    def _count(self, more: int) -> None:
        self.size += more
        self.held.now += more
        if self.key is not None:
            self.held.of_keys[self.key] += more
