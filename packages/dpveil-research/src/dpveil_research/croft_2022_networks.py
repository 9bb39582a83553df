"""Croft 2022, figures 5 and 15, by a network trained for every setting, beside dlib's and linear attackers.

The paper trains VGGFace on photos (figure 5) and FaceNet on photos or releases (figure 15). This network is
small, `NetworkParrot`, of 46 × 56 pixels, and learns from releases of each setting, as do the linear
discriminants; dlib's embeddings come from a network that learned from millions of other people's photos.
Everybody has ten photos to learn from and three to be named, as in the paper, but there are fewer people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dpveil.attacks.base import Attack, Background, View
from dpveil.attacks.networks import NetworkParrot
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.data import load
from dpveil.bench.measuring import cells
from dpveil.bench.run import one_thread
from dpveil_research.croft_2022_faces import BASIC, Attacked
from dpveil_research.croft_2022_faces import Plan as Faces
from dpveil_research.croft_pixels import PAPER, points
from dpveil_research.croft_thesis_6 import PLAN as SCENE
from dpveil_research.croft_thesis_6 import Shares, read_scene
from dpveil_research.data import Resized
from dpveil_research.faces import Crops
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, clustered_share, estimate, to_csv

SEED: Final = 15
PHOTOS: Final = 13  # of everybody: ten to learn from, and a fifth, rounded up, to be named
EMBEDDING, LINEAR, NETWORK = "dlib's embeddings, of photos", "linear, of releases", "network, of releases"


@dataclass(frozen=True)
class Plan:
    """The extent of a run: of figure 5 everybody's `known` photos are each released `draws` times to learn
    from, and of figure 15 both mechanisms run at `budgets`.
    """

    people: int = 20
    known: int = 10
    draws: int = 3
    epsilons: tuple[int, ...] = (100, 1000, 10000)
    budgets: tuple[str, ...] = ("1000", "1000000")
    blocks: tuple[int, ...] = (4, 16)


PLAN: Final = Plan()
Tell = Callable[[str], None]


def by_code(own: Attacked, plan: Plan) -> Iterator[Row]:
    """Yield who is named in releases of one generator by each attacker (figure 5)."""
    names = own.names
    right = names[own.probes]
    for epsilon in plan.epsilons:
        learned = [own.drawn(BASIC, epsilon, own.known, f"network {i}") for i in range(plan.draws)]
        shown = own.drawn(BASIC, epsilon, own.probes, "probe 0")
        found = {
            EMBEDDING: (own.away(shown).argmin(axis=1) == right).astype(np.float64),
            LINEAR: own.parrot(learned[0], shown[None]),
            NETWORK: taught(np.concatenate(learned), np.tile(names[own.known], plan.draws), shown, right),
        }
        for attacker, values in found.items():
            yield row("5", "code of a generator", str(epsilon), attacker, values, np.arange(len(values)))


def taught(learned: Crops, owners: np.ndarray, shown: Crops, right: np.ndarray) -> Shares:
    """Return which pictures a network names that learned from pictures of these owners."""
    views = tuple(map(view, learned))
    told = tuple(f"{owner:06}" for owner in owners)
    found = NetworkParrot().fit(Background(views, views, told)).score([view(one) for one in shown])
    guessed = np.array([int(found.names[place]) for place in found.likeness.argmax(axis=1)])
    shares: Shares = (guessed == right).astype(np.float64)
    return shares


def view(image: np.ndarray) -> View:
    """Return what an adversary sees of a picture that is replaced as a whole."""
    return View(image, np.ones(image.shape[:2], np.bool_))


def by_cell(folder: Path, plan: Plan, tell: Tell) -> Iterator[Row]:
    """Yield who is named in releases of cells of pixels by each attacker (figure 15)."""
    of = replace(PAPER, epsilons=plan.budgets, blocks=plan.blocks)
    faces = load(folder, people=plan.people, photos=PHOTOS)
    faces = replace(faces, items=tuple(Resized.of(item, of.size) for item in faces.items))
    attacks: dict[str, Attack] = {LINEAR: PixelDiscriminant(), NETWORK: NetworkParrot()}
    for point in points(of):
        found = cells(faces, point.setting, tuple(attacks.values()), SEED, ())
        for name, cell in zip(attacks, found, strict=True):
            series = f"{point.method}, b = {point.block}"
            yield row("15", series, point.epsilon, name, np.array(cell.right), np.array(cell.people))
        tell(f"{point.series}, ε = {point.epsilon}")


def row(figure: str, series: str, x: str, attacker: str, values: Shares, people: np.ndarray) -> Row:
    own = [str(one) for one in people]
    labels = {"figure": figure, "releases of": series, "x": x, "attack": attacker}
    counts = {"releases": str(len(own)), "people": str(len(set(own)))}
    return labels | estimate("named", clustered_share(values, own), ".4f") | counts


def plot(rows: list[Row], name: str) -> bytes:
    """Return one panel for each kind of release, with a line for each attacker, as PNG."""
    panels = []
    for kind in dict.fromkeys(one["releases of"] for one in rows):
        panels.append(Panel("named", "ε", kind, logx=True))
        for colour, attacker in enumerate((EMBEDDING, LINEAR, NETWORK)):
            panels[-1].curve(attacker, rows, colour, **{"releases of": kind, "attack": attacker})
        panels[-1].level("chance", 1 / int(rows[0]["people"]))
    about = f"Figures 5 and 15: {rows[0]['people']} people of {name}; 95 % intervals over people"
    return figure(about, *panels, same=True)


def make(
    data: Path,
    count: int | None = None,
    told: Tell = lambda done: None,
    plan: Plan = PLAN,
    own: Path | None = None,
) -> dict[str, bytes]:
    """Return results.csv and a plot, of `count` people of LFW or of `own`.

    Needs torch, the default `gan`, the model of attributes and dlib. Raises `UsageError` if something is
    missing.
    """
    plan = plan if count is None else replace(plan, people=count)
    folder = own or data / PAPER.folder
    scene = read_scene(
        data, replace(SCENE, people=plan.people, photos=plan.known + 1, groups=(1,)), told, folder
    )
    with one_thread():
        rows = list(by_code(Attacked(scene, Faces(people=plan.people, known=plan.known)), plan))
        told("figure 5")
        rows += by_cell(folder, plan, told)
    return {"results.csv": to_csv(rows), "networks.png": plot(rows, own.name if own else "LFW")}
