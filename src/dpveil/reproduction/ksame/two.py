"""Two releases of one photo by two who do not know of each other: Croft's composition attack."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial.distance import cdist

from dpveil.attacks import identify
from dpveil.mechanisms.ksame import KSameM
from dpveil.noise.bits import SeededBits
from dpveil.reproduction.ksame.one import Scene
from dpveil.reproduction.ksame.plan import PAPER, SEED
from dpveil.reproduction.ksame.rows import Place, Row, row, share

QUESTION = "two releases"
Held = Int64[np.ndarray, " people"]
Shares = Float64[np.ndarray, " n"]


def two_releases(scene: Scene, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield for one and for two releases whom attackers name: with known groups, and by embeddings."""
    for k in scene.plan.groups:
        if k <= len(galleries(scene, 0)[0]):
            yield from _same(scene, k)
            told(f"two galleries, k = {k}")
    for epsilon in scene.plan.learned:
        yield from _private(scene, epsilon)
        told(f"two releases, {epsilon}")


def galleries(scene: Scene, split: int) -> tuple[Held, Held, Held]:
    """Return the people of two galleries, and those in both: about two fifths, the rest in equal parts."""
    words = SeededBits(SEED, f"{scene.people.name} split {split}").words(len(scene.names))
    order = np.argsort(words, kind="stable")
    both = len(order) - 2 * (3 * len(order) // 10)
    rest = (len(order) - both) // 2
    shared, one, other = order[:both], order[both : both + rest], order[both + rest :]
    return np.sort(np.append(shared, one)), np.sort(np.append(shared, other)), np.sort(shared)


def _same(scene: Scene, k: int) -> Iterator[Row]:
    """Yield k-same-m in two galleries. Attackers know the groups, as in the paper, and choose of those left:

    blindly, which is right once in as many as are left, or by the sum of distances to photos that they hold.
    The last attack knows no groups.
    """
    method, found = KSameM(k=k, space=scene.codec), dict[tuple[str, int], list[Shares]]()
    known = scene.embed(np.concatenate([scene.people.photo(n) for n in range(1, scene.plan.photos)]))
    means = known.reshape(scene.plan.photos - 1, len(scene.names), -1).mean(axis=0)
    people: list[str] = []
    for split in range(scene.plan.splits):
        *both, shared = galleries(scene, split)
        people += [scene.names[number] for number in shared]
        left, away = np.ones((len(shared), len(scene.names)), bool), np.zeros((len(shared), len(scene.names)))
        for release, gallery in enumerate(both, start=1):
            hidden = method.release(scene.faces[gallery], people=[scene.names[n] for n in gallery])
            places, group = np.searchsorted(gallery, shared), hidden.group_of
            together = group[places][:, None] == group[None]
            candidates = np.zeros_like(left)
            candidates[:, gallery] = together
            left &= candidates
            away += cdist(scene.embed(hidden.faces[places]), means)
            right = np.where(left, away, np.inf).argmin(axis=1) == shared
            found.setdefault(("knows the groups", release), []).append(1 / left.sum(axis=1))
            found.setdefault(("knows the groups, embedding", release), []).append(right.astype(float))
            anyone = away[:, gallery] if release == 1 else away
            named = gallery[anyone.argmin(axis=1)] if release == 1 else anyone.argmin(axis=1)
            found.setdefault(("embedding", release), []).append((named == shared).astype(float))
    for (attack, release), values in found.items():
        place = Place(scene.people.name, QUESTION, method.name, str(k), releases=release)
        yield row(place, attack, share(np.concatenate(values), people, 1 / len(both[0])), limit=1 / k)


def _private(scene: Scene, epsilon: str) -> Iterator[Row]:
    """Yield an attacker with other photos, who adds the distances of two releases up."""
    known = np.concatenate([scene.people.photo(n) for n in range(1, scene.plan.photos)])
    names = list(scene.names) * (scene.plan.photos - 1)
    for name in (PAPER,):
        both = [scene.embed(scene.drawn(name, epsilon, scene.faces, which)) for which in ("first", "second")]
        for releases in (1, 2):
            seen: Float64[np.ndarray, "n 128"] = np.mean(both[:releases], axis=0)
            place = Place(scene.people.name, QUESTION, name, epsilon, releases=releases)
            yield row(place, "embedding", identify(scene.embed(known), names, seen, scene.names))
