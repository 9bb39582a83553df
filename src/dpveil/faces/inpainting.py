"""What fills the place that a head leaves free: Telea's rule, or a user's network, by its hash."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from dpveil.core.numbers import Json
from dpveil.core.parameters import Parameter
from dpveil.errors import InvalidParameter, ModelError
from dpveil.faces.geometry.fill import Filling, Telea
from dpveil.faces.geometry.lama import Lama

TELEA: Final = "telea"
WRITTEN: Final = re.compile(r"lama sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Inpainting:
    """A filling by the `digest` of its network's file, which is None for OpenCV's own, Telea's.

    `source` is the network, or None where only a certificate names it: then the file is asked for. No path is
    ever part of it.

    >>> str(Inpainting()), str(Inpainting.of("lama sha256:" + 64 * "0"))[:18]
    ('telea', 'lama sha256:000000')
    """

    digest: str | None = None
    source: Lama | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, value: object) -> Inpainting:
        """Return the reference to "telea", a network's file, or what a reference wrote.

        Raises `InvalidParameter`, and `ModelError` for a file without such a network.
        """
        if isinstance(value, Inpainting):
            return value
        if not isinstance(value, str | Path):
            problem = "is no file"
            raise InvalidParameter("inpainting", type(value).__name__, problem, hint="telea, or a file")
        if value == TELEA or WRITTEN.fullmatch(str(value)):
            return cls.written(str(value))
        return _of_file(Path(value))

    @classmethod
    def written(cls, text: object) -> Inpainting:
        """Return the reference that `text` is the written form of, as in certificates; opens no file.

        Raises `InvalidParameter` for anything else.
        """
        known = WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if known is None and text != TELEA:
            problem = "is not written as in certificates"
            raise InvalidParameter("inpainting", text, problem, hint="telea, or lama sha256:…")
        return cls(known[1] if known else None)

    @property
    def filling(self) -> Filling:
        """What fills; raises `ModelError` where the network is not at hand."""
        if self.digest is None:
            return Telea()
        if self.source is None:
            problem = f"the network with the hash {self.digest[:12]}… is not at hand"
            raise ModelError(problem, hint="name its file with --inpainting")
        return self.source

    def __str__(self) -> str:
        return TELEA if self.digest is None else f"lama sha256:{self.digest}"


def _of_file(path: Path) -> Inpainting:
    try:
        stamp = path.stat().st_mtime_ns, path.stat().st_size
    except OSError:
        stamp = (0, 0)
    return _loaded(path, stamp)


@lru_cache(maxsize=1)
def _loaded(path: Path, stamp: tuple[int, int]) -> Inpainting:
    network = Lama(path)
    return Inpainting(network.digest, network)


class InpaintingField(Parameter[object, Inpainting]):
    """A filling: "telea", or the file of a network."""

    def check(self, value: object) -> Inpainting:
        """Return the reference to the filling."""
        return Inpainting.of(value)

    def stated(self, value: Json) -> Inpainting:
        """Return the reference that is written so."""
        return Inpainting.written(value)
