"""Notes for runs: what was promised, what is in the clear, and what the default could keep at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import say
from dpveil.core.guarantee import counted

if TYPE_CHECKING:
    from dpveil.batch import Promise
    from dpveil.core.guarantee import Guarantee
    from dpveil.mechanisms.method import Method
    from dpveil.release.quote import Quote

PROMISED: Final = "promised: {cost}; in the clear: {clear}"
BLIND: Final = "each new face was chosen without looking at the old one, {}"
FACES: Final = (
    "all that was not replaced, including faces that were not found or not chosen, and the {} of each face"
)
"""What `Plan.in_the_clear` says of faces, in short."""
WORST: Final = "in the worst of {} photos, "
UNSURE: Final = (
    "unsure: replaced {faces} with a score below {least}, in {photos}: --review shows them, --except leaves"
    " one as it is, and --threshold {least} all"
)
KEPT: Final = "gender=1", "gender=1,age=1"
DRAWN: Final = (
    "heads are drawn: faces that look like photographs, and the model that keeps gender or age, come with a"
    " package that is not installed: {files}"
)
KEEP: Final = "to keep gender or age, add --attributes {choices}, in {photo} {faces}"


def tell(method: Method, promises: Sequence[Promise]) -> None:
    """Print what releases promise and leave in the clear, for the one with most faces or regions.

    Prints nothing if all are copies.
    """
    from dpveil.cli.run_report import cost

    kept = [promise for promise in promises if promise.total is not None]
    worst = max(kept, key=lambda promise: (promise.faces, len(promise.guarantees)), default=None)
    if worst is None or worst.total is None:
        return
    drawn, total = worst.faces and method.regions == "faces", worst.total
    told = f"{WORST.format(len(kept)) if len(kept) > 1 else ''}{cost(worst)}" if total.formal else "nothing"
    if drawn and total.free:
        told = BLIND.format(_number(total, str(worst.strength)))
    clear = FACES.format("place, size and turn" if drawn else "place and size")
    say.note(PROMISED.format(cost=told, clear=clear if worst.faces else "; ".join(total.scope.in_the_clear)))


def tell_unsure(unsure: Mapping[str, int]) -> None:
    """Print how many faces were replaced without being sure of them, from their number by photo, if any."""
    from dpveil.cli.run_report import several
    from dpveil.release.words import UNSURE as LEAST

    photos = [photo for photo, count in unsure.items() if count]
    if photos:
        faces = counted(sum(unsure.values()), "face")
        say.note(UNSURE.format(faces=faces, least=LEAST, photos=several(photos)))


def tell_costs(method: Method, faces: int, *, of: int = 1) -> None:
    """Print what keeping attributes would cost in a photo of so many faces, the worst `of` so many photos.

    Where heads are drawn, prints why instead.
    """
    from dpveil.faces.kept import NONE

    changed: Any = method
    if str(changed.model) == NONE:
        tell_drawn(method)
        return
    quotes = {kept: _quote(replace(changed, attributes=kept), faces) for kept in KEPT}
    choices = " or ".join(f"{kept} for {_number(q.total, q.strength)}" for kept, q in quotes.items())
    photo = "a photo of" if of == 1 else f"{WORST.format(of).removeprefix('in ')}with"
    say.note(KEEP.format(choices=choices, photo=photo, faces=counted(faces, "face")))


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


def _number(total: Guarantee, strength: str) -> str:
    return f"{str(total).removesuffix(f', {total.relation}')} ({strength})"
