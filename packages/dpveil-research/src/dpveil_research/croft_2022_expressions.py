"""Croft 2022, figures 8 and 9: releases that keep an expression or a gender, which a generator is told.

As in the paper, the generator learns the very people who are protected, from all of their photos, and what
it is told stays public. It has the layout of `dpveil_train.upconv`, with the expression as classes: identity,
expression and gender in, a face of 64 × 64 pixels out. Half of its training says neither, so that one network
serves as the basic one, too. Data are a user's RaFD or KDEF, of which the paper's six expressions are taken;
else rendered heads, which have two, and each only one of them.

The measure of expressions is a linear discriminant of small pictures, learned from photos of every second
person, and counted on the others; the paper has networks that others trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from jaxtyping import Bool, Float64
from scipy.spatial.distance import cdist

from dpveil.assets.trained_files import default_path
from dpveil.codecs import Statistics
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.head_gallery import default_heads
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_2022_faces import PRIVATE, SAME
from dpveil_research.croft_thesis_6 import FEMALE, Codes, Rows
from dpveil_research.data import facts_of, people_of
from dpveil_research.embedding_attacks import parrot
from dpveil_research.faces import FRAME, Crops, Embed, crop_of, embedding, heads, large, seen
from dpveil_research.ksame_methods import group_means, grouped
from dpveil_research.plots import Panel, figure, sheet
from dpveil_research.results import Row, clustered_share, estimate, to_csv

SEED: Final = 9
SIX: Final = ("neutral", "happy", "sad", "surprised", "disgusted", "fearful")
"""The paper's expressions: without anger and contempt, which its networks do not read."""
BASIC, EXPRESSION, GENDER = "basic", "expression told", "gender told"
MODELS: Final = (BASIC, EXPRESSION, GENDER)
SIDE: Final = 64
SMALL: Final = 24  # side of the pictures in which expressions are read, in pixels
DARK: Final = 64
Tell = Callable[[str], None]
Shares = Float64[np.ndarray, " n"]


@dataclass(frozen=True)
class Plan:
    """The extent of a run: at most `people`, and a generator of `length` numbers, trained in `steps` of
    `batch`.
    """

    people: int = 74
    length: int = 64
    widths: tuple[int, ...] = (16, 32, 48)
    hidden: int = 256
    steps: int = 400
    batch: int = 16
    rate: float = 1e-3
    epsilons: tuple[int, ...] = (100, 10000)
    groups: tuple[int, ...] = (2, 5)


PLAN: Final = Plan()


@dataclass(frozen=True, eq=False)
class Faces:
    """Photos of several people, grey beyond the public ellipse: of each its person, expression and gender."""

    crops: Crops
    person: Rows
    expression: Rows
    female: Bool[np.ndarray, " n"]
    expressions: tuple[str, ...]

    @property
    def people(self) -> int:
        return int(self.person.max()) + 1


def own_faces(own: Path, count: int) -> Faces:
    """Return frontal photos of RaFD or KDEF with one of the six expressions. Raises `UsageError`."""
    crops, facts = [], []
    every = people_of(own)
    every = every[:: max(1, -(-len(every) // count))]
    for number, photos in enumerate(every):
        for item in photos:
            told = facts_of(item.name)
            if told.get("expression") in SIX:
                crops.append(crop_of(item, FRAME))
                facts.append((number, SIX.index(told["expression"]), told["gender"] == "female"))
    if not facts or len({number for number, *_ in facts}) < len(every) or len(every) < 4:
        problem = f"{own} has not four people whose photos say their expression by their names"
        raise UsageError(problem, hint="give a folder of RaFD or KDEF with --own")
    person, expression, female = (np.array(column) for column in zip(*facts, strict=True))
    return Faces(seen(np.stack(crops), SIDE), person, expression, female, SIX)


def rendered_faces(count: int) -> Faces:
    """Return a picture of each rendered head; "happy" are those that smile."""
    gallery = default_heads()
    smiles, genders = gallery.looks("smile"), gallery.looks("gender")
    if smiles is None or genders is None:
        raise UsageError("the gallery of heads has no labels of smile and gender", hint="reinstall dpveil")
    people = np.arange(min(count, len(gallery)))
    return Faces(
        seen(heads(FRAME, count), SIDE),
        people,
        smiles[people],
        genders[people] == FEMALE,
        ("neutral", "happy"),
    )


@dataclass(frozen=True, eq=False)
class Generator:
    """A trained generator: the code of each person, and a decoder of codes with what it is told."""

    codes: Codes
    network: Any
    statistics: Statistics

    def render(self, codes: Codes, told: np.ndarray) -> Crops:
        import torch

        with torch.no_grad():
            given = torch.from_numpy(np.concatenate([codes, told], axis=1).astype(np.float32))
            out = torch.cat([self.network(part) for part in given.split(DARK)]).numpy()
        levels = np.clip(np.rint((out.transpose(0, 2, 3, 1) + 1) * 127.5), 0, 255).astype(np.uint8)
        shown: Crops = seen(levels, SIDE)
        return shown


def told_of(faces: Faces, model: str, rows: Rows) -> np.ndarray:
    """Return what a model is told of photos: an expression as classes, then a gender, 0 where it is not."""
    out = np.zeros((len(rows), len(faces.expressions) + 1), np.float32)
    if model == EXPRESSION:
        out[np.arange(len(rows)), faces.expression[rows]] = 1
    elif model == GENDER:
        out[:, -1] = np.where(faces.female[rows], 1, -1)
    return out


def trained(faces: Faces, plan: Plan, tell: Tell) -> Generator:
    """Return a generator that learned all photos: squared differences, as DeconvFaces. Needs torch."""
    import torch

    from dpveil_research.up_convolution import UpConvolution

    told = len(faces.expressions) + 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        rows = torch.nn.Parameter(torch.randn(faces.people, plan.length))
        network = UpConvolution(plan.length, told, plan.hidden, plan.widths, SIDE)
        optimiser = torch.optim.Adam([rows, *network.parameters()], plan.rate)
        rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, plan.rate, total_steps=plan.steps)
        wanted = torch.from_numpy(faces.crops.transpose(0, 3, 1, 2) / np.float32(127.5) - 1)
        person = torch.from_numpy(faces.person)
        both = [
            torch.from_numpy(told_of(faces, m, np.arange(len(faces.person)))) for m in (EXPRESSION, GENDER)
        ]
        for step in range(plan.steps):
            picks = torch.randint(len(person), (plan.batch,))
            given = sum(one[picks] * (torch.rand(plan.batch, 1) < 1 / 2) for one in both)
            code = torch.nn.functional.leaky_relu(rows[person[picks]], 0.2)
            loss = (network(torch.cat([code, given], dim=1)) - wanted[picks]).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rates.step()
            if step % 100 == 0:
                tell(f"step {step} of {plan.steps}: {float(loss.detach()):.4f}")
        codes = torch.nn.functional.leaky_relu(rows, 0.2).detach().numpy().astype(np.float64)
    return Generator(codes, network.eval(), Statistics.of(codes, np.ones(plan.length), seed=SEED))


@dataclass(frozen=True, eq=False)
class Measured:
    """Measures of releases of every photo: who is named, and whose expression and gender are read rightly."""

    faces: Faces
    generator: Generator
    plan: Plan
    embed: Embed = field(default_factory=embedding)
    reader: AttributeModel = field(default_factory=lambda: AttributeModel.load(default_path("attributes")))

    def rows(self) -> Iterator[Row]:
        """Yield the photos as they are, decoded ones, and releases of both methods by every model."""
        yield self._row("none", "", "", self.faces.crops)
        for model in MODELS:
            yield self._row("codec alone", "", model, self.shown(model, self.generator.codes))
        for epsilon in self.plan.epsilons:
            for model in MODELS:
                yield self._row(PRIVATE, str(epsilon), model, self.shown(model, self.private(epsilon, model)))
        for k in self.plan.groups:
            for model in MODELS if 2 * k <= self.faces.people else ():
                yield self._row(SAME, str(k), model, self.shown(model, self.same(k)))

    def private(self, epsilon: int, model: str) -> Codes:
        """Return everybody's code with noise (theorem 1)."""
        bits = SeededBits(SEED, f"{model} {epsilon}")
        mechanism = CroftMetric(epsilon=Fraction(epsilon), clip=0)
        return mechanism.release(self.generator.codes, self.generator.statistics, bits=bits)

    def same(self, k: int) -> Codes:
        return group_means(self.generator.codes, grouped(self.generator.codes, k))

    def shown(self, model: str, codes: Codes) -> Crops:
        """Return the release of every photo, of its person's code and with what the model is told of it."""
        every = np.arange(len(self.faces.person))
        return self.generator.render(codes[self.faces.person], told_of(self.faces, model, every))

    @cached_property
    def _means(self) -> Float64[np.ndarray, "people 128"]:
        at = self.embed(large(self.faces.crops))
        return np.stack([at[self.faces.person == one].mean(axis=0) for one in range(self.faces.people)])

    def _row(self, method: str, x: str, model: str, shown: Crops) -> Row:
        faces, people = self.faces, [str(one) for one in self.faces.person]
        named = cdist(self.embed(large(shown)), self._means).argmin(axis=1) == faces.person
        gender = (self.reader.read(large(shown))["gender"] == FEMALE) == faces.female
        made: Row = {"method": method, "x": x, "model": model}
        for name, values in (("named", named), ("gender", gender)):
            made |= estimate(name, clustered_share(values.astype(np.float64), people), ".4f")
        right = read_expressions(faces, shown)
        others = [one for one in people if int(one) % 2]
        made |= estimate("expression", clustered_share(right, others), ".4f")
        return made | {"photos": str(len(people)), "people": str(faces.people)}


def read_expressions(faces: Faces, shown: Crops) -> Shares:
    """Return of photos of every second person whether their expression is read as it is."""
    learned, others = faces.person % 2 == 0, faces.person % 2 == 1
    names = np.array(faces.expressions)[faces.expression]
    found = parrot(
        pixels(faces.crops[learned]), list(names[learned]), pixels(shown[others]), list(names[others])
    )
    return np.asarray(found.right, np.float64)


def pixels(crops: Crops) -> Float64[np.ndarray, "n d"]:
    grey = crops.mean(axis=3).astype(np.uint8)
    shrunk = [cv2.resize(one, (SMALL, SMALL), interpolation=cv2.INTER_AREA).ravel() for one in grey]
    return np.stack(shrunk).astype(np.float64)


def figure_9(rows: Sequence[Row], name: str) -> bytes:
    """Return expressions and genders by the share of people named, as PNG."""
    panels = []
    for measure, told in (("expression", EXPRESSION), ("gender", GENDER)):
        words = "share of photos that are named"
        panels.append(Panel(measure, words, f"{measure}, ε or k beside", beside=True))
        for colour, method in enumerate((PRIVATE, SAME)):
            for model, style in ((told, "-"), (BASIC, "--")):
                panels[-1].curve(
                    f"{method}, {model}", rows, colour, style, x="named", method=method, model=model
                )
        panels[-1].level("photos as they are", rows, "-.", method="none")
    return figure(f"Figure 9: {rows[0]['people']} people of {name}; 95 % intervals over people", *panels)


def figure_8(own: Measured, epsilon: int, k: int) -> bytes:
    """Return releases of four people, each with every expression told, by both methods, as PNG."""
    told, rows = own.faces.expressions, []
    given = np.eye(len(told), len(told) + 1, dtype=np.float32)
    for codes in (own.private(epsilon, EXPRESSION), own.same(k)):
        for person in (0, 1):
            photo = own.faces.crops[int(np.flatnonzero(own.faces.person == person)[0])]
            faces = own.generator.render(np.repeat(codes[person : person + 1], len(told), axis=0), given)
            rows.append(
                [(face, words, "") for face, words in zip([photo, *faces], ["photo", *told], strict=True)]
            )
    return sheet(rows, f"Figure 8: ε = {epsilon}, then k = {k}", SIDE)


def make(
    count: int | None = None,
    told: Tell = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv and figures 8 and 9, with at most `count` people.

    Needs torch, the model of attributes and dlib. Raises `UsageError` if something is missing.
    """
    people = min(count or plan.people, plan.people)
    faces = rendered_faces(people) if own is None else own_faces(own, people)
    told(f"{len(faces.crops)} photos of {faces.people} people")
    measured = Measured(faces, trained(faces, plan, told), plan)
    rows = []
    for row in measured.rows():
        rows.append(row)
        told(f"{row['method']} {row['x']} {row['model']}".strip())
    name = own.name if own else "the rendered heads"
    figures = {"figure-9.png": figure_9(rows, name)}
    if 2 * plan.groups[0] <= faces.people:
        figures["figure-8.png"] = figure_8(measured, plan.epsilons[-1], plan.groups[0])
    return {"results.csv": to_csv(rows)} | figures
