"""The paper's claims as differences of the same people's rates, and what can be said about each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpveil_research.croft_2022_faces.measure import Point, Shares
from dpveil_research.croft_2022_faces.plan import BASIC, MARGIN, PRIVATE, REVERSAL, SAME, TOLD
from dpveil_research.intervals import LEVEL, clustered_mean
from dpveil_research.results import Row, estimate

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
