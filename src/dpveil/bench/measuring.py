"""Computing cells: release, attack, measure."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpveil.attacks.base import Attack, Background, Fitted, Scores, View
from dpveil.attacks.measures import Verified, identification_rates, verification_rates
from dpveil.bench.bounds import bound, up
from dpveil.bench.cells import DIGITS, PARTS, WHOLE, Cell, depends_on, round_values
from dpveil.bench.data import Dataset, split
from dpveil.bench.items import Item
from dpveil.bench.setting import Setting, Shown
from dpveil.bench.utility import measure_all, usable
from dpveil.core.array_types import Float64
from dpveil.errors import PluginError


def attacker_copier(fitted: Fitted) -> Callable[[], Fitted]:
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


Measured = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, eq=False)
class Released:
    """The releases of a setting: `own` of the attacker's photos, `shown` of others; None for no release."""

    known: tuple[Item, ...]
    probes: tuple[Item, ...]
    clean: tuple[View, ...]
    own: tuple[Shown, ...]
    shown: tuple[Shown, ...]

    def background(self) -> Background:
        """Return what the attacker has: photos of which there is a release."""
        lists = zip(self.clean, self.own, self.known, strict=True)
        there = [(clean, own[0], item.person) for clean, own, item in lists if own]
        return Background(*zip(*there, strict=True)) if there else Background((), (), ())


def release_all(dataset: Dataset, setting: Setting, seed: int) -> Released:
    parts, nothing = split(dataset), Setting(None)
    clean = tuple(one[0] for one in nothing.all_shown(parts.known, seed) if one is not None)
    own, shown = (tuple(setting.all_shown(items, seed)) for items in (parts.known, parts.probes))
    return Released(parts.known, parts.probes, clean, own, shown)


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
    names = usable() if measures is None else tuple(measures)
    releases = release_all(dataset, setting, seed)
    shown = [None if one is None else one[0].image for one in releases.shown]
    left = measure_all(names, [item.read().image for item in releases.probes], shown)
    for attack in attacks:
        yield cell_of(dataset, setting, attack, releases, left, seed)


def cell_of(
    dataset: Dataset, setting: Setting, attack: Attack, releases: Released, left: Measured, seed: int
) -> Cell:
    """Return what one attack makes of releases; those that do not exist count as its failures.

    `left` has each measure of each release.
    """
    people = [item.person for item in releases.probes]
    names, background = tuple(sorted(set(people))), releases.background()
    fitted = attack.fit(background) if len(background.names) > 1 else None
    scores = score_releases(fitted, releases.shown, names)
    verified = [verification_rates(scores, people, far=far) for far in FARS]
    shown = [one for one in releases.shown if one is not None]
    guarantees = [one[1] for one in shown]
    covered = all(_all_hidden(one[0]) for one in shown)
    stated = next((one.to_json() for one in guarantees if one is not None), None)
    least = None
    if setting.method is not None:
        pixels = max((one[0].hidden.size for one in shown), default=1)
        whole = covered and len({one[0].image.shape for one in shown}) == 1
        least = bound(guarantees, people, pixels=pixels, whole=whole)
    return Cell(
        of=depends_on(dataset, setting, attack, seed, tuple(left)),
        people=tuple(names.index(person) for person in people),
        right=round_values(identification_rates(scores, people)),
        near=round_values(identification_rates(scores, people, rank=min(NEAR, len(names)))),
        answered=tuple(bool(np.isfinite(row).all()) for row in scores.likeness),
        chance=round(max(Counter(people).values()) / len(people), 9),
        equal_error=round(verified[0].equal_error, 9),
        accepted_2=_true_accept_rate(verified[0]),
        accepted_3=_true_accept_rate(verified[1]),
        guarantee=stated,
        bound=None if least is None else float(up(min(1.0, least), DIGITS)),
        utility=left,
        covers=None if stated is None else WHOLE if covered else PARTS,
    )


def score_releases(fitted: Fitted | None, shown: Sequence[Shown], names: tuple[str, ...]) -> Scores:
    """Return the scores of releases; NaN where nothing can be said.

    Each is scored alone, as bounds are about one release, by a copy of the attacker that knows of no other.
    """
    likeness = np.full((len(shown), len(names)), np.nan)
    copy = None if fitted is None else attacker_copier(fitted)
    for row, one in enumerate(shown):
        if copy is not None and one is not None:
            likeness[row] = _likeness_to(copy().score([one[0]]), names)[0]
    # the lowest float for people of whom the attacker knows nothing
    return Scores(np.where(likeness == -np.inf, np.finfo(np.float64).min, likeness), names)


def _likeness_to(found: Scores, names: Sequence[str]) -> Float64[np.ndarray, "releases people"]:
    """Return the likeness of releases to each of `names`: -inf for people whom nobody knows."""
    silent = np.isnan(found.likeness).any(axis=1)
    own = dict(zip(found.names, found.likeness.T, strict=True))
    unknown = np.where(silent, np.nan, -np.inf)
    return np.stack([own.get(name, unknown) for name in names], axis=1)


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
