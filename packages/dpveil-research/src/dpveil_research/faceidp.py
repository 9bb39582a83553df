"""FaceIDP, figures 9 to 13: its budgets, what the attacked recogniser sees, and a sound alternative.

Utility is the expected squared error (FaceIDP eqs. 14, 15) with levels from 0 to 1, summed over the 67 500
levels of an aligned face of 150 × 150 pixels. The paper gives no unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from dpveil.accounting.zcdp import zcdp_epsilon
from dpveil.codecs import Dictionary
from dpveil.faces.embedding import CHIP, SAME, embedder
from dpveil.mechanisms.latent import BoxGaussian, BoxLaplace, BoxTruncatedLaplace, LatentMechanism
from dpveil.noise.bits import SeededBits, normals
from dpveil_research.faces import Crops, Faces, closest_pairs, read_faces, trained
from dpveil_research.plots import Panel, figure
from dpveil_research.published_faceidp import ALLOCATIONS, Moves, Pair, alpha_of, edges, moved, release
from dpveil_research.results import Row, clustered_mean, clustered_share, estimate, to_csv, where

DELTA: Final = Fraction(1, 10**6)
OVER, UNDER = "epsilon over utility", "utility over epsilon"
LAPLACE, EQUAL = "box-laplace", "box-laplace, equal shares"
TRUNCATED, GAUSSIAN = "box-truncated-laplace", "box-gaussian"
PURE: Final = ("10", "30", "100", "300", "1000", "3000", "10000", "30000", "100000")
RHO: Final = ("1", "10", "100", "1000", "10000", "100000", "1000000", "10000000")
RECOGNISED: Final = (LAPLACE, GAUSSIAN)  # the mechanisms whose releases are shown to the recogniser
Codes = Float64[np.ndarray, "n m"]


@dataclass(frozen=True)
class Sound:
    """A mechanism as a function of its budget, and the budgets that are tried."""

    make: Callable[[str], LatentMechanism]
    budgets: tuple[str, ...]

    def epsilon(self, budget: str) -> float:
        """Return ε: the budget of a pure guarantee, or the ε of ρ-zCDP at δ = 10⁻⁶."""
        return float(zcdp_epsilon(budget, DELTA)) if self.budgets is RHO else float(budget)


SOUND: Final = {
    LAPLACE: Sound(lambda epsilon: BoxLaplace(epsilon=epsilon), PURE),
    EQUAL: Sound(lambda epsilon: BoxLaplace(epsilon=epsilon, allocation="equal"), PURE),
    TRUNCATED: Sound(lambda epsilon: BoxTruncatedLaplace(epsilon=epsilon), PURE),
    GAUSSIAN: Sound(lambda rho: BoxGaussian(rho=rho), RHO),
}


def curves(codec: Dictionary, codes: Codes, people: Sequence[str], seed: int) -> tuple[list[Row], list[Row]]:
    """Return ε by utility and utility by ε: squared errors in the span of the atoms, over all faces."""
    gram = codec.atoms.astype(np.float64) @ codec.atoms.T / TOP**2
    over, under = [], []
    for series, sound in SOUND.items():
        for budget in sound.budgets:
            mechanism = sound.make(budget)
            drawn = mechanism.release(codes, codec.statistics, bits=SeededBits(seed, f"{series} {budget}"))
            errors = np.einsum("nm,mk,nk->n", drawn - codes, gram, drawn - codes)
            utility = estimate("utility", clustered_mean(errors, people))
            epsilon = estimate("epsilon", (sound.epsilon(budget),) * 3)
            promise = str(mechanism.guarantee(codec.statistics))
            labels = {"series": series, "guarantee": promise, "n": str(len(codes))}
            over.append({"sweep": OVER, "x": utility["utility"], **labels, **epsilon})
            under.append({"sweep": UNDER, "x": epsilon["epsilon"], **labels, **utility})
    return over, under


def mechanism_at(over: Sequence[Row], series: str, utility: float) -> LatentMechanism:
    """Return the mechanism that reaches a utility, with a budget interpolated between those tried."""
    sound = SOUND[series]
    tried = [float(row["x"]) for row in over if row["series"] == series]
    reached = np.log(np.minimum.accumulate(tried))
    budgets = np.log([float(budget) for budget in sound.budgets])
    found = float(np.exp(np.interp(np.log(utility), reached[::-1], budgets[::-1])))
    return sound.make(f"{found:.4g}")


def figures(tables: Mapping[str, Sequence[Row]], about: str) -> dict[str, bytes]:
    """Return figures 9 to 13, and what the recogniser takes for A."""
    pairs = f"{tables['recognised'][0]['n']} pairs; bands are 95 % intervals"
    words = "utility: squared error"
    budgets = Panel("epsilon", words, logx=True, logy=True)
    utilities = Panel("utility", "ε", logx=True, logy=True, bands=False)
    for panel, table in ((budgets, tables["budgets"]), (utilities, tables["utilities"])):
        for name in (*ALLOCATIONS, *SOUND):
            panel.curve(name, table, style="--" if name in ALLOCATIONS else "-")
    whole = Panel("epsilon", words, logx=True, logy=True)
    for end, style in (("", "--"), (", with δ", "-")):
        for colour, name in enumerate(ALLOCATIONS):
            whole.curve(f"{name}{end}", tables["budgets"], colour, style)
    taken = [Panel("taken", words, logx=True, bands=False) for _ in "AB"]
    for panel, face in zip(taken, "AB", strict=True):
        for name in (*ALLOCATIONS, *RECOGNISED):
            panel.curve(f"{name}, {face}", tables["recognised"], style="--" if name in ALLOCATIONS else "-")
    apart = []
    for sweep in ("codes", "embeddings"):
        rows = where(farther(tables["differences"]), sweep=sweep)
        apart += [Panel(m, f"coordinate of {sweep}", bands=False) for m in ("difference", "farther")]
        apart[-2].curve(ORIGINAL, rows)
        for name in ALLOCATIONS:
            apart[-1].curve(name, rows)
    titles = {
        "figure-13": "Figure 13, {}: FaceIDP's budgets (broken, no promise) and ε of sound mechanisms",
        "theorem-6-1": "{}: FaceIDP's ε′ and its whole ε (theorem VI.1)",
        "recognised": "{}: what the recogniser takes for A (left: A itself, right: B; means)",
        "figure-9-12": "Figures 9 to 12, {}: how far B lies from A, and what noise adds at 13 (means)",
    }
    every = ([budgets, utilities], [whole], taken, apart)
    return {
        f"{file}.png": figure(f"{title.format(about)}\n{pairs}", *panels, same=file == "recognised")
        for (file, title), panels in zip(titles.items(), every, strict=True)
    }


def farther(differences: Sequence[Row]) -> list[Row]:
    """Return the rows with what noise adds to the differences of the original faces."""
    plain = {(r["sweep"], r["x"]): float(r["difference"]) for r in where(differences, series=ORIGINAL)}
    more = [float(row["difference"]) - plain[row["sweep"], row["x"]] for row in differences]
    return [row | estimate("farther", (one,) * 3) for row, one in zip(differences, more, strict=True)]


SEED: Final = 2020
TRAINING: Final = 1000  # faces that train the dictionary
ATOMS: Final = 100  # atoms of the dictionary
PAIRS: Final = 30  # pairs of similar faces of different people
EACH: Final = 5
PEOPLE: Final = 79
DRAWS: Final = 4
TOP: Final = 255
UTILITIES: Final = ("5", "10", "13", "20", "30", "100", "300", "1000", "3000")
"""Those of the paper's figures, up to 30, and larger ones, to see where the recogniser fails."""
LOOKED_AT: Final = ("5", "13", "30", "100", "300", "1000", "3000")  # utilities at which the recogniser is run
SHOWN: Final = "13"  # the utility of figures 9 to 12
BUDGETS: Final = ("1", "2.2", "2.9", "10", "30", "100", "300", "1000", "3000", "10000")
ORIGINAL: Final = "original"
TAKEN: Final = "taken for A"  # the sweep whose values are shares of pictures
NONE: Final = "no formal guarantee"
Embed = Callable[[Crops], Float64[np.ndarray, "n d"]]
Told = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Looked:
    """A pair of crops, A first, with their embeddings and what FaceIDP computes of them."""

    name: str
    crops: Crops
    at: Float64[np.ndarray, "2 d"]
    pair: Pair

    def taken(self, views: Float64[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Return which embeddings the recogniser accepts as A."""
        return np.asarray(np.linalg.norm(views - self.at[0], axis=1) <= SAME)


@dataclass(frozen=True, eq=False)
class Run:
    """One run: a dictionary, the pairs, and the recogniser."""

    codec: Dictionary
    pairs: tuple[Looked, ...]
    embed: Embed
    told: Told

    @property
    def atoms(self) -> Float64[np.ndarray, "m pixels"]:
        return self.codec.atoms.astype(np.float64)

    def row(self, sweep: str, series: str, x: str, promise: str, measure: str, found: Sequence[float]) -> Row:
        mean = clustered_share if TAKEN in sweep + series else clustered_mean
        numbers = mean(np.array(found, np.float64), [p.name for p in self.pairs])
        labels = {"sweep": sweep, "series": series, "x": x, "guarantee": promise}
        return {**labels, "n": str(len(found)), **estimate(measure, numbers)}

    def budgets(self) -> list[Row]:
        """Return ε by utility: ε′ of the allocations, and with δ of theorem VI.1."""
        made = []
        for allocation in ALLOCATIONS:
            for series, whole in ((allocation, False), (f"{allocation}, with δ", True)):
                for x in UTILITIES:
                    noise = [(p.pair, p.pair.scales(allocation, float(x))) for p in self.pairs]
                    found = [pair.budget(b) + (pair.excess(b) if whole else 0) for pair, b in noise]
                    made.append(self.row(OVER, series, x, NONE, "epsilon", found))
        return made

    def utilities(self) -> list[Row]:
        """Return the utility of each allocation by ε′: it falls with the square."""
        made = []
        for allocation in ALLOCATIONS:
            ones = [p.pair.budget(p.pair.scales(allocation, 1.0)) for p in self.pairs]
            for x in BUDGETS:
                found = [(one / float(x)) ** 2 for one in ones]
                made.append(self.row(UNDER, allocation, x, NONE, "utility", found))
        return made

    def facts(self) -> list[Row]:
        decoded = [self.codec.decode(self.codec.encode(p.crops)) for p in self.pairs]
        loss = [(crops / TOP - p.crops / TOP) ** 2 for crops, p in zip(decoded, self.pairs, strict=True)]
        every = {
            "distance of A and B": [float(np.linalg.norm(p.at[1] - p.at[0])) for p in self.pairs],
            "B taken for A": [float(p.taken(p.at[1:])[0]) for p in self.pairs],
            "decoded code of A taken for A": [
                float(p.taken(self.embed(crops)[:1])[0]) for crops, p in zip(decoded, self.pairs, strict=True)
            ],
            "squared error of a decoded code": [float(one.sum(axis=(1, 2, 3)).mean()) for one in loss],
            "squared error of a code by random measurements": [
                measured_error(self.codec, p.crops, SeededBits(SEED, f"measurements {p.name}"))
                for p in self.pairs
            ],
            "coordinates outside of the edges": [float(p.pair.outside(1.0).sum()) for p in self.pairs],
            "α": [p.pair.alpha for p in self.pairs],
            "coordinates outside of α times the edges": [float(p.pair.outside().sum()) for p in self.pairs],
        }
        return [self.row("pairs", name, "", NONE, "value", found) for name, found in every.items()]

    def seen(self, over: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        """Return which releases are accepted as A, and the distances of codes and embeddings of A and B at
        `SHOWN`.
        """
        taken = []
        apart = {ORIGINAL: [(p.pair.move[None], p.at[1:] - p.at[:1]) for p in self.pairs]}
        for series in (*ALLOCATIONS, *RECOGNISED):
            for x in LOOKED_AT:
                mechanism = mechanism_at(over, series, float(x)) if series in RECOGNISED else None
                promise = str(mechanism.guarantee(self.codec.statistics)) if mechanism else NONE
                shares, moves = [], []
                for p in self.pairs:
                    both = [self._released(p, face, series, x, mechanism) for face in (0, 1)]
                    views = [self.embed(crops) for crops in both]
                    shares.append([float(p.taken(view).mean()) for view in views])
                    if x == SHOWN and not mechanism:
                        codes = self.codec.encode(both[1]) - self.codec.encode(both[0])
                        moves.append((codes, views[1] - views[0]))
                for face, name in enumerate("AB"):
                    found = [share[face] for share in shares]
                    taken.append(self.row(TAKEN, f"{series}, {name}", x, promise, "taken", found))
                if moves:
                    apart[series] = moves
                self.told(f"{series}, utility {x}")
        return taken, self._apart(apart)

    def _released(
        self, p: Looked, face: int, series: str, x: str, mechanism: LatentMechanism | None
    ) -> Crops:
        bits = SeededBits(SEED, f"{p.name} {face} {series} {x}")
        if mechanism:
            codes = np.repeat(self.codec.encode(p.crops[face][None]), DRAWS, axis=0)
            return self.codec.decode(mechanism.release(codes, self.codec.statistics, bits=bits))
        return release(p.crops[face], self.atoms, p.pair.scales(series, float(x)), DRAWS, bits)

    def _apart(self, apart: Mapping[str, Sequence[tuple[Moves, Moves]]]) -> list[Row]:
        """Return mean absolute differences by coordinate, ordered by those of the originals."""
        made = []
        for part, sweep in enumerate(("codes", "embeddings")):
            means = {
                s: np.array([np.abs(one[part]).mean(axis=0) for one in found]) for s, found in apart.items()
            }
            order = np.argsort(-means[ORIGINAL].mean(axis=0))
            for series, values in means.items():
                for x, column in enumerate(order):
                    found = values[:, column].tolist()
                    made.append(self.row(sweep, series, str(x + 1), NONE, "difference", found))
        return made


def measured_error(codec: Dictionary, crops: Crops, bits: SeededBits) -> float:
    """Return the squared error of pictures whose codes come from as many random measurements as atoms.

    The measurements are y = Φ·P with normal Φ, m × pixels, as in eq. 4; the code solves Φ·D·F = y. What the
    atoms do not span goes into the measurements, too.
    """
    atoms = codec.atoms.astype(np.float64)
    measures = normals(atoms.size, bits).reshape(atoms.shape)
    pixels = crops.reshape(len(crops), -1) - codec.mean.astype(np.float64)
    codes = np.linalg.solve(measures @ atoms.T, measures @ pixels.T).T
    apart = np.clip(codes @ atoms + codec.mean, 0, TOP) / TOP - crops.reshape(len(crops), -1) / TOP
    return float((apart**2).sum(axis=1).mean())


def look(codec: Dictionary, crops: Crops, at: Float64[np.ndarray, "2 d"], name: str, embed: Embed) -> Looked:
    """Return FaceIDP's view of two crops: the edges of every coordinate on both sides of A, and α."""
    atoms = codec.atoms.astype(np.float64)

    def distance(moves: Moves) -> Float64[np.ndarray, " n"]:
        return np.asarray(np.linalg.norm(embed(moved(crops[0], atoms, moves)) - at[0], axis=1))

    codes = codec.encode(crops)
    low, high = edges(distance, codec.statistics.bounds().width, SAME)
    alpha = alpha_of(distance, low, high, SAME, SeededBits(SEED, f"corners {name}"))
    pair = Pair(codes[1] - codes[0], low, high, alpha, codec.statistics.column_energy / TOP**2)
    return Looked(name, crops, at, pair)


def measure(codec: Dictionary, faces: Faces, count: int, embed: Embed, told: Told) -> dict[str, list[Row]]:
    """Return the rows of every table, for a dictionary, faces of other people, and a recogniser."""
    at = embed(faces.crops)
    pairs: list[Looked] = []
    for first, second in closest_pairs(at, faces.people, count):
        both = [first, second]
        pairs.append(look(codec, faces.crops[both], at[both], f"pair {len(pairs)}", embed))
        told(f"pair {len(pairs)} of {count}")
    run = Run(codec, tuple(pairs), embed, told)
    over, under = curves(codec, codec.encode(faces.crops), faces.people, SEED)
    taken, apart = run.seen(over)
    return {
        "pairs": run.facts(),
        "budgets": run.budgets() + over,
        "utilities": run.utilities() + under,
        "recognised": taken,
        "differences": apart,
    }


def make(data: Path, count: int | None, told: Told, own: Path | None = None) -> dict[str, bytes]:
    """Return the tables and plots; `count` is the number of pairs, and `own` a data set in place of LFW, such
    as PubFig for figures 9, 11 and 14. Raises `UsageError`.
    """
    crops = read_faces(data, CHIP, TRAINING, half=0, own=own).crops
    faces = read_faces(data, CHIP, PEOPLE * EACH, half=1, each=EACH, own=own)
    told("faces aligned")
    codec = trained(Dictionary, crops, ATOMS, SEED)
    told("dictionary learned")
    tables = measure(codec, faces, PAIRS if count is None else count, embedder(), told)
    made = {f"{name}.csv": to_csv(table) for name, table in tables.items()}
    return made | figures(tables, own.name if own else "LFW")
