"""Cards in words, for people: what lies beside every codec, gallery and model of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpveil.codecs.base import Card, Codec
from dpveil.core.numbers import Json

if TYPE_CHECKING:
    from dpveil.codecs.attributes import AttributeModel
    from dpveil.codecs.gallery import FaceGallery


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
        *_origin(card),
        "What a codec shows was learned from these images: it may be bound to the same terms, and a decoded",
        "face may resemble people in them.",
        "",
        "## Training",
        "",
        *_rows({**card.settings, "seed": card.seed}),
        "",
        "## Measured on images that were held out",
        "",
        *(_rows(card.metrics) or ["Nothing: there were too few images that training did not see."]),
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


def gallery_text(gallery: FaceGallery, file: str, digest: str) -> str:
    """Return a gallery's card as Markdown; `file` is its name and `digest` its hash."""
    card = gallery.card
    lines = [
        f"# {_plain(file)}",
        "",
        f"A dpveil gallery: {len(gallery)} faces of nobody, 128 × 128 pixels in colour.",
        "",
        f"- SHA-256 that dpveil checks: `{digest}`",
        *(_counted(gallery, name) for name in gallery.values),
        "",
        "Labels are what most of the people in an average are labelled with in the training data. They are",
        "what its annotators or models saw in a picture, not what a person says of themself.",
        "",
        *_origin(card),
        "Every face is an average of several people. It may resemble somebody, who need not be one of them.",
        "",
        "## Making",
        "",
        *_rows({**card.settings, "seed": card.seed}),
        "",
        "## Measured",
        "",
        *(_rows(card.metrics) or ["Nothing."]),
        "",
        "A gallery alone promises nothing. Privacy comes from a mechanism that draws a face of it.",
    ]
    return "\n".join(lines) + "\n"


def attributes_text(model: AttributeModel, file: str, digest: str) -> str:
    """Return the card of a model of attributes as Markdown; `file` is its name and `digest` its hash."""
    card = model.card
    lines = [
        f"# {_plain(file)}",
        "",
        "A dpveil model of attributes: what a face of 128 × 128 pixels in colour looks like.",
        "",
        f"- SHA-256 that dpveil checks: `{digest}`",
        *(f"- {_plain(name)}: {', '.join(map(_plain, words))}" for name, words in model.values.items()),
        "",
        "Gender, age and race are what annotators or models saw in a picture: not what a person is, or says",
        "of themself. Two values of gender and five of race hold nobody's whole truth. Do not use this model",
        "to decide anything about people; here it chooses which invented face stands for one.",
        "",
        *_origin(card),
        "## Training",
        "",
        *_rows({**card.settings, "seed": card.seed}),
        "",
        "## Measured on images that were held out",
        "",
        *(_rows(card.metrics) or ["Nothing: there were too few images that training did not see."]),
        "",
        "What the model reads is private. Privacy comes from randomised response on what it says.",
    ]
    return "\n".join(lines) + "\n"


def _counted(gallery: FaceGallery, name: str) -> str:
    """Return how many faces have each label of one name."""
    labels = gallery.labels[name].tolist()
    counts = (f"{_plain(word)} {labels.count(place)}" for place, word in enumerate(gallery.values[name]))
    return f"- {_plain(name)}: {', '.join(counts)}"


def _origin(card: Card) -> list[str]:
    return ["## Training data", "", _plain(card.data), "", f"Terms: {_plain(card.terms)}", ""]


def _rows(values: Mapping[str, Json]) -> list[str]:
    return [f"- {name.replace('_', ' ')}: {_plain(str(value))}" for name, value in values.items()]


def _plain(text: str) -> str:
    """Return text on one line."""
    return " ".join(text.split())
