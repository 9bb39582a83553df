"""Croft et al. 2022, figures 5, 7, 10 and 11: recognition and gender in releases of one generator.

Thresholds of the claims were chosen before any curve was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial.distance import cdist

from dpveil.assets.trained_files import default_path
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import AttributeModel
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_thesis_6 import FEMALE, Rows, Scene, Shares, read_scene
from dpveil_research.croft_thesis_6 import PLAN as SCENE
from dpveil_research.embedding_attacks import parrot
from dpveil_research.faces import Crops, Embed, Say, embedding, large
from dpveil_research.ksame import companions, divided
from dpveil_research.ksame_methods import KSameM, average_codes
from dpveil_research.plots import Panel, figure
from dpveil_research.results import (
    LEVEL,
    Row,
    clustered_mean,
    clustered_share,
    columns,
    estimate,
    to_csv,
    where,
)

SEED: Final = 2022
PRIVATE: Final = CroftMetric.name
SAME: Final = KSameM.name
BASIC: Final = "basic"
TOLD: Final = "gender told"
MODELS: Final = (BASIC, TOLD)
"""The paper's two generators: without an input for gender, and with one, which stays public."""
MARGIN: Final = 0.05
"""Differences up to 5 points are "minor" or "marginal", and larger ones "large": three of 60 people, the
least that one photo of everybody can tell from chance.
"""
REVERSAL: Final = 300
"""The ε at which the paper sees parrots fall behind (§6.4), and below which gaps are marginal (§6.5)."""


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    At most `people` of a set. Of everybody's photos the attacker has the first `known`; the next one is
    protected, at these `epsilons`, in `pairs` pairs of releases, and in `groups` of these sizes. In `splits`
    divisions, two galleries share two fifths of the people.
    """

    people: int = 60
    known: int = 4
    epsilons: tuple[int, ...] = (100, 200, 300, 1000, 10000)
    groups: tuple[int, ...] = (2, 3, 5, 10, 20)
    pairs: int = 1
    splits: int = 3


PLAN: Final = Plan()


MEASURES: Final = ("named", "parrot", "one", "two", "gender")
"""Named by an attacker who has other photos; by one who learned from releases of them; in one release and in
two of one photo; and the share whose gender is read as in the originals.

For k-same, `one` and `two` are of the people in both galleries, and that attacker knows the groups.
"""
Away = Float64[np.ndarray, "n people"]


@dataclass(frozen=True, eq=False)
class Point:
    """The measures of a method at a setting, for each person; nan for people who are not in it."""

    method: str
    model: str
    x: str
    by_person: dict[str, Shares]


@dataclass(frozen=True, eq=False)
class Attacked:
    """One photo of everybody in `scene`, released by both methods and attacked."""

    scene: Scene
    plan: Plan
    embed: Embed = field(default_factory=embedding)
    reader: AttributeModel = field(default_factory=lambda: AttributeModel.load(default_path("attributes")))

    def points(self) -> Iterator[Point]:
        """Yield the photos as they are, decoded ones, and both methods at every setting."""
        faces = self.scene.faces[self.probes]
        yield Point("none", "", "", self._plain(faces[None]))
        for model in MODELS:
            decoded = self.scene.decoded(self.probes, self.scene.codes[self.probes], model == TOLD)
            yield Point("codec alone", model, "", self._plain(decoded[None]))
        for epsilon in self.plan.epsilons:
            for model in MODELS:
                yield self._private(model, epsilon)
        for k in self.plan.groups:
            for model in MODELS:
                yield self._same(model, k)

    @cached_property
    def probes(self) -> Rows:
        """The rows of the protected photos, one of each person."""
        return np.flatnonzero(self.scene.number == self.plan.known)

    @cached_property
    def known(self) -> Rows:
        return np.flatnonzero(self.scene.number < self.plan.known)

    @cached_property
    def names(self) -> Rows:
        own: Int64[np.ndarray, " n"] = np.unique(self.scene.people, return_inverse=True)[1].astype(np.int64)
        return own

    @cached_property
    def means(self) -> Float64[np.ndarray, "people 128"]:
        """The mean embedding of each person's photos that the attacker has."""
        seen, names = self.embed(large(self.scene.faces[self.known])), self.names[self.known]
        return np.stack([seen[names == person].mean(axis=0) for person in range(len(self.probes))])

    def away(self, faces: Crops) -> Away:
        found: Away = cdist(self.embed(large(faces)), self.means)
        return found

    def _plain(self, shown: np.ndarray) -> dict[str, Shares]:
        own = self.names[self.probes]
        named = np.mean([self.away(faces).argmin(axis=1) == own for faces in shown], axis=0)
        read = [self.reader.read(large(faces))["gender"] == FEMALE for faces in shown]
        gender = np.mean(np.array(read) == self.scene.female[self.probes], axis=0)
        return {"named": named, "gender": gender}

    def drawn(self, model: str, epsilon: int, rows: Rows, stream: str) -> Crops:
        mechanism = CroftMetric(epsilon=Fraction(epsilon), clip=0)
        bits = SeededBits(SEED, f"{model} {epsilon} {stream}")
        codes = mechanism.release(self.scene.codes[rows], self.scene.codec.statistics, bits=bits)
        return self.scene.decoded(rows, codes, model == TOLD)

    def _private(self, model: str, epsilon: int) -> Point:
        count = 2 * self.plan.pairs if model == BASIC else self.plan.pairs
        shown = np.stack([self.drawn(model, epsilon, self.probes, f"probe {i}") for i in range(count)])
        found = self._plain(shown)
        if model == BASIC:
            own = self.names[self.probes]
            away = np.stack([self.away(faces) for faces in shown])
            both = away[: self.plan.pairs] + away[self.plan.pairs :]
            found["one"] = found["named"]
            found["two"] = (both.argmin(axis=2) == own).mean(axis=0)
            found["parrot"] = self.parrot(self.drawn(model, epsilon, self.known, "parrot"), shown)
        return Point(PRIVATE, model, str(epsilon), found)

    def parrot(self, learned: Crops, shown: np.ndarray) -> Shares:
        """Return who is named by a discriminant of embeddings that learned from releases."""
        names = [str(one) for one in self.names]
        told = [names[row] for row in self.known]
        right = np.tile([names[row] for row in self.probes], len(shown)).tolist()
        probes = self.embed(large(shown.reshape(-1, *shown.shape[2:])))
        found = parrot(self.embed(large(learned)), told, probes, right)
        shares: Shares = np.asarray(found.right, np.float64).reshape(len(shown), -1).mean(axis=0)
        return shares

    def _same(self, model: str, k: int) -> Point:
        shown = np.empty((len(self.probes), *self.scene.faces.shape[1:]), np.uint8)
        for decode, places in self.scene.by_gender(self.probes, model == TOLD):
            shown[places] = average_codes(self.scene.codes[self.probes[places]], k, decode).faces
        found = self._plain(shown[None])
        return Point(SAME, model, str(k), found | (self._composed(k) if model == BASIC else {}))

    def _composed(self, k: int) -> dict[str, Shares]:
        """Return who is named in one and in two galleries' releases by an attacker who knows the groups."""
        count = len(self.probes)
        right: dict[str, Shares] = {name: np.zeros(count) for name in ("one", "two")}
        times = np.zeros(count)
        for split in range(self.plan.splits):
            *both, shared = divided(count, SeededBits(SEED, f"split {split}"))
            left, away = np.ones((len(shared), count), np.bool_), np.zeros((len(shared), count))
            for name, gallery in zip(right, both, strict=True):
                hidden = average_codes(self.scene.codes[self.probes[gallery]], k, self.scene.codec.decode)
                left &= companions(hidden, gallery, shared, count)
                away += self.away(hidden.faces[np.searchsorted(gallery, shared)])
                right[name][shared] += np.where(left, away, np.inf).argmin(axis=1) == shared
            times[shared] += 1
        met = np.where(times > 0, times, np.nan)
        return {name: values / met for name, values in right.items()}


HOLDS, NOT, OPEN = "holds", "does not hold", "cannot be said"


@dataclass(frozen=True, eq=False)
class Claim:
    """A difference, by person, that is claimed to lie between `low` and `high`."""

    name: str
    about: str
    values: Shares
    low: float = -np.inf
    high: float = np.inf

    def row(self) -> Row:
        """Return the mean with its 95 % interval, the claimed range, and the verdict."""
        found = interval(self.values)
        return {
            "claim": self.name,
            "setting": self.about,
            **estimate("difference", found, ".4f"),
            "from": f"{self.low:.4g}",
            "to": f"{self.high:.4g}",
            "people": str(int((~np.isnan(self.values)).sum())),
            "verdict": verdict(found, self.low, self.high),
        }


def interval(values: Shares) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval over people.

    If all people have one value, as when nobody is named, the interval has the half-width of Clopper and
    Pearson's for none of as many trials, rather than none.
    """
    own = values[~np.isnan(values)]
    mean, low, high = clustered_mean(own, [str(i) for i in range(len(own))])
    if np.ptp(own) == 0:
        reach = 1 - ((1 - LEVEL) / 2) ** (1 / len(own))
        return mean, mean - reach, mean + reach
    return mean, low, high


def verdict(found: Sequence[float], low: float, high: float) -> str:
    """Return whether an interval lies within the claimed range, outside it, or across an end."""
    _, least, most = found
    if low < least and most < high:
        return HOLDS
    return NOT if most <= low or least >= high else OPEN


def claims(points: Sequence[Point]) -> Iterator[Claim]:
    at = {(one.method, one.model, one.x): one.by_person for one in points}
    xs = {m: [one.x for one in points if (one.method, one.model) == (m, BASIC)] for m in (PRIVATE, SAME)}
    clean = at["none", "", ""]
    for method, own in xs.items():
        weak, strong = (own[-1], own[0]) if method == PRIVATE else (own[0], own[-1])
        ends = f"{method} {weak} - {strong}"
        less = [at[method, BASIC, x] for x in (weak, strong)]
        yield Claim("C10", ends, less[0]["named"] - less[1]["named"], low=0)
        yield Claim("C12", ends, less[0]["gender"] - less[1]["gender"], low=0)
        for x in own:
            basic, told, about = at[method, BASIC, x], at[method, TOLD, x], f"{method} {x}"
            yield Claim("C11", about, told["named"] - basic["named"], low=-MARGIN, high=MARGIN)
            yield Claim("C13", about, told["gender"] - basic["gender"], low=MARGIN)
            yield Claim("C14", about, told["gender"] - clean["gender"], low=0)
            yield from (_parrots if method == PRIVATE else _groups)(about, int(x), basic)


def _parrots(about: str, epsilon: int, found: dict[str, Shares]) -> Iterator[Claim]:
    gain = found["parrot"] - found["named"]
    if epsilon > REVERSAL:
        yield Claim("C15", about, gain, low=0)
    else:
        yield Claim("C16", about, gain, high=0)
    if epsilon < REVERSAL:
        yield Claim("C18", about, found["two"] - found["one"], high=MARGIN)
    yield Claim("gap", about, found["two"] - found["one"])


def _groups(about: str, k: int, found: dict[str, Shares]) -> Iterator[Claim]:
    yield Claim("C17", about, found["two"] - 1 / k, low=MARGIN)
    yield Claim("gap", about, found["two"] - found["one"])


AXES: Final = {PRIVATE: ("differential privacy", "ε of the metric promise"), SAME: ("k-same-m", "k")}
MODEL: Final = {BASIC: "basic model", TOLD: "model that is told the gender"}


def figures(found: Sequence[Row], said: Sequence[Row], dataset: str = "LFW") -> dict[str, bytes]:
    """Return every figure as PNG by its name. Raises `UsageError` without matplotlib."""
    people = int(found[0]["people"])
    hidden = [row | {"hidden": f"{1 - float(row['named']):.4f}"} for row in found]
    one = {(row["method"], row["x"]): row["one"] for row in where(found, model=BASIC)}
    gaps = []
    for row in said:
        method, _, x = row["setting"].rpartition(" ")
        gaps.append({**row, "method": method, "x": x, "one": one.get((method, x), "")})
    panels: dict[int, list[Panel]] = {number: [] for number in (5, 7, 10, 11)}
    gain = Panel("gain", "share named in one release", "Gain by a second release", beside=True)
    for colour, (method, (title, axis)) in enumerate(AXES.items(), 2):
        five, eleven = (Panel("named", axis, title, logx=True) for _ in range(2))
        words = "share of people who are not named"
        seven = Panel("gender", words, f"{title}, {axis[0]} beside points", beside=True)
        for model, name in MODEL.items():
            five.curve(name, found, method=method, model=model)
            seven.curve(name, hidden, x="hidden", method=method, model=model)
        seven.level("photos as they are", found, "-.", method="none")
        for measure, name in (("one", "one release"), ("two", "two releases")):
            eleven.curve(name, found, y=measure, method=method, model=BASIC)
        gain.curve(title, gaps, colour, x="one", y="difference", claim="gap", method=method)
        for number, panel in ((5, five), (7, seven), (11, eleven)):
            panels[number].append(panel)
    gain.level("marginal", MARGIN, "--")
    groups = [
        {"x": row["x"], "named": str(1 / int(row["x"])), "series": "1/k"}
        for row in where(found, method=SAME, model=BASIC)
    ]
    panels[11] = [*panels[11][:-1], panels[11][-1].curve("1/k", groups, 5, "--"), gain]
    title, axis = AXES[PRIVATE]
    ten = Panel("named", axis, title, logx=True)
    for measure, name in (("named", "learned from photos"), ("parrot", "learned from releases (parrot)")):
        ten.curve(name, found, y=measure, method=PRIVATE, model=BASIC)
    more = Panel("gain", axis, f"the paper's reversal: ε = {REVERSAL}", logx=True)
    parrots = [row for row in gaps if row["claim"] in ("C15", "C16")]
    more.curve("parrot, more", parrots, 1, y="difference", method=PRIVATE).level("no difference", 0, "-")
    panels[10] = [ten, more]
    for panel in (*panels[5], ten):
        panel.level("photos as they are", found, "-.", method="none")
        panel.level("decoded without noise", found, "--", method="codec alone", model=BASIC)
        panel.level("chance", 1 / people)
    about = f"{people} people of {dataset}, one photo each; 95 % intervals over people"
    return {
        f"figure-{n}.png": figure(f"Figure {n}: {about}", *own, same=n in (5, 7)) for n, own in panels.items()
    }


def make(
    data: Path,
    count: int | None = None,
    told: Say = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv, verdicts.csv and four figures; with at most `count` people, of LFW or of `own`.

    Needs the default `gan`, the model of attributes and dlib. Raises `UsageError` if something is missing, or
    there are too few people for the largest groups.
    """
    people, fewest = plan.people if count is None else min(count, plan.people), 2 * max(plan.groups)
    if people < fewest:  # each gender has groups of its own
        raise UsageError(
            f"{people} people are too few", hint=f"--count {fewest} or more, for groups of men and of women"
        )
    scene = read_scene(data, replace(SCENE, people=people, photos=plan.known + 1), told, own)
    points = []
    for point in Attacked(scene, plan).points():
        points.append(point)
        told(f"{point.method} {point.model} {point.x}".strip())
    return tables(points, own.name if own else "LFW")


def tables(points: Sequence[Point], name: str = "LFW") -> dict[str, bytes]:
    found, said = [_row(point) for point in points], [claim.row() for claim in claims(points)]
    return {"results.csv": to_csv(found), "verdicts.csv": to_csv(said)} | figures(found, said, name)


def _row(point: Point) -> Row:
    row: Row = {"method": point.method, "model": point.model, "x": point.x}
    for name in MEASURES:
        values = point.by_person.get(name)
        if values is None:
            row |= dict.fromkeys(columns(name), "")
            continue
        own = values[~np.isnan(values)]
        row |= estimate(name, clustered_share(own, [str(i) for i in range(len(own))]), ".4f")
    return row | {"people": str(len(point.by_person["named"]))}
