"""What the desk works on: orders, and the jobs that make them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from dpveil.service.keys import Caller
from dpveil.service.store import Result


@dataclass
class Order:
    """What is to be released: the photo until a worker has it, the settings, and who pays under which key.

    `arrived` is when its request had arrived as a whole, as `Moments.now` tells the time.
    """

    photo: bytes
    settings: dict[str, Any]
    subject: str | None
    caller: Caller
    key: str | None
    digest: bytes
    arrived: float


@dataclass(eq=False)
class Job:
    """An order that is being made: `begun` once a worker has it, and `paid` once its payment has begun, after
    which it is finished.

    It is `shared` once a second request with its key was told of it. `made` is its release once
    that is shown.
    """

    id: str
    task: asyncio.Task[None]
    begun: bool = False
    paid: bool = False
    cancelled: bool = False
    stopped: bool = False
    shared: bool = False
    made: Result | None = None

    def cancel(self) -> None:
        """Cancel it: at once where it waits in line, else once it is planned.

        Until then it counts as under way, and no worker is killed for it.
        """
        self.cancelled = True
        if not self.begun:
            self.stop()

    def stop(self) -> None:
        """Stop it at once, and only once: a second time would stop that it is noted."""
        if not self.stopped:
            self.stopped = True
            self.task.cancel()


@dataclass(frozen=True)
class Left:
    """How many releases were under way when the service was told to stop: `finished` as they were paid for,
    or `cancelled`.
    """

    finished: int
    cancelled: int
