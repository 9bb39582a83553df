"""Two independent releases of one photo: Croft's composition attack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.spatial.distance import cdist

from dpveil.attacks import identify
from dpveil.mechanisms.ksame import KSameM
from dpveil.noise.bits import SeededBits
from dpveil_research.ksame.one import Scene
from dpveil_research.ksame.plan import PAPER, SEED
from dpveil_research.ksame.rows import GROUPS, VERY, Place, row, share
from dpveil_research.results import Row

QUESTION = "two releases"
Held = Int64[np.ndarray, " people"]
Shares = Float64[np.ndarray, " n"]


def two_releases(scene: Scene, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield the attacks after one and after two releases: with known groups, and by embeddings."""
    for k in scene.plan.groups:
        if k <= len(galleries(scene, 0)[0]):
            yield from _same(scene, k)
            told(f"two galleries, k = {k}")
    for epsilon in scene.plan.learned:
        yield from _private(scene, epsilon)
        told(f"two releases, {epsilon}")


def galleries(scene: Scene, split: int) -> tuple[Held, Held, Held]:
    """Return the people of two galleries, and those in both: about two fifths, the rest in equal parts."""
    return divided(len(scene.names), SeededBits(SEED, f"{scene.people.name} split {split}"))


def divided(count: int, bits: SeededBits) -> tuple[Held, Held, Held]:
    """Return the numbers of `count` people in two galleries, and in both."""
    order = np.argsort(bits.words(count), kind="stable")
    both = len(order) - 2 * (3 * len(order) // 10)
    rest = (len(order) - both) // 2
    shared, one, other = order[:both], order[both : both + rest], order[both + rest :]
    return np.sort(np.append(shared, one)), np.sort(np.append(shared, other)), np.sort(shared)


@dataclass
class Clues:
    """An attacker's state about each face: who is still possible, and the summed distance of everybody."""

    left: Bool[np.ndarray, "faces people"]
    away: Float64[np.ndarray, "faces people"]

    def add(self, left: Bool[np.ndarray, "faces people"], away: Float64[np.ndarray, "faces people"]) -> None:
        """Update with one release."""
        self.left, self.away = self.left & left, self.away + away

    def blindly(self) -> Shares:
        """Return the success of a uniform guess among those left, who include the right one."""
        chances: Shares = 1 / self.left.sum(axis=1)
        return chances

    def right(self, own: Held) -> Shares:
        """Return whether the nearest of those left is right; of all, if nobody is left."""
        some = self.left | ~self.left.any(axis=1, keepdims=True)
        named: Shares = (np.where(some, self.away, np.inf).argmin(axis=1) == own).astype(np.float64)
        return named


def _same(scene: Scene, k: int) -> Iterator[Row]:
    """Yield the attacks on k-same-m in two galleries.

    Attackers know the groups, as in the paper, and guess among those left or take the nearest to other
    photos; or they do not know the groups and take the nearest of all; or they have the very photos of
    everybody, and take the k nearest to a picture as its group.
    """
    method, found = KSameM(k=k, space=scene.codec), dict[tuple[str, int], list[Shares]]()
    people: list[str] = []
    for split in range(scene.plan.splits):
        *both, shared = galleries(scene, split)
        people += [scene.names[number] for number in shared]
        for release, chances in enumerate(_followed(scene, method, both, shared), start=1):
            for attack, values in chances.items():
                found.setdefault((attack, release), []).append(values)
    for (attack, release), shares in found.items():
        place = Place(scene.people.name, QUESTION, method.name, str(k), releases=release)
        yield row(place, attack, share(np.concatenate(shares), people, 1 / len(both[0])), limit=1 / k)


def _followed(scene: Scene, method: KSameM, both: list[Held], shared: Held) -> Iterator[dict[str, Shares]]:
    """Yield each attack's success on the shared people after one release, and after two."""
    known = scene.embed(np.concatenate([scene.people.photo(n) for n in range(1, scene.plan.photos)]))
    means = known.reshape(scene.plan.photos - 1, len(scene.names), -1).mean(axis=0)
    codes, shape = scene.codec.encode(scene.faces), (len(shared), len(scene.names))
    told, untold, very = (Clues(np.ones(shape, bool), np.zeros(shape)) for _ in range(3))
    for gallery in both:
        hidden = method.release(scene.faces[gallery], people=[scene.names[n] for n in gallery])
        places, group = np.searchsorted(gallery, shared), hidden.group_of
        together = np.zeros(shape, bool)
        together[:, gallery] = group[places][:, None] == group[None]
        shown = hidden.faces[places]
        away, far = cdist(scene.embed(shown), means), cdist(scene.codec.encode(shown), codes)
        told.add(together, away)
        untold.add(np.ones(shape, bool), away)
        very.add(far <= np.sort(far, axis=1)[:, [method.k - 1]], far)
        yield {
            GROUPS: told.blindly(),
            f"{GROUPS}, embedding": told.right(shared),
            "embedding": untold.right(shared),
            f"nearest k, {VERY}": very.right(shared),
        }


def _private(scene: Scene, epsilon: str) -> Iterator[Row]:
    """Yield an attack with other photos that averages the embeddings of two releases."""
    known = np.concatenate([scene.people.photo(n) for n in range(1, scene.plan.photos)])
    names = list(scene.names) * (scene.plan.photos - 1)
    both = [scene.embed(scene.drawn(PAPER, epsilon, scene.faces, which)) for which in ("first", "second")]
    for releases in (1, 2):
        seen: Float64[np.ndarray, "n 128"] = np.mean(both[:releases], axis=0)
        place = Place(scene.people.name, QUESTION, PAPER, epsilon, releases=releases)
        yield row(place, "embedding", identify(scene.embed(known), names, seen, scene.names))
