"""What `dpveil evaluate` compares: methods with their budgets, and the attacks on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from dpveil.cli.options import number
from dpveil.core.registry import ATTACKS, FACES, METHODS
from dpveil.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from dpveil.attacks.base import Attack
    from dpveil.bench.data import Dataset
    from dpveil.bench.settings import AnySetting
    from dpveil.mechanisms.method import Method

QUICK: Final = {
    "methods": ("dp-pix", "dp-samp", "dp-svd", "snow"),
    "budgets": ("0.5", "1", "5", "20", "100"),
    "attacks": (
        "pixels",
        "appearance",
        "hallucinated",
        "embedding",
        "network",
        "iris",
        "filled(iris)",
        "text",
    ),
}
"""What a run compares unless it is told; `--full` takes all methods and attacks that are installed."""
SEVERAL: Final = ("averaged", "composed")
"""Attacks on several releases of one photo, which are run where there are some."""
MIXED: Final = "intersected"
"""The attack on pictures of several people, which is run where there are some, or several releases."""
KNOWING: Final = "subtracted"
"""The attack with background knowledge of the others in a picture, which is run where there are some."""
AROUND: Final = ("placement", "context", "context+placement", "outside(network)")
"""Attacks that look beside the regions, which are run where regions are not the whole photo."""
PLAIN: Final = ("blur", "mosaic", "fill")
"""Methods that promise nothing, which every run shows beside the others."""
ALONE: Final = "everybody is in one photo, and attackers have that photo itself"
"""What a run says of a data set that names nobody."""
FULL_PHOTOS: Final = 10
"""Most photos of a person in a full run, unless it is told: some people of LFW have hundreds."""
SLOW: Final = ("1", "10", "100")
"""Budgets of a full run."""
USUAL_K: Final = ("5",)
"""How many share a picture by k-same."""


@dataclass(frozen=True)
class Asked:
    """What the user asked for, in the user's words; None or nothing for what was not said."""

    methods: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    delta: str | None = None
    block: str = "8"
    neighbourhoods: tuple[str, ...] = ()
    metric: str | None = None
    k: tuple[str, ...] = ()
    codec: str | None = None
    regions: str | None = None
    releases: int = 1
    full: bool = False
    photos: int | None = None

    @property
    def most_photos(self) -> int | None:
        """How many photos of each person are taken at most; None for all."""
        return FULL_PHOTOS if self.full and self.photos is None else self.photos


def settings(
    asked: Asked, sets: Sequence[Dataset], options: Mapping[str, str]
) -> tuple[list[AnySetting], list[str]]:
    """Return the settings that are compared, photos as they are first, and notes on what is left out.

    `options` say what an argument is called in errors. Raises `UsageError` and `InvalidParameter`.
    """
    from dpveil.bench.galleries import METHODS as GALLERIES
    from dpveil.bench.settings import Setting

    rows = (*METHODS.rows, *GALLERIES) if asked.full else QUICK["methods"]
    names = tuple(dict.fromkeys(asked.methods or rows))
    for name in names:
        if name not in METHODS and name not in GALLERIES:
            raise UnknownName("method", name, (*METHODS, *GALLERIES))
    _check_regions(asked.regions, sets)
    notes = _unused(asked, names)
    notes += [f"{one.name}: {ALONE}" for one in sets if one.alone]
    if asked.most_photos != asked.photos:
        notes.append(f"of each person at most {FULL_PHOTOS} photos are taken: --photos says how many")
    chosen = tuple(name for name in names if name not in GALLERIES)
    methods, more = _methods(asked, chosen, options)
    shared, left = _galleries(asked, [name for name in names if name in GALLERIES], sets)
    own = [Setting(one, asked.regions, releases=asked.releases) for one in methods]
    return [Setting(None), *own, *shared], [*notes, *more, *left]


def _check_regions(regions: str | None, sets: Sequence[Dataset]) -> None:
    """Raise `UsageError` for regions that a benchmark does not take, and a box that a photo does not hold."""
    from dpveil.bench.settings import BOX, can_be_regions
    from dpveil.regions.boxes import box_of_text

    if not can_be_regions(regions):
        raise UsageError(f"--regions {regions} is none of evaluate's", hint="whole, faces or a box x,y,w,h")
    if regions is not None and BOX.fullmatch(regions):
        box = box_of_text(regions)
        for item in (item for one in sets for item in one.items):
            photo = item.read()
            if not box.inside(photo.width, photo.height):
                problem = f"the box {box} is outside {item.name}, of {photo.width} × {photo.height} pixels"
                raise UsageError(problem, hint="give a box that is inside every photo")


def _methods(
    asked: Asked, names: Sequence[str], options: Mapping[str, str]
) -> tuple[list[Method], list[str]]:
    """Return the methods with their parameters, those that promise nothing first, and notes."""
    from dpveil.catalogue import build
    from dpveil.cli import grid

    alone = [name for name in names if not asked.budgets and asked.methods and _needs_no_budget(name)]
    choice = grid.Choice(
        names=(*(name for name in PLAIN if name not in names), *(one for one in names if one not in alone)),
        budgets=asked.budgets or (SLOW if asked.full else QUICK["budgets"]),
        neighbourhoods=grid.neighbourhoods(asked.neighbourhoods or ("16",)),
        delta=asked.delta,
        block=number(asked.block),
        metric=asked.metric,
    )
    lines, notes = grid.lines(choice, every=asked.full and not asked.methods, options=options)
    found = [one for line in lines for one in line.methods if one is not None]
    return list(dict.fromkeys([*found, *(build(name, {}) for name in alone)])), notes


def _needs_no_budget(name: str) -> bool:
    """Whether a method keeps nothing unless it is told, and then costs nothing, as the default does."""
    return name in METHODS and () in METHODS[name].budgets


def _galleries(
    asked: Asked, names: Sequence[str], sets: Sequence[Dataset]
) -> tuple[list[AnySetting], list[str]]:
    """Return the settings of k-same; of a full run a note where the photos do not fit."""
    from dpveil.bench.galleries import METHODS as GALLERIES

    made: list[AnySetting] = []
    notes: list[str] = []
    coded = [name for name in names if GALLERIES[name].coded]
    for option, given, taken in (("k", asked.k, names), ("codec", asked.codec, coded)):
        if given and not taken:
            raise UsageError(f"--{option} is taken by no method here", hint="--method k-same-m")
    for name in names:
        if asked.regions not in (None, "whole"):
            raise UsageError(f"{name} replaces whole photos", hint="leave out --regions")
        try:
            made += [_gallery(asked, name, k, sets) for k in asked.k or USUAL_K]
        except UsageError as error:
            if asked.methods:
                raise
            notes.append(f"{name} is left out: {error}")
    return made, notes


def _gallery(asked: Asked, name: str, k: str, sets: Sequence[Dataset]) -> AnySetting:
    """Return a setting of k-same; raises `UsageError` for photos that do not fit and for missing files."""
    from dpveil.bench.data import split
    from dpveil.bench.galleries import METHODS as GALLERIES
    from dpveil.bench.galleries import GallerySetting

    codec = asked.codec if GALLERIES[name].coded else None
    one = GallerySetting.of(name, number(k), codec=codec, releases=asked.releases)  # type: ignore[arg-type]
    for dataset in sets:
        one.check(split(dataset))
    return one


def _unused(asked: Asked, names: Sequence[str]) -> list[str]:
    """Return notes on budgets that methods do not take; raises `UsageError` if none takes one."""
    from dpveil.bench.galleries import METHODS as GALLERIES

    known = {name: {field.name for field in fields(METHODS[name])} for name in names if name not in GALLERIES}
    notes = []
    for option, given, sign in (("epsilon", asked.budgets, "ε"), ("delta", asked.delta, "δ")):
        without = [name for name in names if option not in known.get(name, ())]
        told = f"{', '.join(without)} {'takes' if len(without) == 1 else 'take'} no {sign}"
        if given and len(without) == len(names):
            raise UsageError(told, hint=f"leave out --{option}")
        if given and without and option == "epsilon":
            notes.append(f"{told}: --epsilon changes nothing there")
    return notes


def attacks(
    names: Sequence[str], *, asked: Asked, chosen: Sequence[AnySetting], split: str
) -> tuple[tuple[Attack, ...], list[str]]:
    """Return the attacks with these names, or the usual ones on the `chosen` settings, and notes on those
    that cannot run; one that was asked for is refused.
    """
    from dpveil.attacks.labels import attack, missing

    made: list[Attack] = []
    notes: list[str] = []
    for name in dict.fromkeys(names or _usual(asked, chosen)):
        one = attack(name)
        if split == "people" and not one.enrols:
            if names:
                raise UsageError(f"the attack {name} cannot enrol new people", hint="--split photos")
            notes.append(f"the attack {name} is left out: it cannot enrol new people")
        elif not (lacking := missing(one)):
            made.append(one)
        elif names:
            raise UsageError(f"the attack {name} needs what is not installed", hint=_install(lacking))
        else:
            notes.append(f"the attack {name} is left out: {_install(lacking)}")
    return tuple(made), notes


def _usual(asked: Asked, chosen: Sequence[AnySetting]) -> tuple[str, ...]:
    from dpveil.bench.galleries import METHODS as GALLERIES

    apart = (*SEVERAL, KNOWING)
    usual = [name for name in ATTACKS if name not in apart] if asked.full else QUICK["attacks"]
    around = asked.regions not in (None, "whole") or any(one.name in FACES.rows for one in chosen)
    several = asked.releases > 1
    shared = any(one.name in GALLERIES for one in chosen)
    mixed = (MIXED,) * (several or shared)
    return (*usual, *(SEVERAL * several), *mixed, *((KNOWING,) * shared), *(AROUND * around))


def _install(extras: Sequence[str]) -> str:
    return f"pip install 'dpveil[{','.join(extras)}]'"
