"""The base class of codecs that are stored in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from dpveil.assets.cards import CardWords
from dpveil.assets.store import Stored
from dpveil.codecs.base import Canvas, Codec
from dpveil.core.numbers import Json

ORIGIN: Final = (
    "What a codec shows was learned from these images: it may be bound to the same terms, and a decoded",
    "face may resemble people in them.",
)
DISTANCES: Final = (
    "Mean difference of the codes of two training images, as a part of the box of all training codes:"
)
PROMISE: Final = "Codes alone promise nothing. Privacy comes from a latent mechanism that draws a code anew."


def canvas_of(facts: Mapping[str, Any]) -> Canvas:
    """Return the canvas in a file's header; raises an error of `store.UNFIT` if it is malformed."""
    height, width, channels = (int(side) for side in facts["canvas"])
    return height, width, channels


class StoredCodec(Stored, Codec):
    """A codec that is stored in a file of dpveil, with its canvas and a card."""

    hint: ClassVar[str] = "make one: dpveil train pca IMAGES... --out model.safetensors"

    def facts(self) -> dict[str, Json]:
        """Return the canvas, for the file's header."""
        return {"canvas": list(self.canvas)}

    def card_words(self) -> CardWords:
        """Return the model card's sections about the codec."""
        height, width, channels = self.canvas
        distances = self.statistics.pair_distances().mean
        return CardWords(
            what=f"A dpveil codec, `{self.name}`: {self.summary} ({self.source}).",
            facts=(
                f"codes of {self.length} coordinates",
                f"crops of {height} × {width} pixels, {'grey' if channels == 1 else 'colour'}",
            ),
            origin=ORIGIN,
            more=(
                "## Distances between people",
                "",
                DISTANCES,
                "",
                *(f"- {share:.0%} of pairs: {far:.4f} or less" for share, far in distances.items()),
                "",
            ),
            promise=PROMISE,
        )
