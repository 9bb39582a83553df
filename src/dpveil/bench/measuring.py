"""Computing cells: release, attack, measure."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dpveil.attacks.base import Attack, Background, Fitted, Scores, View
from dpveil.attacks.measures import (
    Verified,
    equal_error_rate,
    identification_rates,
    open_set,
    verification_rates,
)
from dpveil.bench.bounds import bound, up
from dpveil.bench.cells import DIGITS, PARTS, WHOLE, Cell, depends_on, round_values
from dpveil.bench.data import Dataset, split
from dpveil.bench.items import Item
from dpveil.bench.setting import Setting, Shown
from dpveil.bench.utility import measure_all, usable
from dpveil.core.arrays import Float64
from dpveil.errors import PluginError
from dpveil.noise.bits import SeededBits


def fresh(fitted: Fitted) -> Callable[[], Fitted]:
    """Return what makes copies of an attacker as it is now, however often; it is itself never used.

    What it keeps in modules, classes and the variables of functions is not undone. Raises `PluginError` for
    an attacker that cannot be copied.
    """
    try:
        kept = copy.deepcopy(fitted)
    except Exception as error:
        name = f"{type(fitted).__module__}.{type(fitted).__qualname__}"
        problem = f"the attacker {name} cannot be copied, so that releases cannot be scored apart: {error}"
        raise PluginError(problem, hint="give it __deepcopy__") from error
    return lambda: copy.deepcopy(kept)


NEAR: Final = 5  # rank up to which a person counts as nearly named
FARS: Final = (0.01, 0.001)  # false accept rates
OPEN: Final = 0.1  # the share of strangers' releases that pass in open-set naming


@dataclass(frozen=True, eq=False)
class Released:
    """The releases of a setting: `own` of the attacker's photos, `shown` of others; None for no release."""

    known: tuple[Item, ...]
    probes: tuple[Item, ...]
    clean: tuple[View, ...]
    own: tuple[Shown, ...]
    shown: tuple[Shown, ...]
    strangers: tuple[Shown, ...] = ()
    learnt: frozenset[str] = frozenset()

    def background(self, *, learnt: bool) -> Background | None:
        """Return what the attacker has of those whom it learns from, or of the others; None of nobody."""
        lists = zip(self.clean, self.own, self.known, strict=True)
        there = [(a, b[0], i.person) for a, b, i in lists if b and (i.person in self.learnt) == learnt]
        clean, own, people = zip(*there, strict=True) if there else ((), (), ())
        return Background(clean, own, people, Counter(item.person for item in self.probes)) if there else None


@dataclass(frozen=True)
class Left:
    """What is left of the photos: the names of the `measures`, those of each release, and those of all."""

    measures: tuple[str, ...]
    alone: Mapping[str, tuple[float | None, ...]]
    together: Mapping[str, float | None]


def release_all(dataset: Dataset, setting: Setting, seed: int) -> Released:
    parts, nothing = split(dataset), Setting(None)
    clean = tuple(one[0] for one in nothing.all_shown(parts.known, seed) if one is not None)
    groups = (parts.known, parts.probes, parts.strangers)
    own, shown, strangers = (tuple(setting.all_shown(items, seed)) for items in groups)
    return Released(parts.known, parts.probes, clean, own, shown, strangers, parts.learnt)


def cells(
    dataset: Dataset,
    setting: Setting,
    attacks: Sequence[Attack],
    seed: int,
    measures: Sequence[str] | None = None,
) -> Iterator[Cell]:
    """Yield the cell of each attack on the releases by one setting.

    `measures` are the names of what is measured of the releases, by default all that can be taken here.
    """
    names = usable(dataset.subject) if measures is None else tuple(measures)
    releases = release_all(dataset, setting, seed)
    shown = [None if one is None else one[0].image for one in releases.shown]
    left = Left(names, *measure_all(names, [item.read().image for item in releases.probes], shown))
    for attack in attacks:
        yield cell_of(dataset, setting, attack, releases, left, seed)


def cell_of(
    dataset: Dataset, setting: Setting, attack: Attack, releases: Released, left: Left, seed: int
) -> Cell:
    """Return what one attack makes of releases; those that do not exist count as its failures."""
    people = [item.person for item in releases.probes]
    names, apart = tuple(sorted(set(people))), dict[str, float | None]()
    if releases.learnt:
        scores, apart = attacked_apart(attack, releases, names)
    else:
        background = releases.background(learnt=False)
        fitted = attack.fit(background) if background is not None and len(background.names) > 1 else None
        scores = score_releases(fitted, releases.shown, names, joint=attack.joint, seed=seed)
    verified = [verification_rates(scores, people, far=far) for far in FARS]
    shown = [one for one in releases.shown if one is not None]
    guarantees = [one[1] for one in shown]
    covered = all(_all_hidden(one[0]) for one in shown)
    stated = next((one.to_json() for one in guarantees if one is not None), None)
    least = None
    if setting.method is not None and not attack.joint:
        pixels = max((one[0].hidden.size for one in shown), default=1)
        whole = covered and len({one[0].image.shape for one in shown}) == 1
        least = bound(guarantees, people, pixels=pixels, whole=whole)
    return Cell(
        of=depends_on(dataset, setting, attack, seed, left.measures),
        people=tuple(names.index(person) for person in people),
        right=round_values(identification_rates(scores, people)),
        near=round_values(identification_rates(scores, people, rank=min(NEAR, len(names)))),
        answered=tuple(bool(np.isfinite(row).all()) for row in scores.likeness),
        chance=round(max(Counter(people).values()) / len(people), 9),
        equal_error=round(equal_error_rate(verified[0]), 9),
        accepted_2=_true_accept_rate(verified[0]),
        accepted_3=_true_accept_rate(verified[1]),
        guarantee=stated,
        bound=None if least is None else float(up(min(1.0, least), DIGITS)),
        utility=left.alone,
        together=left.together,
        apart=apart,
        covers=None if stated is None else WHOLE if covered else PARTS,
    )


def attacked_apart(
    attack: Attack, releases: Released, names: tuple[str, ...]
) -> tuple[Scores, dict[str, float | None]]:
    """Return the scores of an attacker who learnt from other people and enrolled these, and what is of this
    split alone: verification of releases against clean photos and against releases, and open-set naming.
    """
    learnt, gallery = releases.background(learnt=True), releases.background(learnt=False)
    enough = all(one is not None and len(one.names) > 1 for one in (learnt, gallery))
    copy = fresh(attack.fit(learnt)) if enough and learnt is not None else None

    def against(own: Background | None, shown: Sequence[Shown]) -> Scores:
        return score_releases(copy().enrol(own) if copy and own else None, shown, names)

    people = [item.person for item in releases.probes]
    found: dict[str, float | None] = {}
    kinds = {
        "original": gallery and replace(gallery, released=gallery.originals),
        "private": gallery and replace(gallery, clean=gallery.released),
    }
    for kind, own in kinds.items():
        verified = [verification_rates(against(own, releases.shown), people, far=far) for far in FARS]
        found[f"{kind}_equal_error"] = round(equal_error_rate(verified[0]), 9)
        found[f"{kind}_tar_far_1e-2"], found[f"{kind}_tar_far_1e-3"] = map(_true_accept_rate, verified)
    scores = against(gallery, (*releases.shown, *releases.strangers))
    owners = [*people, *("" for _ in releases.strangers)]
    enough = OPEN * len(releases.strangers) >= 1
    found["open_set"] = round(open_set(scores, owners, far=OPEN).value, 9) if enough else None
    return Scores(scores.likeness[: len(people)], names), found


def score_releases(
    fitted: Fitted | None,
    shown: Sequence[Shown],
    names: tuple[str, ...],
    *,
    joint: bool = False,
    seed: int = 0,
) -> Scores:
    """Return the scores of releases, each scored alone unless `joint`; NaN where nothing can be said.

    Each is scored by a fresh copy of the attacker, which knows of no other.
    """
    likeness = np.full((len(shown), len(names)), np.nan)
    rows = [row for row, one in enumerate(shown) if one is not None]
    if fitted is not None and rows:
        copy = fresh(fitted)
        for part in _parts(rows, joint=joint, seed=seed):
            found = copy().score([shown[row][0] for row in part])  # type: ignore[index]
            likeness[part] = _likeness_to(found, names)
    return Scores(_finite(likeness), names)


def _parts(rows: Sequence[int], *, joint: bool, seed: int) -> list[list[int]]:
    """Return which releases an attacker sees together: each alone, as the bound is about one release, or all.

    They are shuffled, as they are sorted by person, and their order must tell nothing.
    """
    order = np.argsort(SeededBits(seed, "the order of releases").words(len(rows)), kind="stable")
    shuffled = [rows[place] for place in order]
    return [shuffled] if joint else [[row] for row in shuffled]


def _likeness_to(found: Scores, names: Sequence[str]) -> Float64[np.ndarray, "releases people"]:
    """Return the likeness of releases to each of `names`: -inf for people whom nobody knows."""
    silent = np.isnan(found.likeness).any(axis=1)
    own = dict(zip(found.names, found.likeness.T, strict=True))
    unknown = np.where(silent, np.nan, -np.inf)
    return np.stack([own.get(name, unknown) for name in names], axis=1)


def _finite(likeness: np.ndarray) -> np.ndarray:
    """Return likenesses with the lowest float for people of whom the attacker knows nothing."""
    return np.where(likeness == -np.inf, np.finfo(np.float64).min, likeness)


def _all_hidden(view: View) -> bool:
    """Whether a release shows nothing but what the guarantee covers: all of the photo, by a public choice.

    A region that was found may take all of a photo, too, but its place follows from the pixels.
    """
    regions: Any = (view.certificate or {}).get("regions") or ()
    found = any(one["origin"].get("found") or one["origin"].get("fallback") for one in regions)
    return bool(regions) and not found and bool(view.hidden.all())


def _true_accept_rate(verified: Verified) -> float | None:
    """Return the true accept rate; None where there are too few impostors for its false accept rate."""
    return round(verified.rate, 9) if verified.far * verified.impostors.size >= 1 else None
