"""Reading: whose licence plate or sign a release shows, by the text that is read in it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.attacks.base import CONTEXT, PIXELS, Attack, Background, Fitted, Memo, Scores, View
from dpveil.attacks.vectors import UNKNOWN, check_people

READ: Final[Memo[str]] = Memo()
MOST: Final = 1000
"""Most characters of a text that count."""


@dataclass(frozen=True)
class Reader(Attack):
    """Names the person whose photos have the most similar text, read by networks that know no release.

    A release in which nothing is read is a failure. The networks are those in the wheel of rapidocr
    (PP-OCRv6); nothing is downloaded.
    """

    name: ClassVar[str] = "text"
    summary: ClassVar[str] = "text that is read in a release, most similar text of a clean photo"
    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)
    needs: ClassVar[str] = "text"

    @property
    def about(self) -> str:
        """What photos have to show: plates."""
        return "plates"

    @property
    def enrols(self) -> bool:
        """Whether it can enrol new people: yes, it learns nothing of anybody but texts."""
        return True

    def fit(self, background: Background) -> Fitted:
        """Return the attacker that has read everybody's photos.

        Raises `InvalidParameter` for a background without two people.
        """
        return _Known.of(background)


@dataclass(frozen=True, eq=False)
class _Known(Fitted):
    names: tuple[str, ...]
    owners: np.ndarray
    texts: tuple[str, ...]

    @classmethod
    def of(cls, background: Background) -> _Known:
        check_people(background)
        return cls(background.names, background.owners, tuple(read(v.image) for v in background.clean))

    def enrol(self, gallery: Background) -> Fitted:
        """Return the attacker that has read the photos of a gallery."""
        return _Known.of(gallery)

    def score(self, releases: Sequence[View]) -> Scores:
        likeness = np.full((len(releases), len(self.names)), np.nan)
        for row, view in enumerate(releases):
            if own := read(view.image):
                likeness[row] = UNKNOWN
                found = [similarity(own, text) for text in self.texts]
                np.maximum.at(likeness[row], self.owners, found)
        return Scores(likeness, self.names)


def read(image: UInt8[np.ndarray, "h w c"]) -> str:
    """Return the text in a picture, without spaces, or an empty string."""
    return READ(image, "", lambda: _read(image))


def _read(image: UInt8[np.ndarray, "h w c"]) -> str:
    wide = np.broadcast_to(image, (*image.shape[:2], 3))
    found = _engine()(np.ascontiguousarray(wide[..., ::-1]))
    return "".join("".join(found.txts or ()).split())[:MOST]


@lru_cache(maxsize=1)
def _engine() -> Any:
    """Return rapidocr with the networks of its own wheel, on one thread."""
    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    threads = {f"EngineConfig.onnxruntime.{name}_op_num_threads": 1 for name in ("intra", "inter")}
    return RapidOCR(params={"Global.log_level": "error", **threads})


def similarity(one: str, other: str) -> float:
    """Return how similar two texts are, from 0 to 1: twice the characters in common by those of both."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
