"""Model cards: the provenance of a trained file, as data inside it and as Markdown beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpveil.core.rationals import Json


@dataclass(frozen=True)
class Card:
    """The provenance of a trained file.

    `codec` is the file's kind, `data` names the training set, `terms` what its licence allows; `seed` and
    `settings` reproduce the training, and `metrics` were measured on held-out images.
    """

    codec: str
    data: str
    terms: str
    seed: int
    settings: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class CardWords:
    """The lines that a kind of file adds to its card.

    `what` is the first sentence; `facts` and `labels` are lists before and after the hash; `caution` says
    how to interpret the labels and `origin` what follows from the training data; `more` are further sections,
    and `promise` is the last sentence. `making` and `measured` are headings, and `unmeasured` replaces
    missing metrics.
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
        *_block(f"# {_on_one_line(file)}"),
        *_block(words.what),
        *(f"- {_on_one_line(fact)}" for fact in words.facts),
        f"- SHA-256 that dpveil checks: `{digest}`",
        *(f"- {_on_one_line(label)}" for label in words.labels),
        "",
        *_block(*words.caution),
        *_block("## Training data"),
        *_block(_on_one_line(card.data)),
        *_block(f"Terms: {_on_one_line(card.terms)}"),
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
    return [*lines, ""] if lines else []


def _rows(values: Mapping[str, Json]) -> list[str]:
    return [f"- {name.replace('_', ' ')}: {_on_one_line(str(value))}" for name, value in values.items()]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
