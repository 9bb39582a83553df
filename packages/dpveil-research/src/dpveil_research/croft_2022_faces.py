"""Croft et al. 2022, figures 5, 7, 10 and 11: recognition and gender in releases of one generator.

Thresholds of the claims were chosen before any curve was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial.distance import cdist

from dpveil.assets.store import default_path
from dpveil.attacks import parrot
from dpveil.codecs import GAN
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import AttributeModel
from dpveil.mechanisms.ksame import KSameM
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research.attributes import Say
from dpveil_research.croft_thesis_6 import FEMALE, Codes, Crops, Rows, Scene, Told, large, read_scene
from dpveil_research.croft_thesis_6 import PLAN as SCENE
from dpveil_research.ksame import Clues, divided
from dpveil_research.ksame_data import Embed, embedding
from dpveil_research.plots import COLOURS, INK, SOFT, canvas_of, label, legend, png
from dpveil_research.results import LEVEL, Row, clustered_mean, clustered_share, columns, estimate, to_csv

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
class Extent:
    """What the runs have in common that release one photo of everybody.

    At most `people` of a set, of whom the attacker has `known` photos and one is protected, at these
    `epsilons`, and in `groups` of these sizes.
    """

    people: int = 60
    known: int = 4
    epsilons: tuple[int, ...] = (100, 200, 300, 1000, 10000)
    groups: tuple[int, ...] = (2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Plan(Extent):
    """The extent of a run.

    Of everybody's photos the attacker has the first `known`; the next one is protected. Of it are made
    `pairs` pairs of releases. In `splits` divisions, two galleries share two fifths of the people.
    """

    pairs: int = 1
    splits: int = 3


PLAN: Final = Plan()


MEASURES: Final = ("named", "parrot", "one", "two", "gender")
"""Named by an attacker who has other photos; by one who learned from releases of them; in one release and in
two of one photo; and the share whose gender is read as in the originals.

For k-same, `one` and `two` are of the people in both galleries, and that attacker knows the groups.
"""
Shares = Float64[np.ndarray, " people"]
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
            yield Point("codec alone", model, "", self._plain(self._decoded(model, self.probes)[None]))
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
        """The rows of the attacker's photos."""
        return np.flatnonzero(self.scene.number < self.plan.known)

    @cached_property
    def names(self) -> Rows:
        """The number of the person on each photo."""
        own: Int64[np.ndarray, " n"] = np.unique(self.scene.people, return_inverse=True)[1].astype(np.int64)
        return own

    @cached_property
    def means(self) -> Float64[np.ndarray, "people 128"]:
        """The mean embedding of each person's photos that the attacker has."""
        seen, names = self.embed(large(self.scene.faces[self.known])), self.names[self.known]
        return np.stack([seen[names == person].mean(axis=0) for person in range(len(self.probes))])

    def away(self, faces: Crops) -> Away:
        """Return the distance of faces from everybody's mean."""
        found: Away = cdist(self.embed(large(faces)), self.means)
        return found

    def _plain(self, shown: np.ndarray) -> dict[str, Shares]:
        """Return who is named and whose gender is read, in draws × people × pixels."""
        own = self.names[self.probes]
        named = np.mean([self.away(faces).argmin(axis=1) == own for faces in shown], axis=0)
        read = [self.reader.read(large(faces))["gender"] == FEMALE for faces in shown]
        gender = np.mean(np.array(read) == self.scene.female[self.probes], axis=0)
        return {"named": named, "gender": gender}

    def _parts(self, model: str, rows: Rows) -> list[tuple[GAN | Told, Rows]]:
        """Return the decoders of a model and the places in `rows` of the photos that each one makes."""
        if model == BASIC:
            return [(self.scene.codec, np.arange(len(rows)))]
        female = self.scene.female[rows]
        both = [(Told(self.scene.codec, told), np.flatnonzero(female == told)) for told in (True, False)]
        return [(space, places) for space, places in both if len(places)]

    def _decoded(self, model: str, rows: Rows, codes: Codes | None = None) -> Crops:
        given = self.scene.codes[rows] if codes is None else codes
        out = np.empty((len(rows), *self.scene.faces.shape[1:]), np.uint8)
        for space, places in self._parts(model, rows):
            out[places] = space.decode(given[places])
        return out

    def _drawn(self, model: str, epsilon: int, rows: Rows, stream: str) -> Crops:
        mechanism = CroftMetric(epsilon=Fraction(epsilon), clip=0)
        bits = SeededBits(SEED, f"{model} {epsilon} {stream}")
        codes = mechanism.release(self.scene.codes[rows], self.scene.codec.statistics, bits=bits)
        return self._decoded(model, rows, codes)

    def _private(self, model: str, epsilon: int) -> Point:
        count = 2 * self.plan.pairs if model == BASIC else self.plan.pairs
        shown = np.stack([self._drawn(model, epsilon, self.probes, f"probe {i}") for i in range(count)])
        found = self._plain(shown)
        if model == BASIC:
            own = self.names[self.probes]
            away = np.stack([self.away(faces) for faces in shown])
            both = away[: self.plan.pairs] + away[self.plan.pairs :]
            found["one"] = found["named"]
            found["two"] = (both.argmin(axis=2) == own).mean(axis=0)
            found["parrot"] = self._parrot(self._drawn(model, epsilon, self.known, "parrot"), shown)
        return Point(PRIVATE, model, str(epsilon), found)

    def _parrot(self, learned: Crops, shown: np.ndarray) -> Shares:
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
        for space, places in self._parts(model, self.probes):
            shown[places] = self._grouped(space, self.probes[places], k)[0]
        found = self._plain(shown[None])
        return Point(SAME, model, str(k), found | (self._composed(k) if model == BASIC else {}))

    def _grouped(self, space: GAN | Told, rows: Rows, k: int) -> tuple[Crops, Rows]:
        people = [str(one) for one in self.names[rows]]
        hidden = KSameM(k=k, space=space).release_codes(self.scene.codes[rows], people=people)
        return hidden.faces, hidden.group_of

    def _composed(self, k: int) -> dict[str, Shares]:
        """Return who is named in one and in two galleries' releases by an attacker who knows the groups."""
        count = len(self.probes)
        right: dict[str, Shares] = {name: np.zeros(count) for name in ("one", "two")}
        times = np.zeros(count)
        for split in range(self.plan.splits):
            *both, shared = divided(count, SeededBits(SEED, f"split {split}"))
            clues = Clues(np.ones((len(shared), count), bool), np.zeros((len(shared), count)))
            for name, gallery in zip(right, both, strict=True):
                faces, group = self._grouped(self.scene.codec, self.probes[gallery], k)
                places, together = np.searchsorted(gallery, shared), np.zeros((len(shared), count), bool)
                together[:, gallery] = group[places][:, None] == group[None]
                clues.add(together, self.away(faces[places]))
                right[name][shared] += clues.right(shared)
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
    """Yield every claim at every setting at which the paper makes it."""
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


NAMED: Final = "people named, %"
AXES: Final = {PRIVATE: ("differential privacy", "ε of the metric promise"), SAME: ("k-same-m", "k")}
MODEL: Final = {BASIC: "basic model", TOLD: "model that is told the gender"}
APART: Final = 1.03
"""Curves that are compared are moved apart by this factor, so that neither hides the other."""


def figures(found: Sequence[Row], said: Sequence[Row]) -> dict[str, bytes]:
    """Return every figure as PNG by its name. Raises `UsageError` without matplotlib."""
    made = {"figure-5": _risk, "figure-7": _gender, "figure-10": _parrot, "figure-11": _two}
    about = f"{found[0]['people']} people of LFW, one photo each; bars are 95 % intervals over people"
    out = {}
    for name, draw in made.items():
        canvas = draw(found, said)
        canvas.suptitle(f"{name.replace('-', ' ').capitalize()}: {about}", color=INK, fontsize=11)
        out[f"{name}.png"] = png(canvas)
    return out


def _risk(found: Sequence[Row], _: Sequence[Row]) -> Any:
    canvas, every = canvas_of(2, same=True)
    for axes, method in zip(every, AXES, strict=True):
        for colour, model in enumerate(MODELS):
            rows = _of(found, method, model)
            _bars(axes, _x(rows, colour), rows, "named", colour, MODEL[model])
        _levels(axes, found, "named")
        _finish(axes, method, NAMED, found)
    return canvas


def _gender(found: Sequence[Row], _: Sequence[Row]) -> Any:
    canvas, every = canvas_of(2, same=True)
    for axes, method in zip(every, AXES, strict=True):
        for colour, model in enumerate(MODELS):
            rows = _of(found, method, model)
            error = [100 * (1 - float(row["named"])) for row in rows]
            _bars(axes, error, rows, "gender", colour, MODEL[model])
            _beside(axes, error, [100 * float(row["gender"]) for row in rows], [row["x"] for row in rows])
        plain = 100 * float(_of(found, "none", "")[0]["gender"])
        axes.axhline(plain, color=SOFT, lw=1.1, ls="-.", label="photos as they are")
        title, words = AXES[method]
        label(axes, f"{title}, {words[0]} beside points", "people not named, %", "gender read rightly, %")
        legend(axes)
    every[0].sharex(every[1])
    every[0].autoscale(axis="x")
    return canvas


def _parrot(found: Sequence[Row], said: Sequence[Row]) -> Any:
    canvas, (left, right) = canvas_of(2)
    rows = _of(found, PRIVATE, BASIC)
    _bars(left, _x(rows, 0), rows, "named", 0, "learned from photos")
    _bars(left, _x(rows, 1), rows, "parrot", 1, "learned from releases (parrot)")
    _levels(left, found, "named")
    _finish(left, PRIVATE, NAMED, found)
    _gaps(right, [row for row in said if row["claim"] in ("C15", "C16")], PRIVATE, 1, "parrot, more")
    right.axvline(REVERSAL, color=SOFT, lw=1.1, ls="--", label=f"ε = {REVERSAL}: the paper's reversal")
    _finish(right, PRIVATE, "named by the parrot beyond the other, points", None)
    return canvas


def _two(found: Sequence[Row], said: Sequence[Row]) -> Any:
    canvas, every = canvas_of(3)
    every[1].sharey(every[0])
    for axes, method in zip(every, AXES, strict=False):
        rows = _of(found, method, BASIC)
        _bars(axes, _x(rows, 0), rows, "one", 0, "one release")
        _bars(axes, _x(rows, 1), rows, "two", 1, "two releases")
        if method == SAME:
            x = [float(row["x"]) for row in rows]
            axes.plot(x, [100 / k for k in x], color=SOFT, ls="--", lw=1.2, label="1/k")
        _finish(axes, method, NAMED, found)
    for colour, method in enumerate(AXES):
        gaps = [row for row in said if row["claim"] == "gap" and row["setting"].startswith(method)]
        one = {row["x"]: 100 * float(row["one"]) for row in _of(found, method, BASIC)}
        _gaps(every[2], gaps, method, colour + 2, AXES[method][0], one)
    every[2].axhline(100 * MARGIN, color=SOFT, lw=1.1, ls="--", label="marginal")
    label(
        every[2],
        f"Second release; k-same of {gaps[0]['people']} people",
        "named in one release, %",
        "gain by the second, points",
    )
    legend(every[2])
    return canvas


def _of(found: Sequence[Row], method: str, model: str) -> list[Row]:
    return [row for row in found if (row["method"], row["model"]) == (method, model)]


def _x(rows: Sequence[Row], place: int) -> list[float]:
    return [float(row["x"]) * APART ** (2 * place - 1) for row in rows]


def _bars(
    axes: Any, x: Sequence[float], rows: Sequence[Row], measure: str, colour: int, words: str, link: str = "-"
) -> None:
    mean, low, high = ([100 * float(row[name]) for row in rows] for name in columns(measure))
    away = [[m - a for m, a in zip(mean, low, strict=True)], [b - m for m, b in zip(mean, high, strict=True)]]
    style = {"color": COLOURS[colour], "lw": 1.4, "marker": "o", "ms": 3.5, "elinewidth": 0.8}
    axes.errorbar(x, mean, away, ls=link, label=words, **style)


def _gaps(
    axes: Any,
    gaps: Sequence[Row],
    method: str,
    colour: int,
    words: str,
    at: dict[str, float] | None = None,
) -> None:
    """Draw differences over the setting, or over `at` with the setting beside each point."""
    names = [row["setting"].removeprefix(f"{method} ") for row in gaps]
    x = [float(name) if at is None else at[name] for name in names]
    _bars(axes, x, gaps, "difference", colour, words, "-" if at is None else "none")
    axes.axhline(0, color=INK, lw=0.8)
    if at is not None:
        _beside(axes, x, [100 * float(row["difference"]) for row in gaps], names)


def _beside(axes: Any, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Write the setting beside each point; points within 5 units of each other share one label."""
    near: dict[tuple[float, float], list[str]] = {}
    for place, height, name in zip(x, y, names, strict=True):
        own = next((at for at in near if abs(at[0] - place) + abs(at[1] - height) < 5), (place, height))
        near.setdefault(own, []).append(name)
    for at, those in near.items():
        axes.annotate(", ".join(those), at, fontsize=6.5, xytext=(4, 4), textcoords="offset points")


def _levels(axes: Any, found: Sequence[Row], measure: str) -> None:
    for method, model, style in (("none", "", "-."), ("codec alone", BASIC, "--")):
        level = 100 * float(_of(found, method, model)[0][measure])
        words = "photos as they are" if method == "none" else "decoded without noise"
        axes.axhline(level, color=SOFT, lw=1.1, ls=style, label=words)


def _finish(axes: Any, method: str, y: str, found: Sequence[Row] | None) -> None:
    if found is not None:
        axes.axhline(100 / int(found[0]["people"]), color=SOFT, lw=1.1, ls=":", label="chance")
    axes.set_xscale("log")
    if method == SAME and found is not None:
        ticks = [float(row["x"]) for row in _of(found, SAME, BASIC)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    label(axes, AXES[method][0], AXES[method][1], y)
    legend(axes)


def make(
    data: Path, count: int | None = None, told: Say = lambda done: None, plan: Plan = PLAN
) -> dict[str, bytes]:
    """Return results.csv, verdicts.csv and four figures; with at most `count` people.

    Needs the default `gan`, the model of attributes and dlib. Raises `UsageError` if something is missing, or
    there are too few people for the largest groups.
    """
    people, fewest = plan.people if count is None else min(count, plan.people), 2 * max(plan.groups)
    if people < fewest:  # each gender has groups of its own
        raise UsageError(
            f"{people} people are too few", hint=f"--count {fewest} or more, for groups of men and of women"
        )
    scene = read_scene(data, replace(SCENE, people=people, photos=plan.known + 1), told)
    points = []
    for point in Attacked(scene, plan).points():
        points.append(point)
        told(f"{point.method} {point.model} {point.x}".strip())
    return tables(points)


def tables(points: Sequence[Point]) -> dict[str, bytes]:
    """Return the files of measured points, by name."""
    found, said = [_row(point) for point in points], [claim.row() for claim in claims(points)]
    return {"results.csv": to_csv(found), "verdicts.csv": to_csv(said)} | figures(found, said)


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
