"""How a region was determined, as data: certificates store it, and labels are generated from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from dpveil.core.parameters import CEILING
from dpveil.core.rationals import Json
from dpveil.core.strict_json import at_most, between, check_fields, matching

WHOLE: Final = "whole"
BOX: Final = "box"
OBJECT: Final = "object"
"""A user's box around anything but a face: methods that replace faces draw none there."""
MASK: Final = "mask"
FACE: Final = "face"
TEXT: Final = "text"
PLATE: Final = "plate"
CODE: Final = "code"
EYE: Final = "eye"
KIND: Final = re.compile(r"[a-z][a-z0-9 -]{0,39}")
"""Names of kinds of regions: a lower-case noun, such as "licence plate"."""
CODEC: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]{0,19}")  # names of lossy formats, such as "JPEG"
SAME: Final = "which follow from the photo's pixels: the guarantee compares photos in which the same is found"
"""The end of every sentence of a certificate about something that was chosen by looking at the photo."""
ROUNDED: Final = "rounded to a public grid"  # what certificates say of a placement in a `cell`
EXCEPT: Final = re.compile(r" (?:except=[0-9,]+|(?:keep|replace)-like=[0-9a-f,]+)$")
"""The end of a request that keeps faces, at which all others may be cut."""
LIKE: Final = "like="  # in a request for text, before the rule of what it says
BY_LIKENESS: Final = re.compile(r" (?:keep|replace)-like=")
"""In a request for faces of which some stay by their likeness to reference photos."""
LIKENESS: Final = (
    "which faces stay by their likeness to reference photos, and so that the others are not so like or unlike"
    f" them: this follows from the pixels of all faces, {SAME}"
)
LINKED: Final = (
    "which faces in the files of a run are taken for one person, for they are shown as one: this follows from"
    " the pixels of all of them and from their order, and who is shown from what stays around the first of"
    f" them and was drawn for it, {SAME}"
)
"""What certificates say of faces that are linked."""
BESIDE: Final = (
    "where the face boxes end that were detected and kept, rounded to a public grid: they may follow from"
    f" pixels that are replaced, and may cut what is replaced; {SAME}"
)
"""What certificates say of faces beside one that was kept."""
NO_FACES: Final = {"text": TEXT, "plates": PLATE, "codes": CODE, "eyes": EYE, "irises": EYE, "detected": ""}
"""The first words of requests for what is found and is no face, and the kind of that; empty for any."""
REDUCED: Final = frozenset({"palette", "1-bit", "2-bit", "4-bit"})
"""Sources of few levels: which ones, and how they are dithered, may follow from all of the original."""
BLOCKLESS: Final = REDUCED | {"PDF"}
"""Sources without blocks to grow to, though what is hidden may have left traces around it."""
MOST_CELL: Final = 1 << 24  # the largest number of a cell
MOST_LETTERS: Final = 10_000  # the longest description of a finder, in characters


@dataclass(frozen=True)
class Origin:
    """How a region was determined.

    `kind` is "whole", "box", "mask", "face" or a noun of a custom finder. `finder` is the description of the
    finder, one of the certificate's requests, and `number` counts from 1 among its regions. `found` is true
    if position or presence follow from the photo's pixels, `outlined` if the region follows the outline of a
    head, `fallback` if it is the whole photo because nothing was found. `grown_to` names the lossy format to
    whose blocks the region grew, or a source without blocks (`BLOCKLESS`); `escapes` says that this spreads
    traces beyond any margin, unless the owner says that a source without blocks lost nothing. `cell`
    numbers the cell of a public grid to which a face's placement was rounded. Raises `InvalidParameter`.

    >>> Origin("face", "faces", number=2, found=True, grown_to="JPEG").in_words()
    'face 2, grown to the JPEG blocks'
    """

    kind: Annotated[str, matching(KIND, "noun of at most 40 lower-case letters")] = BOX
    finder: Annotated[str, at_most(MOST_LETTERS)] = ""
    number: Annotated[int, between(1, CEILING)] | None = None
    found: bool = False
    outlined: bool = False
    grown_to: Annotated[str, matching(CODEC, "name of a format")] | None = None
    escapes: bool = False
    fallback: bool = False
    cell: tuple[Annotated[int, between(-MOST_CELL, MOST_CELL)], ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)  # a plug-in's finder may have made it

    @property
    def name(self) -> str:
        name = self.kind if self.number is None else f"{self.kind} {self.number}"
        if self.kind == WHOLE:
            name = "whole photo, as no region was found" if self.fallback else "whole photo"
        return f"head of {name}" if self.outlined else name

    @property
    def faceless(self) -> bool:
        """Whether this is something else than a face, which methods that replace faces cover with grey."""
        return self.kind == OBJECT or NO_FACES.get(self.finder.partition(" ")[0]) in ("", self.kind)

    def in_words(self) -> str:
        """Return the label of the region: its name, and that it grew."""
        if self.grown_to is None or self.grown_to in BLOCKLESS:
            return self.name
        return f"{self.name}, grown to the {self.grown_to} blocks"

    def to_json(self) -> dict[str, Json]:
        given = {n: value for n, value in vars(self).items() if n == "kind" or value != getattr(Origin, n)}
        return given if self.cell is None else given | {"cell": [*self.cell]}
