"""Utility and privacy of the gallery method: re-identification, agreement, and detection of faces."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.faces import Attributes, Gallery
from dpveil.mechanisms.choice.rank_choice import RankChoice
from dpveil.noise.bits import SeededBits
from dpveil_research.attributes import (
    EACH,
    SEED,
    Say,
    Scene,
    agreement,
    by_embedding,
    by_embedding_of_photos,
    by_parrot,
    by_telling,
    likeliest,
    of,
    on_photos,
    read_people,
    row,
)
from dpveil_research.embedding_attacks import Identified
from dpveil_research.results import Row, to_csv

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    **{f"epsilon={epsilon}": {"epsilon": epsilon} for epsilon in (1, 2, 4, 6, 8, 12)},
    "epsilon=8, near=1": {"epsilon": 8, "near": 1},
    "epsilon=8, exponential": {"epsilon": 8, "law": "exponential"},
    "epsilon=8, permute-and-flip": {"epsilon": 8, "law": "permute-and-flip"},
}
"""Parameters of the method, by setting."""
TOLD: Final = ("gender", "age", "perceived-race", "pose")
"""Attributes that a gallery face roughly shows; an attacker who is told them is the yardstick."""
COMPARED: Final = ("gender", "age", "perceived-race")
"""Attributes that are the same in all photos of a person."""
PHOTOS: Final = "epsilon=8"
"""The setting at which whole photos are released and searched for faces."""
DRAWS: Final = 4
"""Releases of each photo."""
PARROT_DRAWS: Final = 10
"""Releases of each of the attacker's photos from which a parrot attack learns."""

Numbers = Int64[np.ndarray, " n"]


def make(data: Path, count: int | None, say: Say) -> dict[str, bytes]:
    """Return results.csv; `count` is the number of photos of each person.

    Needs the default gallery and model of attributes, dlib and a face detector. Raises `UsageError`.
    """
    usual = Attributes(attributes="gender=1", gallery="gallery")
    people = read_people(data, EACH if count is None else count, say)
    scene = Scene(people, usual.gallery.held, usual.model.held)
    method = Gallery(gallery=scene.gallery, **SETTINGS[PHOTOS])
    rows = [*on_people(scene, say), *on_photos(scene, PHOTOS, method, say)]
    return {"results.csv": to_csv(rows)}


def on_people(scene: Scene, say: Say) -> list[Row]:
    """Return the results of attackers and a classifier on releases of people's photos, at every setting."""
    clean = scene.model.read(scene.probes)
    rows = [row("LFW", "clean", "embedding", by_embedding_of_photos(scene))]
    rows += agreement(scene, "clean", {name: clean[name] for name in COMPARED})
    rows.append(row("LFW", "told", "told", by_telling(scene.held, TOLD, clean, scene.owners)))
    ranks = [ranks_of(scene, crops) for crops in (scene.known, scene.probes)]
    for setting, parameters in SETTINGS.items():
        choice = RankChoice(count=len(scene.gallery), **parameters)
        rows += _released(scene, setting, choice, (ranks[0], ranks[1]))
        say(setting)
    return rows


def ranks_of(scene: Scene, crops: np.ndarray) -> Int64[np.ndarray, "n faces"]:
    """Return the rank of every face of the gallery for every crop."""
    order = np.argsort(scene.gallery.distances(crops), axis=1, kind="stable")
    return np.argsort(order, axis=1)


def _released(
    scene: Scene, setting: str, choice: RankChoice, ranks: tuple[np.ndarray, np.ndarray]
) -> list[Row]:
    """Return the rows of one setting."""
    orders = [np.argsort(own, axis=1) for own in ranks]
    held, people, drawn = scene.held, scene.owners * DRAWS, []
    for order, stream, times in zip(orders, ("parrot", "probe"), (PARROT_DRAWS, DRAWS), strict=True):
        bits = SeededBits(SEED, f"{setting} {stream}")
        rank = [choice.ranks(len(order), bits) for _ in range(times)]
        drawn.append(np.concatenate([order[np.arange(len(order)), own] for own in rank]))
    parrot, shown = drawn
    attacks = {
        "embedding": by_embedding(held, shown, people),
        "embedding, parrot": by_parrot(held, parrot, shown, people),
        "knows gallery and method": by_ranks(scene, choice, ranks[0], shown, people),
    }
    best = max(attacks, key=lambda name: attacks[name].rate)
    rows = [row("LFW", setting, name, one) for name, one in attacks.items()]
    rows.append(row("LFW", setting, "strongest", attacks[best]))
    read = scene.model.read(scene.gallery.faces)
    rows += agreement(scene, setting, {name: read[name][shown] for name in COMPARED})
    quantile = of(np.full(len(people), float(choice.mean_quantile)), people, 0.5)
    return [*rows, row("LFW", setting, "mean rank quantile", quantile)]


def by_ranks(
    scene: Scene, choice: RankChoice, ranks: np.ndarray, shown: Numbers, people: list[str]
) -> Identified:
    """Return the maximum-likelihood attack that has photos and knows the gallery, the distances and the law.

    The probability of a face for a person is its mean over the attacker's photos of the person.
    """
    chances = np.array([float(p) for p in choice.probabilities])[ranks]
    own: Float64[np.ndarray, "people faces"]
    own = chances.reshape(len(scene.people.names), -1, len(scene.gallery)).mean(axis=1)
    return likeliest(own[:, shown], scene.people.names, people)
