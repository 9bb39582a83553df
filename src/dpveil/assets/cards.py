"""Model cards: the provenance of a trained file, as data inside it and as Markdown beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpveil.core.numbers import Json


@dataclass(frozen=True)
class Card:
    """What has to be known of a trained file: where its numbers come from, and on what terms.

    `codec` is the file's kind, `data` names the training set and how many images, `terms` what its licence
    allows, `seed` and `settings` make the training again, `metrics` were measured on images that were held
    out.
    """

    codec: str
    data: str
    terms: str
    seed: int
    settings: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class CardWords:
    """What a kind of file adds to its card: one line each, in the order in which they stand there.

    `what` is the first sentence, `facts` and `labels` are listed before and after the hash, `caution` says
    how to read the labels and `origin` what follows from the training data; `more` are lines of further
    sections, and `promise` is the last word. `making` and `measured` are headings, `unmeasured` stands where
    there are no metrics.
    """

    what: str
    promise: str
    facts: Sequence[str] = ()
    labels: Sequence[str] = ()
    caution: Sequence[str] = ()
    origin: Sequence[str] = ()
    more: Sequence[str] = ()
    making: str = "Training"
    measured: str = "Measured on images that were held out"
    unmeasured: str = "Nothing: there were too few images that training did not see."


def card_text(card: Card, words: CardWords, file: str, digest: str) -> str:
    """Return the model card as Markdown; `file` is the model's name and `digest` its hash."""
    lines = [
        *_block(f"# {_plain(file)}"),
        *_block(words.what),
        *(f"- {_plain(fact)}" for fact in words.facts),
        f"- SHA-256 that dpveil checks: `{digest}`",
        *(f"- {_plain(label)}" for label in words.labels),
        "",
        *_block(*words.caution),
        *_block("## Training data"),
        *_block(_plain(card.data)),
        *_block(f"Terms: {_plain(card.terms)}"),
        *_block(*words.origin),
        *_block(f"## {words.making}"),
        *_block(*_rows({**card.settings, "seed": card.seed})),
        *_block(f"## {words.measured}"),
        *_block(*(_rows(card.metrics) or [words.unmeasured])),
        *words.more,
        words.promise,
    ]
    return "\n".join(lines) + "\n"


def _block(*lines: str) -> list[str]:
    """Return lines with an empty one after them, or nothing."""
    return [*lines, ""] if lines else []


def _rows(values: Mapping[str, Json]) -> list[str]:
    return [f"- {name.replace('_', ' ')}: {_plain(str(value))}" for name, value in values.items()]


def _plain(text: str) -> str:
    """Return text on one line."""
    return " ".join(text.split())
