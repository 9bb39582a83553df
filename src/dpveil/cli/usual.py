"""Notes for runs without --method: what the default method promises, and what keeping attributes costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import say
from dpveil.core.guarantee import counted

if TYPE_CHECKING:
    from dpveil.mechanisms.method import Method
    from dpveil.release.quote import Quote

PROMISED: Final = (
    "promised: each new face was chosen without looking at the old one, {cost}; in the clear: all that was"
    " not replaced, including faces that were not found, and the place, size and turn of each face"
)
KEPT: Final = "gender=1", "gender=1,age=1"
DRAWN: Final = (
    "heads are drawn: faces that look like photographs, and the model that keeps gender or age, come with a"
    " package that is not installed: {files}"
)
KEEP: Final = "to keep gender or age, add --attributes {choices}, in a photo of {faces}"


def tell(method: Method, faces: Sequence[int]) -> None:
    """Print what the default `method` promises, and what `tell_costs` prints.

    The costs are for the photo with most faces; `faces` has their number for each photo. Prints nothing if
    there are none.
    """
    if most := max(faces, default=0):
        say.note(PROMISED.format(cost=_cost(_quote(method, most))))
        tell_costs(method, most)


def tell_costs(method: Method, faces: int) -> None:
    """Print what keeping attributes would cost in a photo of so many faces, or why heads are drawn."""
    from dpveil.faces.kept import NONE

    changed: Any = method
    if str(changed.model) == NONE:
        tell_drawn(method)
        return
    costs = {kept: _cost(_quote(replace(changed, attributes=kept), faces)) for kept in KEPT}
    choices = " or ".join(f"{kept} for {cost}" for kept, cost in costs.items())
    say.note(KEEP.format(choices=choices, faces=counted(faces, "face")))


def tell_drawn(method: Method) -> None:
    """Say that heads are drawn, and why, where they are."""
    from dpveil.assets.defaults import FILES

    if getattr(method, "figures", False):
        say.note(DRAWN.format(files=FILES))


def tell_chosen(method: Method) -> None:
    """Say what the user chose to show, which no promise covers, if anything."""
    from dpveil.release.words import CHOSEN

    if method.set_by_user:
        say.note(CHOSEN.format(", ".join(method.set_by_user)))


def _quote(method: Method, faces: int) -> Quote:
    """Return the quote for so many faces in one photo, whose cost does not depend on their size."""
    from dpveil.release.quote import quote_of_sizes

    return quote_of_sizes(method, [{"height": 128, "width": 128, "channels": 3}] * faces)


def _cost(quote: Quote) -> str:
    number = str(quote.total).removesuffix(f", {quote.total.relation}")
    return f"{number} ({quote.strength})"
