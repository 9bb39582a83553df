"""Attacks with background knowledge: of the other faces in a group, or of who it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float64
from scipy.spatial.distance import cdist

from dpveil.mechanisms.ksame import Group, KSameM, KSamePixel, KSameResult
from dpveil.noise.bits import SeededBits
from dpveil_research.ksame.bound import best_success, losses, scaled
from dpveil_research.ksame.faces import Crops, repeated
from dpveil_research.ksame.one import LIKELIHOOD, Scene
from dpveil_research.ksame.plan import PRIVATE, SEED, private
from dpveil_research.ksame.rows import Place, row, share
from dpveil_research.results import Row

QUESTION = "background"
Numbers = Float64[np.ndarray, "..."]


def background(scene: Scene, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield the attacks that subtract the known faces of a group, and those that exclude known people."""
    for k in scene.plan.subtracted:
        if k <= len(scene.names):
            yield from _subtract(scene, k)
            told(f"subtracting, k = {k}")
    if scene.plan.narrowed <= len(scene.names):
        yield from _strike_off(scene)


def _subtract(scene: Scene, k: int) -> Iterator[Row]:
    """Yield the attack that knows all faces of a group but one, and other photos of everybody.

    On pixels, the size of the group times its picture, minus the known faces, is the remaining face up to
    rounding. With a codec the same holds for codes, up to what a picture loses of its code.
    """
    codec, names = scene.codec, scene.names
    pixels, model = KSamePixel(k=k), KSameM(k=k, space=codec)
    hidden = pixels.release(scene.faces, people=names)
    left = _less_the_others(hidden.faces.astype(float), scene.faces.astype(float), hidden)
    yield from _named(
        scene, Place(scene.people.name, QUESTION, pixels.name, str(k), known=k - 1), _levels(left)
    )
    hidden = model.release(scene.faces, people=names)
    codes = _less_the_others(codec.encode(hidden.faces), codec.encode(scene.faces), hidden)
    yield from _named(
        scene, Place(scene.people.name, QUESTION, model.name, str(k), known=k - 1), codec.decode(codes)
    )


def _less_the_others(shown: Numbers, faces: Numbers, hidden: KSameResult) -> Numbers:
    """Return for every face its group's size times the released mean, minus the group's other faces."""
    sums: Numbers = np.empty_like(faces)
    sizes = np.empty(len(faces))
    for group in hidden.groups:
        sums[group.members], sizes[group.members] = faces[group.members].sum(axis=0), len(group.members)
    wide = sizes.reshape((-1,) + (1,) * (faces.ndim - 1))
    found: Numbers = np.subtract(wide * shown, sums - faces)
    return found


def _levels(values: Numbers) -> Crops:
    levels: Crops = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return levels


def _named(scene: Scene, place: Place, shown: Crops) -> Iterator[Row]:
    for name, found in scene.by_photos(shown).items():
        yield row(place, f"{name}, subtracting", found, limit=1 / int(place.x))


def _strike_off(scene: Scene) -> Iterator[Row]:
    """Yield the success of guessing among the people of a group, without those known to be elsewhere.

    The same groups of similar faces are the candidates for k-same and for the private mechanisms, whose
    attacker has their very photos and names the most likely.
    """
    k, codes = scene.plan.narrowed, scene.codec.encode(scene.faces)
    groups = KSameM(k=k, space=scene.codec).release(scene.faces, people=scene.names).groups
    people = [scene.names[number] for group in groups for number in group.members]
    for known in range(k - 1):
        place = Place(scene.people.name, QUESTION, "k-same-m", str(k), known=known)
        even = np.full(len(people), 1 / (k - known))
        yield row(place, "striking off", share(even, people, 1 / (k - known)), limit=1 / k)
        for name in PRIVATE:
            for epsilon in scene.plan.struck:
                yield _likeliest(scene, name, epsilon, codes, groups, known)


def _likeliest(
    scene: Scene, name: str, epsilon: str, codes: np.ndarray, groups: tuple[Group, ...], known: int
) -> Row:
    """Return the maximum-likelihood attack on every face of every group, with `known` others excluded."""
    mechanism, draws, space = private(name, epsilon), scene.plan.draws, scene.codec.statistics
    bits = SeededBits(SEED, f"{scene.people.name} {name} {epsilon} {known} struck off")
    faces, right, limits, people = scaled(codes, mechanism, space), [], [], []
    released = [scaled(mechanism.release(codes, space, bits=bits), mechanism, space) for _ in range(draws)]
    for group in groups:
        for place in range(len(group.members)):
            left = np.roll(group.members, -place)[: scene.plan.narrowed - known]
            limits.append(best_success(losses(faces[left])))
            for own, number in enumerate(left):  # the bound holds for each of those left
                seen = np.stack([one[number] for one in released])
                right.append(cdist(seen, faces[left], "cityblock").argmin(axis=1) == own)
                people.append(scene.names[number])
    rights = np.concatenate(right).astype(float)
    found = share(rights, repeated(people, draws), 1 / (scene.plan.narrowed - known))
    where = Place(scene.people.name, QUESTION, name, epsilon, known=known)
    return row(where, f"striking off, {LIKELIHOOD}", found, limit=float(np.mean(limits)))
