"""Croft's comparison of differential privacy and k-same (2022 §6, thesis §6.8), in the space of one codec."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from dpveil.codecs import PCA
from dpveil.errors import DataError
from dpveil.mechanisms.latent import BoxLaplace, CodeSpace, CroftMetric
from dpveil.mechanisms.latent.base import STEPS
from dpveil.metrics.ssim import ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.embedding_attacks import Identified, identify
from dpveil_research.faces import (
    SETS,
    Crops,
    Embed,
    People,
    Say,
    Set,
    card_of,
    embedding,
    public_crops,
    read_people,
    sets_of,
)
from dpveil_research.ksame_methods import Group, KSameFurthest, KSameM, KSamePixel, Shared
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, estimate, to_csv, where
from dpveil_train import train_pca

SEED: Final = 2022
PAPER: Final = CroftMetric.name  # the paper's private mechanism
SAME: Final = KSameM.name
PRIVATE: Final[dict[str, type[CroftMetric] | type[BoxLaplace]]] = {
    kind.name: kind for kind in (CroftMetric, BoxLaplace)
}
"""The private mechanisms that are compared."""


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    Of everybody's `photos` the first is protected, and the attacker holds the others; at most `people` of a
    set are used. `shards` of UTKFace train a codec of `length` coordinates. `draws` releases of every face
    are attacked by likelihood; `splits` divisions of the people into two galleries are tried. `seen` are
    further budgets at which embeddings are compared. `learned` are the budgets of the paper's mechanism at
    which attackers learn from releases of `parrots` photos of everybody, or see two. `subtracted` are sizes
    of groups whose known faces are subtracted; `narrowed` is the size of those whose known people are
    excluded, against mechanisms with the budgets `struck`.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 3
    length: int = 100
    people: int = 100
    photos: int = 6
    parrots: int = 2
    epsilons: tuple[str, ...] = ("10", "20", "30", "50", "100", "200", "300", "500", "1000", "3000")
    seen: tuple[str, ...] = ("30", "100", "300", "1000", "3000", "10000", "30000")
    learned: tuple[str, ...] = ("100", "300", "1000", "3000", "10000")
    groups: tuple[int, ...] = (2, 3, 4, 5, 10, 20, 50)
    subtracted: tuple[int, ...] = (2, 3, 5, 10)
    narrowed: int = 5
    struck: tuple[str, ...] = ("10", "30", "100", "300")
    draws: int = 20
    splits: int = 3


PLAN: Final = Plan()


def private(name: str, epsilon: str) -> CroftMetric | BoxLaplace:
    """Return a mechanism with the box that the training codes span, as published."""
    return PRIVATE[name](epsilon=Fraction(epsilon), clip=0)


VERY: Final = "very photos"
GROUPS: Final = "knows the groups"
OTHER_BEST: Final = "strongest, other photos"
VERY_BEST: Final = f"strongest, {VERY}"
LIKELIHOOD: Final = f"likelihood, {VERY}"


def row(
    dataset: str,
    question: str,
    method: str,
    x: str,
    attack: str,
    found: Identified,
    *,
    releases: int = 1,
    known: int = 0,
    limit: float | None = None,
    ssim: Float64[np.ndarray, " n"] | None = None,
) -> Row:
    """Return the success rate of an attack with its 95 % interval over people, chance, and its limit.

    `known` says how many of the others an attacker can exclude. `limit` is 1/k for k-same, which holds for
    one release only, and the bound of `best_success` otherwise.
    """
    low, high = found.interval()
    return {
        "dataset": dataset,
        "question": question,
        "method": method,
        "x": x,
        "releases": str(releases),
        "known": str(known),
        "attack": attack,
        **estimate("rate", (found.rate, low, high), ".5g"),
        "limit": "" if limit is None else f"{limit:.5g}",
        "chance": f"{found.chance:.5g}",
        "ssim": "" if ssim is None else f"{ssim.mean():.4g}",
        "tries": str(len(found.people)),
        "people": str(len(set(found.people))),
    }


Place = Callable[..., Row]
"""`row` for a setting, as a function of the attack and its result."""


def strongest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the highest rates, as attackers are free to choose.

    One is of those who hold other photos of everybody, one of those who hold the very photos, if any.
    """
    very = [VERY in one["attack"] or one["attack"] == GROUPS for one in rows]
    found = []
    for name, wanted in ((OTHER_BEST, False), (VERY_BEST, True)):
        of_it = [one for one, is_very in zip(rows, very, strict=True) if is_very == wanted]
        if of_it:
            found.append(max(of_it, key=lambda one: float(one["rate"])) | {"attack": name})
    return found


Codes = Float64[np.ndarray, "n m"]


def scaled(codes: Codes, mechanism: CroftMetric | BoxLaplace, space: CodeSpace) -> Codes:
    """Return codes, clipped and rounded as by the mechanism, in units of each coordinate's noise.

    The log-ratio of two faces' laws is at most the sum of their absolute differences, by the proofs of both
    mechanisms; scales are rounded up, so it is no more. As clipping to the box follows the draw, the most
    likely of some faces is the one with the smallest such sum: at an end of the box, too, probability falls
    by e^(-1/scale) per step.
    """
    box = space.bounds(mechanism.clip)
    inside = (np.clip(codes, box.low, box.high) - box.low) / (box.high - box.low)
    budgets = np.full(space.length, float(mechanism.epsilon) / space.length)
    if isinstance(mechanism, BoxLaplace):
        budgets = np.array([float(share * mechanism.epsilon) for share in mechanism.shares(space)])
    return np.asarray(np.rint(inside * STEPS) / STEPS * budgets)


def losses(faces: Codes) -> Float64[np.ndarray, "n n"]:
    """Return the largest log-ratio of the laws of every two faces, given the result of `scaled`."""
    return np.asarray(cdist(faces, faces, "cityblock"))


def best_success(loss: Float64[np.ndarray, "n n"]) -> float:
    """Return an upper bound on the success of naming the right one of n equally likely faces.

    An attacker who names face i on the set G_i of outputs is right with p_i = P_i(G_i), and P_j(G_i) ≥
    e^(-L_ij)·p_i. The G_i are disjoint, so Σ_i e^(-L_ij)·p_i ≤ 1 for every j: the mean of p is at most the
    value of a linear program. The result is the value of its dual at the solver's multipliers, an upper bound
    whatever the solver's tolerance. It holds for any attacker whose other knowledge does not depend on the
    draw; r releases of a face have r times the losses. Raises `DataError`.
    """
    count = len(loss)
    rows = np.exp(-loss)  # row j, column i, and symmetric
    gain, most = np.full(count, -1 / count), np.ones(count)
    result = linprog(gain, A_ub=rows, b_ub=most, bounds=(0, 1), method="highs")
    if result.status != 0:
        raise DataError(f"no bound was found: {result.message}")
    multipliers = np.maximum(-result.ineqlin.marginals, 0)
    slack = np.maximum(1 / count - rows.T @ multipliers, 0)
    return float(min(1.0, multipliers.sum() + slack.sum()))


ONE, TWO, KNOWN = "one release", "two releases", "background"
Likeness = Callable[[Crops], Float64[np.ndarray, "n d"]]


@dataclass(frozen=True, eq=False)
class Scene:
    """A data set under attack: `faces` are protected, the attacker holds other photos of everybody."""

    people: People
    codec: PCA
    embed: Embed
    plan: Plan

    @property
    def faces(self) -> Crops:
        return self.people.photo(0)

    @property
    def names(self) -> tuple[str, ...]:
        return self.people.people

    def place(self, question: str, method: str, x: str, **more: Any) -> Place:
        return partial(row, self.people.name, question, method, x, **more)

    def views(self) -> dict[str, Likeness]:
        """Return the features that attackers compare, by the name of the attack."""
        return {"embedding": self.embed, "eigenfaces": self.weighed}

    def weighed(self, crops: Crops) -> Float64[np.ndarray, "n m"]:
        """Return codes in units of their public range, so that all coordinates have equal weight."""
        codes: Float64[np.ndarray, "n m"] = self.codec.encode(crops) / self.codec.statistics.bounds(5).width
        return codes

    def back(self, crops: Crops) -> Crops:
        """Return crops encoded and decoded without noise."""
        return self.codec.decode(self.codec.encode(crops))

    def drawn(self, name: str, epsilon: str, crops: Crops, stream: str) -> Crops:
        bits = SeededBits(SEED, f"{self.people.name} {name} {epsilon} {stream}")
        codes = private(name, epsilon).release(self.codec.encode(crops), self.codec.statistics, bits=bits)
        return self.codec.decode(codes)

    def by_photos(self, shown: Crops, make: Callable[[int], Crops] | None = None) -> dict[str, Identified]:
        """Return the attacks that hold other photos, or with `make` releases of other photos."""
        attacks, plan = {}, self.plan
        if make is None:
            held = range(1, plan.photos)
            known = np.concatenate([self.people.photo(number) for number in held])
        else:
            held = range(1, 1 + plan.parrots)
            known = np.concatenate([make(number) for number in held])
        for name, view in self.views().items():
            label = name if make is None else f"{name}, parrot"
            attacks[label] = identify(view(known), list(self.names) * len(held), view(shown), self.names)
        return attacks


def one_release(scene: Scene, told: Say) -> Iterator[Row]:
    """Yield a row for every attack on every method, and one for the strongest of each kind."""
    back = scene.back(scene.faces)
    clean = scene.by_photos(scene.faces)
    yield from _rows(scene, scene.place(ONE, "no codec", ""), scene.faces, clean, None)
    learned = scene.by_photos(back, lambda number: scene.back(scene.people.photo(number)))
    alone = scene.by_photos(back) | learned
    yield from _rows(scene, scene.place(ONE, "codec alone", ""), back, alone, None)
    for method in PRIVATE:
        more = scene.plan.seen if method == PAPER else scene.plan.learned
        for epsilon in sorted({*scene.plan.epsilons, *more}, key=float):
            yield from _private(scene, method, epsilon, embedded=epsilon in more)
            told(f"{method} {epsilon}")
    for k in scene.plan.groups:
        for same in (KSamePixel(k), KSameM(k, scene.codec), KSameFurthest(k, scene.codec)):
            if (2 * k if isinstance(same, KSameFurthest) else k) <= len(scene.names):
                yield from _same(scene, same)
        told(f"k = {k}")


def _rows(
    scene: Scene, place: Place, shown: Crops, attacks: dict[str, Identified], limit: float | None
) -> list[Row]:
    pairs = zip(scene.faces, shown, strict=True)
    likeness = np.array([ssim(face, other, data_range=255) for face, other in pairs])
    made = [place(name, found, limit=limit, ssim=likeness) for name, found in attacks.items()]
    return [*made, *strongest(made)]


def _private(scene: Scene, name: str, epsilon: str, *, embedded: bool) -> Iterator[Row]:
    """Yield the attacks on a private mechanism; those with the very photos see the released code itself."""
    shown, attacks = scene.drawn(name, epsilon, scene.faces, "first"), dict[str, Identified]()
    if embedded:
        attacks |= scene.by_photos(shown)
    if name == PAPER and epsilon in scene.plan.learned:
        attacks |= scene.by_photos(
            shown,
            lambda number: scene.drawn(name, epsilon, scene.people.photo(number), f"parrot {number}"),
        )
    attacks[LIKELIHOOD], limit = by_likelihood(scene, name, epsilon, 1)
    yield from _rows(scene, scene.place(ONE, name, epsilon), shown, attacks, limit)
    found, limit = by_likelihood(scene, name, epsilon, 2)
    place = scene.place("two releases", name, epsilon, releases=2)
    yield place(LIKELIHOOD, found, limit=limit)


def by_likelihood(scene: Scene, name: str, epsilon: str, releases: int) -> tuple[Identified, float]:
    """Return the maximum-likelihood attack that knows all faces exactly, and the bound for any attacker."""
    mechanism, space = private(name, epsilon), scene.codec.statistics
    codes = scene.codec.encode(scene.faces)
    faces = scaled(codes, mechanism, space)
    bits = SeededBits(SEED, f"{scene.people.name} {name} {epsilon} likelihood")
    right = np.empty((len(codes), scene.plan.draws))
    for draw in range(scene.plan.draws):
        away = np.zeros((len(codes), len(codes)))
        for _ in range(releases):
            seen = scaled(mechanism.release(codes, space, bits=bits), mechanism, space)
            away += cdist(seen, faces, "cityblock")
        right[:, draw] = away.argmin(axis=1) == np.arange(len(codes))
    names = np.repeat(scene.names, scene.plan.draws).tolist()
    return Identified(right.ravel(), tuple(names), 1 / len(codes)), best_success(releases * losses(faces))


def _same(scene: Scene, method: KSamePixel | KSameM | KSameFurthest) -> list[Row]:
    hidden = method.release(scene.faces)
    attacks = scene.by_photos(hidden.faces)
    attacks |= scene.by_photos(hidden.faces, lambda n: method.release(scene.people.photo(n)).faces)
    for name, view in scene.views().items():
        own, seen = view(scene.faces), view(hidden.faces)
        attacks[f"{name}, {VERY}"] = identify(own, scene.names, seen, scene.names)
    sizes = np.array([len(group.members) for group in hidden.groups])[hidden.group_of]
    attacks[GROUPS] = Identified(1 / sizes, scene.names, 1 / len(scene.names))
    place = scene.place(ONE, method.name, str(method.k))
    return _rows(scene, place, hidden.faces, attacks, 1 / method.k)


Held = Int64[np.ndarray, " people"]
Shares = Float64[np.ndarray, " n"]


def two_releases(scene: Scene, told: Say) -> Iterator[Row]:
    """Yield the attacks after one and after two releases: with known groups, and by embeddings."""
    for k in scene.plan.groups:
        if k <= len(divided(len(scene.names), SeededBits(SEED))[0]):
            yield from _in_galleries(scene, k)
            told(f"two galleries, k = {k}")
    for epsilon in scene.plan.learned:
        yield from _drawn_twice(scene, epsilon)
        told(f"two releases, {epsilon}")


def divided(count: int, bits: SeededBits) -> tuple[Held, Held, Held]:
    """Return the numbers of `count` people in two galleries, and in both: about two fifths, the rest in equal
    parts.
    """
    order = np.argsort(bits.words(count), kind="stable")
    both = len(order) - 2 * (3 * len(order) // 10)
    rest = (len(order) - both) // 2
    shared, one, other = order[:both], order[both : both + rest], order[both + rest :]
    return np.sort(np.append(shared, one)), np.sort(np.append(shared, other)), np.sort(shared)


@dataclass
class Clues:
    """An attacker's state about each face: who is still possible, and the summed distance of everybody."""

    left: Bool[np.ndarray, "faces people"]
    away: Float64[np.ndarray, "faces people"]

    def add(self, left: Bool[np.ndarray, "faces people"], away: Float64[np.ndarray, "faces people"]) -> None:
        self.left, self.away = self.left & left, self.away + away

    def blindly(self) -> Shares:
        """Return the success of a uniform guess among those left, who include the right one."""
        chances: Shares = 1 / self.left.sum(axis=1)
        return chances

    def right(self, own: Held) -> Shares:
        """Return whether the nearest of those left is right; of all, if nobody is left."""
        some = self.left | ~self.left.any(axis=1, keepdims=True)
        named: Shares = (np.where(some, self.away, np.inf).argmin(axis=1) == own).astype(np.float64)
        return named


def _in_galleries(scene: Scene, k: int) -> Iterator[Row]:
    """Yield the attacks on k-same-m in two galleries.

    Attackers know the groups, as in the paper, and guess among those left or take the nearest to other
    photos; or they do not know the groups and take the nearest of all; or they have the very photos of
    everybody, and take the k nearest to a picture as its group.
    """
    method, found = KSameM(k, scene.codec), dict[tuple[str, int], list[Shares]]()
    people: list[str] = []
    for split in range(scene.plan.splits):
        bits = SeededBits(SEED, f"{scene.people.name} split {split}")
        *both, shared = divided(len(scene.names), bits)
        people += [scene.names[number] for number in shared]
        for release, chances in enumerate(_followed(scene, method, both, shared), start=1):
            for attack, values in chances.items():
                found.setdefault((attack, release), []).append(values)
    for (attack, release), shares in found.items():
        place = scene.place(TWO, method.name, str(k), releases=release)
        found_by = Identified(np.concatenate(shares), tuple(people), 1 / len(both[0]))
        yield place(attack, found_by, limit=1 / k)


def _followed(scene: Scene, method: KSameM, both: list[Held], shared: Held) -> Iterator[dict[str, Shares]]:
    """Yield each attack's success on the shared people after one release, and after two."""
    known = scene.embed(np.concatenate([scene.people.photo(n) for n in range(1, scene.plan.photos)]))
    means = known.reshape(scene.plan.photos - 1, len(scene.names), -1).mean(axis=0)
    codes, shape = scene.codec.encode(scene.faces), (len(shared), len(scene.names))
    told, untold, very = (Clues(np.ones(shape, bool), np.zeros(shape)) for _ in range(3))
    for gallery in both:
        hidden = method.release(scene.faces[gallery])
        places, group = np.searchsorted(gallery, shared), hidden.group_of
        together = np.zeros(shape, bool)
        together[:, gallery] = group[places][:, None] == group[None]
        shown = hidden.faces[places]
        away, far = cdist(scene.embed(shown), means), cdist(scene.codec.encode(shown), codes)
        told.add(together, away)
        untold.add(np.ones(shape, bool), away)
        very.add(far <= np.sort(far, axis=1)[:, [method.k - 1]], far)
        yield {
            GROUPS: told.blindly(),
            f"{GROUPS}, embedding": told.right(shared),
            "embedding": untold.right(shared),
            f"nearest k, {VERY}": very.right(shared),
        }


def _drawn_twice(scene: Scene, epsilon: str) -> Iterator[Row]:
    """Yield an attack with other photos that averages the embeddings of two releases."""
    known = np.concatenate([scene.people.photo(n) for n in range(1, scene.plan.photos)])
    names = list(scene.names) * (scene.plan.photos - 1)
    both = [scene.embed(scene.drawn(PAPER, epsilon, scene.faces, which)) for which in ("first", "second")]
    for releases in (1, 2):
        seen: Float64[np.ndarray, "n 128"] = np.mean(both[:releases], axis=0)
        place = scene.place(TWO, PAPER, epsilon, releases=releases)
        yield place("embedding", identify(scene.embed(known), names, seen, scene.names))


Numbers = Float64[np.ndarray, "..."]


def background(scene: Scene, told: Say) -> Iterator[Row]:
    """Yield the attacks that subtract the known faces of a group, and those that exclude known people."""
    for k in scene.plan.subtracted:
        if k <= len(scene.names):
            yield from _subtract(scene, k)
            told(f"subtracting, k = {k}")
    if scene.plan.narrowed <= len(scene.names):
        yield from _strike_off(scene)


def _subtract(scene: Scene, k: int) -> Iterator[Row]:
    """Yield the attack that knows all faces of a group but one, and other photos of everybody.

    On pixels, the size of the group times its picture, minus the known faces, is the remaining face up to
    rounding. With a codec the same holds for codes, up to what a picture loses of its code.
    """
    codec, pixels, model = scene.codec, KSamePixel(k), KSameM(k, scene.codec)
    hidden = pixels.release(scene.faces)
    left = _less_the_others(hidden.faces.astype(float), scene.faces.astype(float), hidden)
    levels = np.clip(np.rint(left), 0, 255).astype(np.uint8)
    yield from _named(scene, scene.place(KNOWN, pixels.name, str(k), known=k - 1), levels, k)
    hidden = model.release(scene.faces)
    codes = _less_the_others(codec.encode(hidden.faces), codec.encode(scene.faces), hidden)
    yield from _named(scene, scene.place(KNOWN, SAME, str(k), known=k - 1), codec.decode(codes), k)


def _less_the_others(shown: Numbers, faces: Numbers, hidden: Shared) -> Numbers:
    """Return for every face its group's size times the released mean, minus the group's other faces."""
    sums: Numbers = np.empty_like(faces)
    sizes = np.empty(len(faces))
    for group in hidden.groups:
        sums[group.members], sizes[group.members] = faces[group.members].sum(axis=0), len(group.members)
    wide = sizes.reshape((-1,) + (1,) * (faces.ndim - 1))
    found: Numbers = np.subtract(wide * shown, sums - faces)
    return found


def _named(scene: Scene, place: Place, shown: Crops, k: int) -> Iterator[Row]:
    for name, found in scene.by_photos(shown).items():
        yield place(f"{name}, subtracting", found, limit=1 / k)


def _strike_off(scene: Scene) -> Iterator[Row]:
    """Yield the success of guessing among the people of a group, without those known to be elsewhere.

    The same groups of similar faces are the candidates for k-same and for the private mechanisms, whose
    attacker has their very photos and names the most likely.
    """
    k, codes = scene.plan.narrowed, scene.codec.encode(scene.faces)
    groups = KSameM(k, scene.codec).release(scene.faces).groups
    people = [scene.names[number] for group in groups for number in group.members]
    for known in range(k - 1):
        place = scene.place(KNOWN, SAME, str(k), known=known)
        even = np.full(len(people), 1 / (k - known))
        yield place("striking off", Identified(even, tuple(people), 1 / (k - known)), limit=1 / k)
        for name in PRIVATE:
            for epsilon in scene.plan.struck:
                yield _likeliest(scene, name, epsilon, codes, groups, known)


def _likeliest(
    scene: Scene, name: str, epsilon: str, codes: np.ndarray, groups: list[Group], known: int
) -> Row:
    """Return the maximum-likelihood attack on every face of every group, with `known` others excluded."""
    mechanism, draws, space = private(name, epsilon), scene.plan.draws, scene.codec.statistics
    bits = SeededBits(SEED, f"{scene.people.name} {name} {epsilon} {known} struck off")
    faces, right, limits, people = scaled(codes, mechanism, space), [], [], []
    released = [scaled(mechanism.release(codes, space, bits=bits), mechanism, space) for _ in range(draws)]
    for group in groups:
        for place in range(len(group.members)):
            left = np.roll(group.members, -place)[: scene.plan.narrowed - known]
            limits.append(best_success(losses(faces[left])))
            for own, number in enumerate(left):  # the bound holds for each of those left
                seen = np.stack([one[number] for one in released])
                right.append(cdist(seen, faces[left], "cityblock").argmin(axis=1) == own)
                people.append(scene.names[number])
    rights = np.concatenate(right).astype(float)
    names = tuple(np.repeat(people, draws).tolist())
    found = Identified(rights, names, 1 / (scene.plan.narrowed - known))
    return scene.place(KNOWN, name, epsilon, known=known)(
        f"striking off, {LIKELIHOOD}", found, limit=float(np.mean(limits))
    )


def _figures(found: Sequence[Row]) -> dict[str, bytes]:
    made = {}
    for name in dict.fromkeys(row["dataset"] for row in found):
        rows = where(found, dataset=name)
        people = f"{name}, {max(int(row['people']) for row in rows)} people"
        for question, words, panels in (
            ("one-release", "One release: who is named rightly", _plot_one),
            ("two-releases", "Two releases of one photo: who is named rightly", _plot_two),
            ("background", "Background knowledge: who is named rightly", _plot_background),
            ("trade-off", "What is kept and who is named", _plot_trade_off),
        ):
            title = f"{words}\n{people}; 95 % intervals over people"
            made[f"{question}-{name.lower().replace('&', '')}.png"] = figure(title, *panels(rows))
    return made


EPSILON: Final = "ε of the metric promise"
NOBODY: Final = "what nobody exceeds"


def _levels(panel: Panel, rows: Sequence[Row]) -> Panel:
    for method, style in (("no codec", "-."), ("codec alone", "--")):
        panel.level(f"{method}, strongest", rows, style, method=method, attack=OTHER_BEST)
    return panel.level("chance", float(rows[0]["chance"]))


def _plot_one(rows: Sequence[Row]) -> list[Panel]:
    here, panels = where(rows, question=ONE, releases="1"), []
    near = ("embedding", "eigenfaces", "embedding, parrot", "eigenfaces, parrot")
    for method, x, last, bound in ((PAPER, EPSILON, LIKELIHOOD, NOBODY), (SAME, "k", GROUPS, "1/k")):
        panels.append(Panel("rate", x, method, logx=True))
        for attack in (*near, last):
            panels[-1].curve(attack, here, method=method, attack=attack)
        panels[-1].curve(bound, here, 5, "--", y="limit", method=method, attack=last)
        _levels(panels[-1], rows)
    return panels


def _plot_two(rows: Sequence[Row]) -> list[Panel]:
    private, same = Panel("rate", EPSILON, PAPER, logx=True), Panel("rate", "k", SAME, logx=True)
    for style, releases in (("-", "1"), ("--", "2")):
        here = {"method": PAPER, "releases": releases}
        likely = here | {"attack": LIKELIHOOD, "question": ONE if releases == "1" else TWO}
        private.curve(f"{LIKELIHOOD}, {releases}", rows, 0, style, **likely)
        private.curve(f"{NOBODY}, {releases}", rows, 5, style, y="limit", **likely)
        private.curve(f"embedding, {releases}", rows, 1, style, attack="embedding", question=TWO, **here)
        here = {"method": SAME, "releases": releases, "question": TWO}
        for colour, attack in enumerate((GROUPS, f"{GROUPS}, embedding", "embedding", f"nearest k, {VERY}")):
            same.curve(f"{attack}, {releases}", rows, colour, style, attack=attack, **here)
    here = {"method": SAME, "releases": "1", "attack": GROUPS, "question": TWO}
    return [private, same.curve("1/k", rows, 5, ":", y="limit", **here)]


def _plot_background(rows: Sequence[Row]) -> list[Panel]:
    asked, pixel = where(rows, question=KNOWN), KSamePixel.name
    less = Panel("rate", "k", "the other faces of the group are known", logx=True)
    for colour, method in enumerate((pixel, SAME)):
        for style, view in (("-", "embedding"), ("--", "eigenfaces")):
            wanted = {"method": method, "attack": f"{view}, subtracting"}
            less.curve(f"{method}, {view}", asked, colour, style, **wanted)
    less.curve("1/k", asked, 5, ":", y="limit", method=pixel, attack="embedding, subtracting")
    off = Panel("rate", "struck off, of 5 like people", "some are known to be elsewhere")
    off.curve(SAME, asked, 5, x="known", method=SAME, attack="striking off")
    struck = where(asked, method=PAPER, attack=f"striking off, {LIKELIHOOD}")
    for colour, epsilon in enumerate(dict.fromkeys(row["x"] for row in struck)):
        own = where(struck, x=epsilon)
        off.curve(f"{PAPER}, ε = {epsilon}", own, colour, x="known", method=PAPER)
    return [_levels(less, rows), off]


def _plot_trade_off(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for attack in (OTHER_BEST, VERY_BEST):
        here = [row for row in where(rows, attack=attack) if row["x"]]
        title = f"{attack}; ε or k beside"
        panels.append(Panel("ssim", "share that is named rightly", title, beside=True))
        for method in dict.fromkeys(row["method"] for row in here):
            panels[-1].curve(method, here, x="rate", method=method)
    return panels


def make(
    data: Path,
    count: int | None = None,
    told: Say = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv and a plot for each question, by name; at most `count` people of each set.

    `own` is a data set in place of LFW and AT&T. Uses UTKFace for training, LFW and AT&T for attacks. Raises
    `UsageError` if one is missing.
    """
    most = min(count or plan.people, plan.people)
    people = [read_people(one, data, plan.photos, most) for one in sets_of(plan.sets, own)]
    told("faces are aligned")
    faces, source = public_crops(data, plan.shards)
    codec = train_pca(source, card=card_of("pca", faces, SEED), seed=SEED, length=plan.length)
    embed, found = embedding(), list[Row]()
    told("eigenfaces are trained")
    for those in people:
        scene = Scene(those, codec, embed, plan)
        tell = lambda what, name=those.name: told(f"{name}: {what}")  # noqa: E731
        found += chain(one_release(scene, tell), two_releases(scene, tell), background(scene, tell))
    return {"results.csv": to_csv(found)} | _figures(found)
