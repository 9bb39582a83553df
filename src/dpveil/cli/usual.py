"""Notes for runs: what was promised, what is in the clear, and what the default could keep at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final

from dpveil.cli import say
from dpveil.core.guarantee import counted

if TYPE_CHECKING:
    from dpveil.batch import Promise
    from dpveil.core.guarantee import Guarantee
    from dpveil.core.region import Region
    from dpveil.mechanisms.method import Method
    from dpveil.release.plan import Plan
    from dpveil.release.quote import Quote

PROMISED: Final = "{promised}: {cost}; in the clear: {clear}"
BLIND: Final = "each new face was chosen without looking at the old one, {}"
FACES: Final = (
    "all that was not replaced, including faces that were not found or not chosen, and the {} of each face"
)
"""What `Plan.in_the_clear` says of faces, in short."""
WORST: Final = "in the worst of {} {}, "
UNSURE: Final = (
    "unsure: {replaced} {faces} with a score below {least}, in {photos}: {look} {them}, {one}, and"
    " --threshold {least} leaves all of them as they are{paid}"
)
ONE: Final = "--except N leaves one as it is"
ALONE: Final = "--except counts for every photo, so release that photo by itself with --except N to leave one"
LEFT: Final = (
    "left in the clear: {places}, in {photos}: {look} {them}, and --threshold {least} replaces {them}{paid}"
)
LOOK: Final = {False: "--review shows", True: "dpveil faces shows"}
"""What shows a photo's faces, after its release and before."""
PAID: Final = (
    "; a photo that is paid for takes such a change only with --other-regions, so look with dpveil faces or"
    " --dry-run first"
)
UNPACKED: Final = "dpveil faces on the unpacked photo shows"
"""What shows a photo that lies in a file of many, which --review does not."""
CROWDED: Final = "crowded: {photo}: {faces}"
KEPT: Final = "gender=1", "gender=1,age=1"
DRAWN: Final = (
    "heads are drawn: faces that look like photographs, and the model that keeps gender or age, come with a"
    " package that is not installed: {files}"
)
KEEP: Final = "to keep gender or age, add --attributes {choices}, in {photo}, of which {faces} replaced"


def tell(method: Method, promises: Sequence[Promise], promised: str = "promised") -> None:
    """Print what releases have `promised` and leave in the clear, for the one that costs most.

    Prints nothing if all are copies.
    """
    worst = dearest(promises)
    if worst is None or worst.total is None:
        return
    drawn, total = worst.faces and method.regions == "faces", worst.total
    told = cost_of(promises, "photos") if total.formal else "nothing"
    if drawn and total.free:
        told = BLIND.format(_number(total, str(worst.strength)))
    clear = FACES.format("place, size and turn" if drawn else "place and size")
    seen = clear if worst.faces else "; ".join(total.scope.in_the_clear)
    say.note(PROMISED.format(promised=promised, cost=told, clear=seen))


def dearest(promises: Sequence[Promise]) -> Promise | None:
    """Return the promise of the release that costs most, of equal ones that with most faces or regions.

    One without a formal guarantee costs more than any other. Copies do not count.
    """
    kept = [promise for promise in promises if promise.total is not None]

    def amount(promise: Promise) -> tuple[Any, ...]:
        total: Any = promise.total
        paid = tuple(getattr(total, name) or 0 for name in ("epsilon", "rho", "delta"))
        reach = inf if total.kind == "metric" and total.diameter is None else total.diameter or 0
        return (not total.formal, *paid, reach, promise.faces, len(promise.guarantees))

    return max(kept, key=amount, default=None)


def cost_of(promises: Sequence[Promise], what: str) -> str:
    """Return in words what the one costs that costs most of these releases, which are photos or clips."""
    from dpveil.cli.run_report import cost

    worst, many = dearest(promises), sum(promise.total is not None for promise in promises)
    if worst is None:
        return ""
    return f"{WORST.format(many, what) if many > 1 else ''}{cost(worst)}"


@dataclass
class Doubts:
    """What the detector was not sure of in a run, by photo: how many faces that were replaced, and the places
    that may be faces and were not. And the faces of crowds, around which what is replaced is not bounded.
    Whether photos are `packed` in files of many decides what shows them.
    """

    replaced: dict[str, int] = field(default_factory=dict)
    left: dict[str, Sequence[Region]] = field(default_factory=dict)
    crowds: dict[str, str] = field(default_factory=dict)
    packed: bool = False

    def add(self, photo: str, plan: Plan, *, packed: bool = False) -> None:
        """Take note of the plan by which a photo was released, `packed` if that is in a file of many."""
        self.packed |= packed
        if plan.unsure:
            self.replaced[photo] = len(plan.unsure)
        if plan.doubtful:
            self.left[photo] = plan.doubtful
        if crowd := plan.crowd.in_words():
            self.crowds[photo] = crowd

    def join(self, other: Doubts) -> None:
        """Take note of what is known of other photos."""
        self.replaced |= other.replaced
        self.left |= other.left
        self.crowds |= other.crowds
        self.packed |= other.packed

    def tell(self, *, before: bool = False, paid: bool = False, photos: int = 1) -> None:
        """Print one line about each kind, if there are any, of a run over so many `photos`.

        What to do depends on whether this is `before` their release, and else whether a ledger `paid` for it.
        """
        from dpveil.cli.run_report import several
        from dpveil.release.words import UNSURE as LEAST
        from dpveil.release.words import lowest

        more = {"look": UNPACKED if self.packed else LOOK[before], "paid": PAID * (paid and not before)}
        if count := sum(self.replaced.values()):
            faces, them = counted(count, "face"), "it" if count == 1 else "them"
            done = "would replace" if before else "replaced"
            words = {"faces": faces, "replaced": done, "them": them, "one": ALONE if photos > 1 else ONE}
            say.note(UNSURE.format(**words, least=LEAST, photos=several([*self.replaced]), **more))
        if places := [place for left in self.left.values() for place in left]:
            one, where = len(places) == 1, several([*self.left])
            many = "one place that may be a face" if one else f"{len(places)} places that may be faces"
            them = "it" if one else "them"
            say.note(LEFT.format(places=many, photos=where, least=lowest(places), them=them, **more))
        for photo, faces in [*self.crowds.items()][:1]:
            others = f"; and faces of {counted(len(self.crowds) - 1, 'more photo')}, which --json names"
            say.note(CROWDED.format(photo=photo, faces=faces) + others * (len(self.crowds) > 1))


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
    photo = "a photo" if of == 1 else WORST.format(of, "photos").removeprefix("in ").removesuffix(", ")
    told = f"{counted(faces, 'face')} {'is' if faces == 1 else 'are'}"
    say.note(KEEP.format(choices=choices, photo=photo, faces=told))


def tell_drawn(method: Method) -> None:
    """Say that heads are drawn, and why, where they are."""
    from dpveil.assets.store import FILES

    if getattr(method, "figures", False):
        say.note(DRAWN.format(files=FILES))


def tell_terms(users: Iterable[object]) -> None:
    """Say what the licences of the trained files allow that methods and steps use, if there are any."""
    from dpveil.assets.reference import terms_of

    if told := [f"{name.split()[0]}: {terms}" for name, terms in terms_of(users).items()]:
        say.note(f"licence of {'; '.join(told)}")


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
