"""One release of a face: attacks with other photos or with the very same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.spatial.distance import cdist

from dpveil.attacks import Identified, identify
from dpveil.codecs import PCA
from dpveil.mechanisms.ksame import KSame, KSameFurthest, KSameM, KSamePixel
from dpveil.metrics.ssim import ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.ksame.bound import best_success, losses, scaled
from dpveil_research.ksame.faces import Crops, Embed, People, repeated
from dpveil_research.ksame.plan import PAPER, PRIVATE, SEED, Plan, private
from dpveil_research.ksame.rows import GROUPS, VERY, Place, row, share, strongest
from dpveil_research.results import Row

QUESTION = "one release"
LIKELIHOOD = f"likelihood, {VERY}"
Likeness = Callable[[Crops], Float64[np.ndarray, "n d"]]


@dataclass(frozen=True, eq=False)
class Scene:
    """A data set under attack: `faces` are protected, the attacker holds other photos of everybody."""

    people: People
    codec: PCA
    embed: Embed
    plan: Plan

    @property
    def faces(self) -> Crops:
        """The photo of everybody that is released."""
        return self.people.photo(0)

    @property
    def names(self) -> tuple[str, ...]:
        """The people on them."""
        return self.people.people

    def views(self) -> dict[str, Likeness]:
        """Return the features that attackers compare, by the name of the attack."""
        return {"embedding": self.embed, "eigenfaces": self.weighed}

    def weighed(self, crops: Crops) -> Float64[np.ndarray, "n m"]:
        """Return codes in units of their public range, so that all coordinates have equal weight."""
        codes: Float64[np.ndarray, "n m"] = self.codec.encode(crops) / self.codec.statistics.bounds(5).width
        return codes

    def back(self, crops: Crops) -> Crops:
        """Return crops encoded and decoded without noise."""
        return self.codec.decode(self.codec.encode(crops))

    def drawn(self, name: str, epsilon: str, crops: Crops, stream: str) -> Crops:
        """Return releases of crops."""
        bits = SeededBits(SEED, f"{self.people.name} {name} {epsilon} {stream}")
        codes = private(name, epsilon).release(self.codec.encode(crops), self.codec.statistics, bits=bits)
        return self.codec.decode(codes)

    def by_photos(self, shown: Crops, make: Callable[[int], Crops] | None = None) -> dict[str, Identified]:
        """Return the attacks that hold other photos, or with `make` releases of other photos."""
        attacks, plan = {}, self.plan
        if make is None:
            held = range(1, plan.photos)
            known = np.concatenate([self.people.photo(number) for number in held])
        else:
            held = range(1, 1 + plan.parrots)
            known = np.concatenate([make(number) for number in held])
        for name, view in self.views().items():
            label = name if make is None else f"{name}, parrot"
            attacks[label] = identify(view(known), list(self.names) * len(held), view(shown), self.names)
        return attacks


def one_release(scene: Scene, told: Callable[[str], None]) -> Iterator[Row]:
    """Yield a row for every attack on every method, and one for the strongest of each kind."""
    name, back = scene.people.name, scene.back(scene.faces)
    clean = scene.by_photos(scene.faces)
    yield from _rows(scene, Place(name, QUESTION, "no codec", ""), scene.faces, clean, None)
    learned = scene.by_photos(back, lambda number: scene.back(scene.people.photo(number)))
    alone = scene.by_photos(back) | learned
    yield from _rows(scene, Place(name, QUESTION, "codec alone", ""), back, alone, None)
    for method in PRIVATE:
        more = scene.plan.seen if method == PAPER else scene.plan.learned
        for epsilon in sorted({*scene.plan.epsilons, *more}, key=float):
            yield from _private(scene, method, epsilon, embedded=epsilon in more)
            told(f"{method} {epsilon}")
    for k in scene.plan.groups:
        for same in (KSamePixel(k=k), KSameM(k=k, space=scene.codec), KSameFurthest(k=k, space=scene.codec)):
            if same.fewest * k <= len(scene.names):
                yield from _same(scene, same)
        told(f"k = {k}")


def _rows(
    scene: Scene, place: Place, shown: Crops, attacks: dict[str, Identified], limit: float | None
) -> list[Row]:
    pairs = zip(scene.faces, shown, strict=True)
    likeness = np.array([ssim(face, other, data_range=255) for face, other in pairs])
    made = [row(place, name, found, limit=limit, ssim=likeness) for name, found in attacks.items()]
    return [*made, *strongest(made)]


def _private(scene: Scene, name: str, epsilon: str, *, embedded: bool) -> Iterator[Row]:
    """Yield the attacks on a private mechanism; those with the very photos see the released code itself."""
    shown, attacks = scene.drawn(name, epsilon, scene.faces, "first"), dict[str, Identified]()
    if embedded:
        attacks |= scene.by_photos(shown)
    if name == PAPER and epsilon in scene.plan.learned:
        attacks |= scene.by_photos(
            shown,
            lambda number: scene.drawn(name, epsilon, scene.people.photo(number), f"parrot {number}"),
        )
    attacks[LIKELIHOOD], limit = by_likelihood(scene, name, epsilon, 1)
    yield from _rows(scene, Place(scene.people.name, QUESTION, name, epsilon), shown, attacks, limit)
    found, limit = by_likelihood(scene, name, epsilon, 2)
    place = Place(scene.people.name, "two releases", name, epsilon, releases=2)
    yield row(place, LIKELIHOOD, found, limit=limit)


def by_likelihood(scene: Scene, name: str, epsilon: str, releases: int) -> tuple[Identified, float]:
    """Return the maximum-likelihood attack that knows all faces exactly, and the bound for any attacker."""
    mechanism, space = private(name, epsilon), scene.codec.statistics
    codes = scene.codec.encode(scene.faces)
    faces = scaled(codes, mechanism, space)
    bits = SeededBits(SEED, f"{scene.people.name} {name} {epsilon} likelihood")
    right = np.empty((len(codes), scene.plan.draws))
    for draw in range(scene.plan.draws):
        away = np.zeros((len(codes), len(codes)))
        for _ in range(releases):
            seen = scaled(mechanism.release(codes, space, bits=bits), mechanism, space)
            away += cdist(seen, faces, "cityblock")
        right[:, draw] = away.argmin(axis=1) == np.arange(len(codes))
    names = repeated(scene.names, scene.plan.draws)
    return share(right.ravel(), names, 1 / len(codes)), best_success(releases * losses(faces))


def _same(scene: Scene, method: KSame) -> list[Row]:
    hidden = method.release(scene.faces, people=scene.names)
    attacks = scene.by_photos(hidden.faces)
    attacks |= scene.by_photos(
        hidden.faces, lambda number: method.release(scene.people.photo(number), people=scene.names).faces
    )
    for name, view in scene.views().items():
        own, seen = view(scene.faces), view(hidden.faces)
        attacks[f"{name}, {VERY}"] = identify(own, scene.names, seen, scene.names)
    sizes = np.array([len(group.members) for group in hidden.groups])[hidden.group_of]
    attacks[GROUPS] = share(1 / sizes, scene.names, 1 / len(scene.names))
    place = Place(scene.people.name, QUESTION, method.name, str(method.k))
    return _rows(scene, place, hidden.faces, attacks, 1 / method.k)
