"""FaceIDP, figures 5 and 7: the faces that it releases, of drawn people, so that no data set is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8
from scipy.spatial.distance import pdist, squareform

from dpveil.codecs import Dictionary
from dpveil.faces.embedding import CHIP, SAME, embedder
from dpveil.noise.bits import SeededBits
from dpveil_research.faceidp import ATOMS, ORIGINAL, SEED, SHOWN, TOP, TRAINING, Embed, Looked, look
from dpveil_research.faces import Crops, closest_pairs, heads, read_faces, trained
from dpveil_research.plots import sheet
from dpveil_research.published_faceidp import ALLOCATIONS, release
from dpveil_research.results import Row, to_csv

PEOPLE: Final = 79  # drawn people of whom two are A and B, as many as of LFW in the other figures
APART: Final = 0.51
"""The mean distance of LFW's thirty closest pairs, and nearly that of A and B: the closest two drawn people
are far closer, 0.17.
"""
CLOSEST: Final = "closest"
UTILITIES: Final = (SHOWN, "1000")  # the paper's, and one at which the noise can be seen
SERIES: Final = (ORIGINAL, *ALLOCATIONS)
PARTS: Final = {"left eye of A": (0, (40, 25), 50), "mouth of B": (1, (85, 34), 50)}
"""What figure 7 magnifies: the face, the top left corner of the part, in rows and columns, and its side."""
LOUDER: Final = 8  # differences are drawn so many times as large
GREY: Final = 128


@dataclass(frozen=True, eq=False)
class Shown:
    """What one allocation makes of a pair at one utility: the pictures of A and B, and ε′."""

    series: str
    utility: str
    faces: UInt8[np.ndarray, "2 s s 3"]
    at: Float64[np.ndarray, "2 d"]
    budget: float | None


def make(own: Path | None = None) -> dict[str, bytes]:
    """Return the table and both figures, of drawn people or of a user's own data set: of PubFig they are
    figures 6 and 8, and show its photos. Needs dlib; raises `UsageError` without it or matplotlib.
    """
    if own is None:
        crops = heads(CHIP, PEOPLE + TRAINING)
        people, others, whose = crops[:PEOPLE], crops[PEOPLE:], "drawn people"
    else:
        others = read_faces(own, CHIP, TRAINING, half=0, own=own).crops
        people = read_faces(own, CHIP, PEOPLE, half=1, each=1, own=own).crops
        whose = f"people of {own.name}"
    return files(trained(Dictionary, others, ATOMS, SEED, whose), people, embedder(), whose)


def files(codec: Dictionary, crops: Crops, embed: Embed, whose: str = "drawn people") -> dict[str, bytes]:
    """Return the files for a dictionary, one crop of each person, and a recogniser."""
    at, table, found = embed(crops), list[Row](), list[Shown]()
    for words, both in pairs(at).items():
        pair = look(codec, crops[both], at[both], words, embed)
        found = list(shown(codec, pair, embed))
        table += [row for one in found for row in rows(words, pair, one)]
    about = f"two of {len(crops)} {whose}, {APART} apart; {codec.length} atoms learned from others"
    once = f"one draw each, seed {SEED}; ε′ is the published budget, which promises nothing"
    return {
        "faces.csv": to_csv(table),
        "figure-5.png": figure_5(found, f"Figure 5: {about};\n{once}"),
        "figure-7.png": figure_7(found, f"Figure 7: {about}, utility {SHOWN};\n{once}"),
    }


def pairs(at: Float64[np.ndarray, "n d"]) -> dict[str, list[int]]:
    """Return the two closest people, and the two whose distance is closest to `APART`, which are drawn."""
    away = np.abs(squareform(pdist(at)) - APART) + np.tril(np.full((len(at), len(at)), np.inf))
    first, second = np.unravel_index(int(away.argmin()), away.shape)
    ((one, other),) = closest_pairs(at, [str(i) for i in range(len(at))], 1)
    return {CLOSEST: [one, other], f"{APART} apart": [int(first), int(second)]}


def shown(codec: Dictionary, pair: Looked, embed: Embed) -> Iterator[Shown]:
    """Yield the originals and one release of both faces by every allocation, at every utility."""
    atoms = codec.atoms.astype(np.float64)
    for utility in UTILITIES:
        yield Shown(ORIGINAL, utility, pair.crops, pair.at, None)
        for series in ALLOCATIONS:
            scales = pair.pair.scales(series, float(utility))
            every = [
                release(face, atoms, scales, 1, SeededBits(SEED, f"face {i} {series} {utility}"))[0]
                for i, face in enumerate(pair.crops)
            ]
            faces = np.stack(every)
            yield Shown(series, utility, faces, embed(faces), pair.pair.budget(scales))


def rows(words: str, pair: Looked, one: Shown) -> Iterator[Row]:
    for name, face, original, at in zip("AB", one.faces, pair.crops, one.at, strict=True):
        apart = (face.astype(np.float64) - original) / TOP
        away = float(np.linalg.norm(at - pair.at[0]))
        yield {
            "pair": words,
            "face": name,
            "series": one.series,
            "utility": one.utility,
            "epsilon": "" if one.budget is None else f"{one.budget:.4g}",
            "squared_error": f"{float((apart**2).sum()):.4g}",
            "distance_from_a": f"{away:.4f}",
            "taken_for_a": str(away <= SAME),
        }


def figure_5(found: Sequence[Shown], title: str) -> bytes:
    """Return A and B as released: a row for each face and utility, a column for each allocation."""
    rows = []
    for utility in UTILITIES:
        every = [one for one in found if one.utility == utility]
        for face, name in enumerate("AB"):
            words = [
                "" if one.budget is None else f"utility {utility}, ε′ = {one.budget:.0f}" for one in every
            ]
            tiles = zip(every, words, strict=True)
            rows.append([(one.faces[face], f"{name}, {one.series}", below) for one, below in tiles])
    return sheet(rows, title, CHIP.size)


def figure_7(found: Sequence[Shown], title: str) -> bytes:
    """Return an eye of A and the mouth of B, magnified, and below each what was changed."""
    rows: list[list[tuple[np.ndarray, str, str]]] = []
    every = [one for one in found if one.utility == SHOWN]
    for words, (face, (top, left), side) in PARTS.items():
        cut = (slice(top, top + side), slice(left, left + side))
        before = every[0].faces[face][cut].astype(np.float64)
        rows += [[], []]
        for one in every:
            after = one.faces[face][cut]
            budget = "" if one.budget is None else f"ε′ = {one.budget:.0f}"
            rows[-2].append((after, f"{words}, {one.series}", budget))
            change = np.clip(GREY + LOUDER * (after - before), 0, TOP).astype(np.uint8)
            most = f"largest: {np.abs(after - before).max():.0f} levels"
            rows[-1].append((change, f"change × {LOUDER}", most))
    return sheet(rows, title, CHIP.size)
