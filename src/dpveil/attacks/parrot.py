"""The parrot attack: an attacker who trains on released pictures instead of clean ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.attacks.identify import Embeddings, Identified, Known, check_named, means_of, nearest

LEAST: Final = 1e-3
"""Least shrinkage, so that no direction has zero scatter."""


def parrot(
    known: Embeddings, known_people: Sequence[str], probes: Embeddings, people: Sequence[str]
) -> Identified:
    """Return the result of an attacker who learns from released photos of everybody.

    `known` (n × d) are embeddings of photos released by the method under attack, which are not the probes.
    Embeddings are whitened by the scatter within people (Fisher's linear discriminant with shrinkage), then
    the nearest mean decides. With one photo of each person this is `identify` on released photos. A probe of
    NaN counts as wrong. Raises `InvalidParameter`. Source: Newton, Sweeney & Malin 2005; Croft 2022 §6.4.
    """
    check_named("probes", probes, people)
    everybody = means_of(known, known_people)
    turn = whitening(known, known_people)
    return nearest(Known(everybody.names, everybody.means @ turn), probes @ turn, people)


def whitening(known: Embeddings, people: Sequence[str]) -> Float64[np.ndarray, "d d"]:
    """Return the map that whitens the scatter within people.

    The scatter is shrunk towards a multiple of the identity, by an estimate of the optimal amount. Source:
    Ledoit & Wolf 2004, lemma 3.2 and section 3.2.
    """
    rest = _contrasts(known, people)
    scatter = rest.T @ rest / max(1, len(rest))
    size = float(np.trace(scatter)) / len(scatter)
    if not size > 0:
        return np.eye(len(scatter))
    away = float(((scatter - size * np.eye(len(scatter))) ** 2).sum())
    noise = float(((rest**2).sum(axis=1) ** 2).sum()) / len(rest) - float((scatter**2).sum())
    part = min(1.0, max(LEAST, noise / len(rest) / away)) if away > 0 else 1.0
    mixed = (1 - part) * scatter + part * size * np.eye(len(scatter))
    values, vectors = np.linalg.eigh(mixed)
    turn: Float64[np.ndarray, "d d"] = vectors / np.sqrt(values)
    return turn


def _contrasts(known: Embeddings, people: Sequence[str]) -> Embeddings:
    """Return Helmert's contrasts of each person's embeddings, one for every embedding but the first.

    The rows are uncorrelated, and their sum of squares is that of deviations from the mean.
    """
    there = np.isfinite(known).all(axis=1)
    names, found = np.asarray(people)[there], [np.empty((0, known.shape[1]))]
    for name in np.unique(names):
        own = known[there][names == name]
        before = np.arange(1, len(own))[:, None]
        found.append((np.cumsum(own, axis=0)[:-1] - before * own[1:]) / np.sqrt(before * (before + 1)))
    return np.concatenate(found)


def strongest(*attacks: Identified) -> Identified:
    """Return the attack with the highest identification rate, which is the one to report."""
    return max(attacks, key=lambda one: one.rate)
