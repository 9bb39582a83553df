"""Warnings in words of the page: what a sentence asks for is done there by a press, and not by an option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dpveil.accounting.meaning import NONE
from dpveil.core.guarantee import Guarantee, pixels
from dpveil.core.notes import Aside, Note
from dpveil.core.numbers import Json
from dpveil.errors import filled
from dpveil.release.origins import BOXES_ALONE
from dpveil.release.words import LOW, few_only

ACTS: Final[Mapping[str, str]] = {
    "threshold": "a press on the question mark",
    "protect": "a box around it",
}
"""What is done on the page in the place of a setting that a note names."""
SAID: Final[Mapping[str, str]] = {
    LOW["weak"]: (
        "Weak promise: whoever knows the two photos in question can tell in most cases which one was"
        " released, or in a few cases for certain."
    ),
    LOW[NONE]: (
        "Practically no promise: whoever knows the two photos in question can tell almost surely which one"
        " was released."
    ),
    BOXES_ALONE: "No face is replaced: every face outside your boxes stays as it is.",
}
"""Sentences that name commands of the command line, as the page says them."""
FEW: Final = (
    "Promised about any {} alone: about all pixels of a region together the promise is practically none."
)


def warnings(sentences: Iterable[str], total: Guarantee | None) -> dict[str, list[Json]]:
    """Return the warnings of a plan or a certificate, and apart from them what is for information."""
    told: dict[str, list[Json]] = {"warnings": [], "notes": []}
    few = {} if total is None or total.relation.m is None else {few_only(total): _few(total)}
    for text in sentences:
        said = filled(text.form, ACTS) if isinstance(text, Note) else text
        said = {**SAID, **few}.get(said, said)
        told["notes" if isinstance(text, Aside) else "warnings"].append(said)
    return told


def _few(total: Guarantee) -> str:
    return FEW.format(pixels(total.relation.m or 0))
