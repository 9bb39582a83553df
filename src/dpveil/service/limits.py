"""What a request, and all of them together, may take."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from dpveil.errors import InvalidParameter

MIB: Final = 1 << 20
PARALLEL: Final = 4  # requests and jobs that a key has under way at once, where nothing else is said
MOST_PARALLEL: Final = 32  # most of them: half of `Limits.waiting`, so that no key alone fills the queue
MOST_NOTES: Final = 1 << 16  # most bytes of a release's notes as JSON


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, and all of them together, may take. Sizes are in bytes, times in seconds.

    An upload has `body_bytes` at most and arrives within `body_seconds`. Of settings and a query,
    `settings_bytes` are read. A photo has `pixels` at most. All uploads in memory have `held_bytes`;
    `waiting` photos wait for a worker. Planning takes `plan_seconds`, and drawing `draw_seconds`, or a
    document or clip `media_seconds`, in a worker with `worker_bytes` of address space. A request that takes
    longer than `answer_seconds` is answered with a job. Results are kept for `result_seconds`, in
    `results_bytes` of memory or disk. `connections` may be open.
    """

    body_bytes: int = 64 * MIB
    body_seconds: float = 60
    settings_bytes: int = 1 << 16
    pixels: int = 50_000_000
    held_bytes: int = 512 * MIB
    waiting: int = 64
    plan_seconds: float = 60
    draw_seconds: float = 120
    media_seconds: float = 1800
    worker_bytes: int = 4096 * MIB
    answer_seconds: float = 20
    result_seconds: float = 3600
    results_bytes: int = 2048 * MIB
    connections: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < 2**53:
                raise InvalidParameter(field.name, value, "is out of range", hint="choose a positive number")

    @property
    def most_room(self) -> int:
        """Most bytes that a release takes, whatever a worker says: twice the levels of an image in colour, 8
        more for each row, and 18 MiB for its certificate and notes.
        """
        return min((2 * 3 + 8) * self.pixels + 18 * MIB, self.results_bytes)
