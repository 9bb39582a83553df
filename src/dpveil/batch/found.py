"""Faces that were found while a run was priced, so that no photo is searched twice.

Only what a detector saw is kept, in memory, with a hash of the pixels in which it saw it. When the photo is
released, it is read again, and its pixels have to have that hash; else it is searched again, as is one of
which a method covers objects before the search.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dpveil.batch.task import Task
from dpveil.core.photo import Photo
from dpveil.regions.face_search import Detections
from dpveil.regions.faces import detections_of, remember

MOST_BYTES: Final = 1 << 26
"""Memory for what was found in all photos of a run; those beyond it are searched again."""
OVERHEAD: Final = 2048
"""Bytes that a photo takes besides its detections, rounded up."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What detectors saw in a photo, by their settings, and the SHA-256 of its pixels."""

    digest: bytes
    detections: Mapping[object, Detections]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        found = self.detections.values()
        return OVERHEAD + sum(each.faces.nbytes + each.inside.nbytes + each.doubtful.nbytes for each in found)


Given = tuple[Task | None, Path | None, Seen | None]
"""A photo for a worker, None if there is none just now; the first of its copies; and what was seen in it."""


@dataclass
class Found:
    """What was seen in the photos of a run, by their outputs; threads may share it."""

    seen: dict[Path, Seen] = field(default_factory=dict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def about(self, output: Path, photo: Photo, *, keep: bool) -> Iterator[None]:
        """Let detectors see what was seen before in the very same pixels; at the end, `keep` what they saw.

        That is kept also of a photo that is refused within, for it is going to be read again.
        """
        known = self.seen.get(output)
        if known is not None and known.digest == _digest(photo):
            remember(photo, known.detections)
        try:
            yield
        finally:
            if keep and (detections := detections_of(photo)):
                self.add(output, Seen(_digest(photo), detections))

    def add(self, output: Path, seen: Seen | None) -> None:
        """Keep what was seen in a photo, if there is room and nothing is kept of it yet."""
        with self._lock:
            if seen is None or output in self.seen:
                return
            if self._bytes + seen.size <= MOST_BYTES:
                self._bytes += seen.size
                self.seen[output] = seen

    def take(self, output: Path) -> Seen | None:
        """Return what is kept of a photo, and let go of it."""
        with self._lock:
            seen = self.seen.pop(output, None)
            self._bytes -= 0 if seen is None else seen.size
        return seen


def _digest(photo: Photo) -> bytes:
    digest = hashlib.sha256(f"{photo.image.shape}\n".encode())
    digest.update(photo.image.data)
    return digest.digest()
