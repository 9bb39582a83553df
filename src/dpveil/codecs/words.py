"""A codec's card in words, for people: what lies beside every model."""

from __future__ import annotations

from collections.abc import Mapping

from dpveil.codecs.base import Codec
from dpveil.core.numbers import Json


def card_text(codec: Codec, file: str, digest: str) -> str:
    """Return the model card as Markdown; `file` is the model's name and `digest` its hash."""
    height, width, channels = codec.canvas
    card = codec.card
    lines = [
        f"# {_plain(file)}",
        "",
        f"A dpveil codec, `{codec.name}`: {codec.summary} ({codec.source}).",
        "",
        f"- codes of {codec.length} coordinates",
        f"- crops of {height} × {width} pixels, {'grey' if channels == 1 else 'colour'}",
        f"- SHA-256 that dpveil checks: `{digest}`",
        "",
        "## Training data",
        "",
        _plain(card.data),
        "",
        f"Terms: {_plain(card.terms)}",
        "",
        "What a codec shows was learned from these images: it may be bound to the same terms, and a decoded",
        "face may resemble people in them.",
        "",
        "## Training",
        "",
        *_rows({**card.settings, "seed": card.seed}),
        "",
        "## Measured on images that were held out",
        "",
        *(_rows(card.metrics) or ["Nothing: there were too few images."]),
        "",
        "## How far people lie apart",
        "",
        "Mean difference of the codes of two training images, as a part of the box of all training codes:",
        "",
        *(f"- {share:.0%} of pairs: {far:.4f} or less" for share, far in codec.apart().mean.items()),
        "",
        "Codes alone promise nothing. Privacy comes from a latent mechanism that draws a code anew.",
    ]
    return "\n".join(lines) + "\n"


def _rows(values: Mapping[str, Json]) -> list[str]:
    return [f"- {name.replace('_', ' ')}: {_plain(str(value))}" for name, value in values.items()]


def _plain(text: str) -> str:
    """Return text on one line."""
    return " ".join(text.split())
