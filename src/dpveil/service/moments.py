"""The moments at which answers are given, so that their times do not tell what is in a photo."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable


class Moments:
    """Multiples of `every` seconds after a request had arrived as a whole; any time if `every` is 0.

    `now` tells the time in seconds, and `sleep` waits for some.
    """

    def __init__(
        self,
        every: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.every, self.now, self._sleep = every, now, sleep

    async def due(self, arrived: float) -> None:
        """Wait for the next multiple after a request `arrived`, or none if this is one."""
        if self.every:
            passed = self.now() - arrived
            multiple = max(1, math.ceil(passed / self.every))
            await self._sleep(max(0.0, multiple * self.every - passed))
