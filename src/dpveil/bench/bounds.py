"""The highest success that a guarantee allows any attacker who names people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.accounting.compose import whole_region
from dpveil.accounting.meaning import success_bound
from dpveil.bench.galleries import AnySetting
from dpveil.bench.items import Item
from dpveil.core.arrays import Bool, Float64, Int64
from dpveil.core.guarantee import Guarantee, Relation
from dpveil.core.numbers import Number, exact, float_above

SOLVED: Final = 100
"""Most photos for which the best weights are sought by a linear program of n² + n variables."""
MOST: Final = 2000
"""Most photos for which a bound is computed at all: matrices have a row and a column for each."""
FARTHEST: Final = 690.0
"""Largest ε·d that counts: floats lose digits below e^-708."""
LEAST: Final = 1e-300
"""Least product that counts: floats lose digits below 2^-1022."""
SLACK: Final = 2.0**-48
"""A bound on the relative rounding error of one product here."""

Square = Float64[np.ndarray, "n n"]


def bound_of_photos(epsilon: Fraction, apart: Square, people: Sequence[str]) -> float | None:
    """Return the highest expected share of releases whose person any attacker can name, rounded up.

    Row and column i of `apart` are the distances of photo i, which shows `people[i]`, from all photos under
    attack, rounded up; `epsilon` is per unit of distance. The attacker may know all photos, and gets one
    release, of each photo equally likely. None for more than `MOST` photos.

    *Proof.* Let p_i = 1/n, K_ij = e^(-ε·d(i,j)), N_j(g) the probability that the attacker names g when it
    gets a release of photo j, and q_i = N_i(g) for the person g in photo i. By the guarantee N_j(g) ≥
    K_ij·q_i for every photo i of g, and Σ_g N_j(g) ≤ 1, since it names one person. Let weights μ_ij ≥ 0
    satisfy Σ_j K_ij·μ_ij ≥ p_i for all i, and let λ_j be the largest Σ_i μ_ij over one person's photos i:

        success = Σ_i p_i·q_i ≤ Σ_j Σ_i μ_ij·K_ij·q_i ≤ Σ_j Σ_g Σ_(i of g) μ_ij·N_j(g) ≤ Σ_j λ_j.

    The best attacker, Σ_y max_g Σ_(i of g) p_i·P(y | x_i) over all outputs y, is one of these. Any weights
    give a bound; those are chosen that give the lowest (linear programming), up to `SOLVED` photos. ∎

    The mean of p_i / Σ_j p_j·K_ij, the highest posterior of each photo, is no bound: with three photos one
    unit apart in a row and e^-ε = 1/2 it is 0.548, and truncated geometric noise lets an attacker succeed in
    5/9. Their maximum is one: even weights give it where everybody has one photo.

    >>> row = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> round(bound_of_photos(Fraction(math.log(2)), row, ["a", "b", "c"]), 6)
    0.555556
    """
    if not people or len(people) > MOST:
        return None
    kernel = _kernel(epsilon, apart)
    same = np.array([[one == other for other in people] for one in people])
    best = _certified_bound(_even_weights(same), kernel, same)
    if len(people) <= SOLVED:
        best = min(best, _certified_bound(_solve_weights(kernel, same), kernel, same))
    return min(1.0, best)


def _kernel(epsilon: Fraction, apart: Square) -> Square:
    """Return e^(-ε·d), rounded down, and 0 where it is far below all that counts."""
    lost = float_above(epsilon) * apart * (1 + SLACK)
    return np.where(lost > FARTHEST, 0.0, np.exp(-lost) * (1 - SLACK))


def _certified_bound(weights: Square, kernel: Square, same: Bool[np.ndarray, "n n"]) -> float:
    """Return the bound that weights prove after they are raised by one factor until they satisfy the proof's
    condition; 1 if none does. Sound whatever the weights are, so that a solver need not be trusted.
    """
    count, first = len(weights), np.unique(same.argmax(axis=1))
    kept = np.maximum(np.nan_to_num(weights, nan=0.0, posinf=0.0), 0)
    kept = kept / max(float(kept.max()), math.ulp(0.0))  # a factor that cancels out, so that no sum overflows
    products = kernel * kept
    covered = np.where(products < LEAST, 0.0, products).sum(axis=1)
    if not (covered > 0).all():
        return 1.0
    with np.errstate(over="ignore"):  # then it proves nothing, which is 1 below
        factor = float((1 / covered).max()) / count
    spent = math.fsum((same[first].astype(np.float64) @ kept).max(axis=0))
    return factor * spent * (1 + (2 * count + 8) * SLACK)


def _even_weights(same: Bool[np.ndarray, "n n"]) -> Square:
    """Return weights that share every release evenly among the photos of each person, but for its own."""
    return np.where(same, np.eye(len(same)), 1 / same.sum(axis=1, keepdims=True))


def _solve_weights(kernel: Square, same: Bool[np.ndarray, "n n"]) -> Square:
    """Return the weights of the lowest bound as far as a solver finds them."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, csr_array, hstack, vstack

    count, first = len(kernel), np.unique(same.argmax(axis=1))
    photo, release = (index.ravel() for index in np.indices((count, count)))
    cells: Int64[np.ndarray, " cells"] = np.arange(count * count)
    person = np.searchsorted(first, same.argmax(axis=1))[photo]
    held = coo_array((np.ones(count * count), (person * count + release, cells)))
    most = vstack([-coo_array(np.eye(count))] * len(first))
    covers = coo_array((-kernel.ravel(), (photo, cells)))
    limits = vstack([hstack([held, most]), hstack([covers, coo_array((count, count))])])
    right = np.r_[np.zeros(len(first) * count), np.full(count, -1.0)]
    cost = np.r_[np.zeros(count * count), np.ones(count)]
    found = linprog(cost, A_ub=csr_array(limits), b_ub=right, method="highs")
    if found.x is None:
        return np.zeros((count, count))
    weights: Square = found.x[: count * count].reshape(count, count)
    return weights


ANY: Final = "any photos"
THESE: Final = "these photos"
"""What a bound is about: as many photos of any people, or these very photos, by their distances."""


def up(share: Number, digits: int) -> str:
    """Return a bound in digits after the point, rounded up: rounded to the nearest it would be none.

    >>> up(0.12341, 4), up(0.025, 4), up(1, 2)
    ('0.1235', '0.0250', '1.00')
    """
    return f"{math.ceil(exact(share) * 10**digits) / 10**digits:.{digits}f}"


def bound(
    guarantees: Sequence[Guarantee | None],
    people: Sequence[str],
    *,
    pixels: int,
    whole: bool,
) -> float | None:
    """Return the highest expected share of releases whose person any attacker can name, rounded up.

    `guarantees` are those of the releases, whose people are `people`; `pixels` is the most pixels of a
    photo. None where no bound is known: for a heuristic method, for a relation under which photos of two
    people are no neighbours, and where more tells than what was replaced: `whole` says whether that is all of
    every photo and all have one size, else place, surroundings and sizes tell, too. Then all that an attacker
    has, file and certificate, follows from the release and public settings.

    *Proof.* Let w be the largest share of the releases that shows one person, and k the largest integer with
    1/k ≥ w. The attacker gets one release; its photo is drawn at random, and shows person i with probability
    w_i ≤ 1/k. Such a law is a mixture of uniform ones over k people (the vertices of the simplex that is cut
    off at 1/k). Told which k people, an attacker succeeds no less; then `success_bound` holds for k photos,
    all of them neighbours: photos of a person are a mixture, and the divergences are jointly convex. ∎
    """
    if not whole or not people:
        return None
    alone = max(Counter(people).values())
    candidates = len(people) // alone
    if candidates < 2:
        return 1.0
    found = [_bound_of(one, candidates, pixels) for one in guarantees]
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None


def _bound_of(guarantee: Guarantee | None, candidates: int, pixels: int) -> float | None:
    if guarantee is None or not guarantee.formal or guarantee.relation.name == "singular-values":
        return None
    grouped = whole_region(guarantee, pixels)
    return None if grouped is None else success_bound(grouped, candidates)


def bound_by_distances(
    setting: AnySetting, items: Sequence[Item], guarantees: Sequence[Guarantee | None]
) -> float | None:
    """Return what `bound_of_photos` gives for photos and the guarantees of their releases.

    None for guarantees that are not metric, are about few pixels or singular vectors, or differ in ε or
    distance; and where the method cannot take the distance between photos, or takes one that is none.
    """
    promises = {(one.kind, one.epsilon, one.distance, one.relation) for one in guarantees if one is not None}
    if setting.method is None or None in guarantees or len(promises) != 1 or len(items) > MOST:
        return None
    ((kind, epsilon, distance, relation),) = promises
    if kind != "metric" or epsilon is None or distance is None or not relation.implies(Relation("any-image")):
        return None
    points = setting.points(items)
    apart = None if points is None else setting.method.apart(points)
    if apart is None or apart.shape != (len(items), len(items)) or not (apart >= 0).all():
        return None
    return bound_of_photos(epsilon, apart, [item.person for item in items])
