"""Croft's comparison of differential privacy and k-same (2022 §6, thesis §6.8), in eigenfaces.

Here are the attacks of which something can be proven: an attacker who has the very photos of everybody, the
most that any attacker reaches, two releases of one photo, and background knowledge. Parrots, gender and
releases of one deep generator are in `croft_2022_faces` and `croft_thesis_6`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from dpveil.codecs import PCA
from dpveil.errors import DataError
from dpveil.mechanisms.latent import CodeSpace, CroftMetric
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
from dpveil_research.ksame_methods import KSameM, KSamePixel, Shared
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, estimate, to_csv, where
from dpveil_train import train_pca

SEED: Final = 2022
PRIVATE: Final = CroftMetric.name
SAME: Final = KSameM.name
OTHER: Final = "other photos"
"""The attacker has other photos of everybody, and compares dlib's embeddings."""
LIKELIHOOD: Final = "very photos"
"""The attacker has the very photos of everybody, and names the likeliest given the released code."""
GROUPS: Final = "knows the groups"
SUBTRACTED: Final = "knows the other faces"
"""The attacker has all faces of a group but one, and other photos of everybody."""
Codes = Float64[np.ndarray, "n m"]
Held = Int64[np.ndarray, " people"]


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    Of everybody's `photos` the first is protected, and the attacker holds the others; at most `people` of a
    set are used. `shards` of UTKFace train a codec of `length` coordinates. `draws` releases of every face
    are attacked by likelihood; `splits` divisions of the people into two galleries are tried.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 3
    length: int = 100
    people: int = 100
    photos: int = 6
    epsilons: tuple[str, ...] = ("10", "30", "50", "100", "200", "300", "500", "1000", "3000", "10000")
    groups: tuple[int, ...] = (2, 3, 4, 5, 10, 20, 50)
    draws: int = 20
    splits: int = 3


PLAN: Final = Plan()


def private(epsilon: str) -> CroftMetric:
    """Return the paper's mechanism with the box that the training codes span, as published."""
    return CroftMetric(epsilon=Fraction(epsilon), clip=0)


def scaled(codes: Codes, mechanism: CroftMetric, space: CodeSpace) -> Codes:
    """Return codes, clipped and rounded as by the mechanism, in units of each coordinate's noise.

    The log-ratio of two faces' laws is at most the sum of their absolute differences, by theorem 1; scales
    are rounded up, so it is no more. As clipping to the box follows the draw, the most likely of some faces
    is that with the smallest such sum: at an end of the box, too, probability falls by e^(-1/scale) per step.
    """
    box = space.bounds(mechanism.clip)
    inside = (np.clip(codes, box.low, box.high) - box.low) / (box.high - box.low)
    return np.asarray(np.rint(inside * STEPS) / STEPS * float(mechanism.epsilon) / space.length)


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


def divided(count: int, bits: SeededBits) -> tuple[Held, Held, Held]:
    """Return the numbers of `count` people in two galleries, and in both: about two fifths, the rest in equal
    parts.
    """
    order = np.argsort(bits.words(count), kind="stable")
    both = len(order) - 2 * (3 * len(order) // 10)
    rest = (len(order) - both) // 2
    shared, one, other = order[:both], order[both : both + rest], order[both + rest :]
    return np.sort(np.append(shared, one)), np.sort(np.append(shared, other)), np.sort(shared)


def companions(hidden: Shared, gallery: Held, some: Held, count: int) -> Bool[np.ndarray, "some people"]:
    """Return who of `count` people is in the group of each of `some` people of a gallery."""
    found, group = np.zeros((len(some), count), np.bool_), hidden.group_of
    found[:, gallery] = group[np.searchsorted(gallery, some)][:, None] == group
    return found


def subtract_others(hidden: Shared, faces: Crops) -> Crops:
    """Return the size of each face's group times its picture, minus the group's other faces: what is left is
    the face itself, up to rounding.
    """
    left = np.empty(faces.shape)
    for members in hidden.groups:
        own = faces[members].astype(np.float64)
        left[members] = len(members) * hidden.faces[members].astype(np.float64) - own.sum(axis=0) + own
    return np.clip(np.rint(left), 0, 255).astype(np.uint8)


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

    def rows(self, told: Say) -> Iterator[Row]:
        """Yield every attack on the photos, their decodings, and both methods at every setting."""
        back = self.codec.decode(self.codec.encode(self.faces))
        for method, shown in (("no codec", self.faces), ("codec alone", back)):
            yield self.row(method, "", OTHER, self.by_photos(shown), shown=shown)
        for epsilon in self.plan.epsilons:
            yield from self._private(epsilon)
            told(f"{PRIVATE} {epsilon}")
        for k in (k for k in self.plan.groups if k <= len(self.names)):
            yield from self._same(k)
            told(f"k = {k}")

    def row(
        self,
        method: str,
        x: str,
        attack: str,
        found: Identified,
        *,
        releases: int = 1,
        limit: float | None = None,
        shown: Crops | None = None,
    ) -> Row:
        """Return the success rate of an attack with its 95 % interval over people, chance, and its limit.

        `limit` is 1/k for k-same, which holds for one release only, and else that of `best_success`.
        """
        low, high = found.interval()
        pairs = zip(self.faces, () if shown is None else shown, strict=shown is not None)
        likeness = [ssim(face, other, data_range=255) for face, other in pairs]
        return {
            "dataset": self.people.name,
            "method": method,
            "x": x,
            "releases": str(releases),
            "attack": attack,
            **estimate("rate", (found.rate, low, high), ".5g"),
            "limit": "" if limit is None else f"{limit:.5g}",
            "chance": f"{found.chance:.5g}",
            "ssim": f"{np.mean(likeness):.4g}" if likeness else "",
            "tries": str(len(found.people)),
            "people": str(len(set(found.people))),
        }

    def by_photos(self, shown: Crops) -> Identified:
        held = range(1, self.plan.photos)
        known = self.embed(np.concatenate([self.people.photo(number) for number in held]))
        return identify(known, list(self.names) * len(held), self.embed(shown), self.names)

    def by_likelihood(self, epsilon: str, releases: int) -> tuple[Identified, float]:
        """Return the maximum-likelihood attack that knows all faces exactly, and the bound for any
        attacker.
        """
        mechanism, space = private(epsilon), self.codec.statistics
        codes = self.codec.encode(self.faces)
        faces = scaled(codes, mechanism, space)
        bits = SeededBits(SEED, f"{self.people.name} {PRIVATE} {epsilon} likelihood")
        right = np.empty((len(codes), self.plan.draws))
        for draw in range(self.plan.draws):
            away = np.zeros((len(codes), len(codes)))
            for _ in range(releases):
                seen = scaled(mechanism.release(codes, space, bits=bits), mechanism, space)
                away += cdist(seen, faces, "cityblock")
            right[:, draw] = away.argmin(axis=1) == np.arange(len(codes))
        names = np.repeat(self.names, self.plan.draws).tolist()
        return Identified(right.ravel(), tuple(names), 1 / len(codes)), best_success(releases * losses(faces))

    def in_galleries(self, k: int) -> Iterator[Identified]:
        """Yield who is named after one and after two galleries' releases by who knows their groups, and
        guesses among those left.
        """
        shares: tuple[list[np.ndarray], ...] = ([], [])
        people: list[str] = []
        for split in range(self.plan.splits):
            bits = SeededBits(SEED, f"{self.people.name} split {split}")
            *both, shared = divided(len(self.names), bits)
            people += [self.names[number] for number in shared]
            left = np.ones((len(shared), len(self.names)), np.bool_)
            for found, gallery in zip(shares, both, strict=True):
                hidden = KSameM(k, self.codec).release(self.faces[gallery])
                left &= companions(hidden, gallery, shared, len(self.names))
                found.append(1 / left.sum(axis=1))
        for found in shares:
            yield Identified(np.concatenate(found), tuple(people), 1 / len(both[0]))

    def _private(self, epsilon: str) -> Iterator[Row]:
        bits = SeededBits(SEED, f"{self.people.name} {PRIVATE} {epsilon} first")
        codes = private(epsilon).release(self.codec.encode(self.faces), self.codec.statistics, bits=bits)
        shown = self.codec.decode(codes)
        yield self.row(PRIVATE, epsilon, OTHER, self.by_photos(shown), shown=shown)
        for releases in (1, 2):
            found, limit = self.by_likelihood(epsilon, releases)
            yield self.row(PRIVATE, epsilon, LIKELIHOOD, found, releases=releases, limit=limit)

    def _same(self, k: int) -> Iterator[Row]:
        pixels = KSamePixel(k).release(self.faces)
        for method, hidden in (
            (KSamePixel.name, pixels),
            (SAME, KSameM(k, self.codec).release(self.faces)),
        ):
            found = self.by_photos(hidden.faces)
            yield self.row(method, str(k), OTHER, found, limit=1 / k, shown=hidden.faces)
        found = self.by_photos(subtract_others(pixels, self.faces))
        yield self.row(KSamePixel.name, str(k), SUBTRACTED, found, limit=1 / k)
        if k <= len(divided(len(self.names), SeededBits(SEED))[0]):
            for releases, found in enumerate(self.in_galleries(k), 1):
                yield self.row(SAME, str(k), GROUPS, found, releases=releases, limit=1 / k)


def plot(rows: Sequence[Row]) -> bytes:
    """Return who is named by ε and by k, and what is kept, of one data set, as PNG."""
    private_, same = (
        Panel("rate", "ε of the metric promise", PRIVATE, logx=True),
        Panel("rate", "k", "k-same"),
    )
    for style, releases in (("-", "1"), ("--", "2")):
        likely = {"method": PRIVATE, "attack": LIKELIHOOD, "releases": releases}
        private_.curve(f"{LIKELIHOOD}, {releases}", rows, 0, style, **likely)
        private_.curve(f"what nobody exceeds, {releases}", rows, 5, style, y="limit", **likely)
        same.curve(f"{GROUPS}, {releases}", rows, 0, style, attack=GROUPS, releases=releases)
    private_.curve(OTHER, rows, 1, method=PRIVATE, attack=OTHER)
    same.curve(f"{SAME}, {OTHER}", rows, 1, method=SAME, attack=OTHER)
    same.curve(f"{KSamePixel.name}, {SUBTRACTED}", rows, 2, attack=SUBTRACTED)
    same.curve("1/k", rows, 5, ":", y="limit", method=SAME, attack=OTHER)
    for panel in (private_, same):
        for method, style in (("no codec", "-."), ("codec alone", "--")):
            panel.level(f"{method}, {OTHER}", rows, style, method=method, attack=OTHER)
        panel.level("chance", float(rows[0]["chance"]))
    kept = Panel("ssim", f"share that is named by {OTHER}", "ε or k beside", beside=True)
    for method in (PRIVATE, SAME, KSamePixel.name):
        kept.curve(method, rows, x="rate", method=method, attack=OTHER)
    people = f"{rows[0]['dataset']}, {rows[0]['people']} people"
    return figure(
        f"Who is named, and what is kept\n{people}; 95 % intervals over people", private_, same, kept
    )


def make(
    data: Path,
    count: int | None = None,
    told: Say = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv and a plot of each data set, by name; at most `count` people of each set.

    `own` is a data set in place of LFW and AT&T. Uses UTKFace for training, LFW and AT&T for attacks. Raises
    `UsageError` if one is missing.
    """
    most = min(count or plan.people, plan.people)
    people = [read_people(one, data, plan.photos, most) for one in sets_of(plan.sets, own)]
    told("faces are aligned")
    faces, source = public_crops(data, plan.shards)
    codec = train_pca(source, card=card_of("pca", faces, SEED), seed=SEED, length=plan.length)
    told("eigenfaces are trained")
    embed, found = embedding(), list[Row]()
    for those in people:
        told(those.name)
        found += Scene(those, codec, embed, plan).rows(told)
    return {"results.csv": to_csv(found)} | {
        f"{one.name.lower().replace('&', '')}.png": plot(where(found, dataset=one.name)) for one in people
    }
