"""k-same as a setting of a benchmark: photos are released with those of others, a gallery at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np

from dpveil.accounting import compose
from dpveil.assets.reference import Reference
from dpveil.assets.store import default_path
from dpveil.attacks.base import Memo, View, has_extra
from dpveil.bench import face_utility
from dpveil.bench.data import Split
from dpveil.bench.items import Item
from dpveil.codecs import CODEC, Codec
from dpveil.core.arrays import Float64, Int64, UInt8
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json
from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.faces.geometry import Frame
from dpveil.faces.latent import GREY
from dpveil.faces.portrait import canonical, spread
from dpveil.mechanisms.ksame import KSame, KSameM, KSamePixel, KSameSelect
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SeededBits
from dpveil.release.plan import Plan, plan

BOX: Final = re.compile(r"\d{1,6}(,\d{1,6}){3}")
"""A region of every photo: x, y, width and height in pixels."""
NOTHING: Final = "nothing"
"""The name of the setting in which photos are shown as they are: it says how strong an attacker is."""
Shown: TypeAlias = tuple[View, Guarantee | None] | None
"""What an adversary sees of one photo, and what that promises; None for no release."""


@dataclass(frozen=True)
class Setting:
    """A method, None for showing photos as they are, and the regions that it replaces, None for its own.

    `after` are steps of post-processing, such as "median:3". An adversary gets `releases` of each photo,
    which differ in their bits alone.
    """

    method: Method | None
    regions: str | None = None
    after: tuple[str, ...] = ()
    releases: int = 1

    @property
    def name(self) -> str:
        """The method's name."""
        return NOTHING if self.method is None else self.method.name

    @property
    def parameters(self) -> dict[str, Json]:
        """Every parameter of the method, and of this setting what is not usual."""
        own = {} if self.method is None else dict(self.method.parameters())
        own |= {} if self.regions is None else {"regions": self.regions}
        own |= {"after": list(self.after)} if self.after else {}
        return own | ({"releases": self.releases} if self.releases > 1 else {})

    def adversary_view(self, item: Item, seed: int) -> Shown:
        """Return what an adversary sees of a photo, and the guarantee of all of it; None for no release.

        Nothing is released of a photo in which no region is found. The bits are a function of seed, photo,
        setting and the number of the release alone.
        """
        photo = item.read()
        if self.method is None:
            nowhere = np.zeros(photo.image.shape[:2], np.bool_)
            return View(photo.image, nowhere), None
        try:
            planned = plan(photo, self.method, regions=self.regions, post_processing=self.after)
        except RegionError:
            return None
        name = f"{item.name} {self.method!r} {self.regions}"
        labels = [name, *(f"{name} again {number}" for number in range(1, self.releases))]
        first, *more = (_view(planned, SeededBits(seed, label)) for label in labels)
        total = None if planned.total is None else compose([planned.total] * self.releases)
        return replace(first, more=tuple(more)), total

    def all_shown(self, items: Sequence[Item], seed: int) -> Iterator[Shown]:
        """Yield `adversary_view` of every photo."""
        for item in items:
            yield self.adversary_view(item, seed)


def can_be_regions(text: object) -> bool:
    """Whether a benchmark can take these regions: a mask is a file of whoever made the run.

    >>> can_be_regions(None), can_be_regions("faces"), can_be_regions("1,2,3,4"), can_be_regions("mask.png")
    (True, True, True, False)
    """
    return text in (None, "whole", "faces") or (type(text) is str and BOX.fullmatch(text) is not None)


class AnySetting(Protocol):
    """What a benchmark needs of a setting: that of one photo at a time, or of galleries."""

    @property
    def method(self) -> Any:
        """The method, None for showing photos as they are."""

    @property
    def name(self) -> str:
        """The method's name."""

    @property
    def releases(self) -> int:
        """How many releases of each photo there are."""

    @property
    def parameters(self) -> dict[str, Json]:
        """Every parameter of the method, and of the setting what is not usual."""

    def all_shown(self, items: Sequence[Item], seed: int) -> Iterator[Shown]:
        """Yield what an adversary sees of each photo."""


def _view(planned: Plan, bits: SeededBits) -> View:
    """Return one release of a photo as an adversary sees it."""
    release = planned.release(bits=bits)
    hidden = np.zeros(release.image.shape[:2], np.bool_)
    for region in planned.regions:
        hidden[region.box.slices] |= True if region.mask is None else region.mask
    certificate: Mapping[str, Json] = release.certificate.to_json()
    return View(release.image, hidden, certificate)


Photos = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
USUAL: Final = "pca"
"""The codec that is taken unless another is named: eigenfaces, of dpveil-faces."""
KEPT: Final[Memo[Float64[np.ndarray, " m"]]] = Memo()


@dataclass(frozen=True)
class Portraits:
    """The space of a codec for photos of one person each, as `latent` reads whole photos.

    `encode` takes photos of any one size, and `decode` gives crops of the codec's canvas, n × s × s × 3. The
    face is placed by its landmarks; where none is found, the middle square is taken for one.
    """

    in_the_clear: ClassVar[tuple[str, ...]] = ()

    codec: Reference

    @classmethod
    def of(cls, codec: str | None) -> Portraits:
        """Return the space of a codec file, or of the usual codec.

        Raises `UsageError`, `InvalidParameter` and `ModelError` as `Reference.of`, and for no square canvas.
        """
        found = Reference.of(default_path(USUAL) if codec is None else codec, CODEC)
        height, width, _ = found.held.canvas
        if height != width:
            raise InvalidParameter("codec", f"{height}×{width}", "has no square canvas", hint="train another")
        return cls(found)

    def encode(self, crops: Photos) -> Codes:
        """Return the codes of the faces in photos, n × m."""
        return np.stack([self._code(photo) for photo in crops])

    def _code(self, image: UInt8[np.ndarray, "h w c"]) -> Float64[np.ndarray, " m"]:
        return KEPT(image, str(self.codec), lambda: self._read(image))

    def _read(self, image: UInt8[np.ndarray, "h w c"]) -> Float64[np.ndarray, " m"]:
        held: Codec = self.codec.held
        crop = canonical(Photo(np.ascontiguousarray(image)), Frame(held.canvas[0]))[None]
        seen = crop if held.canvas[2] == 3 else np.rint(crop @ GREY).astype(np.uint8)[..., None]
        return np.asarray(held.encode(seen)[0])

    def decode(self, codes: Codes) -> Photos:
        """Return the faces of codes in colour, n × s × s × 3."""
        held: Codec = self.codec.held
        crops = held.decode(codes)
        return np.ascontiguousarray(np.broadcast_to(crops, (*crops.shape[:3], 3)))


Faces = UInt8[np.ndarray, "n h w c"]
Places = Int64[np.ndarray, " n"]

TWO: Final = 2
"""Into so many galleries people are dealt for each release, if there are several."""
KEEPS: Final = "gender"
"""The attribute whose values are the classes of k-same-select, as the attribute model reads it."""
NEEDED: Final = "pip install 'dpveil[faces,models]', and dpveil install faces"


@dataclass(frozen=True)
class GalleryMethod:
    """A method that releases galleries: what makes it for a k and a codec file, None for the usual codec.

    `coded` says whether it takes a codec, and `classes` whether its groups are of one `KEEPS` each.
    """

    make: Callable[[int, str | None], KSame]
    coded: bool = False
    classes: bool = False


METHODS: Final[Mapping[str, GalleryMethod]] = {
    KSamePixel.name: GalleryMethod(lambda k, _: KSamePixel(k=k)),
    KSameSelect.name: GalleryMethod(lambda k, _: KSameSelect(k=k), classes=True),
    KSameM.name: GalleryMethod(lambda k, codec: KSameM(k=k, space=Portraits.of(codec)), coded=True),
}
"""The methods that release galleries, by name."""


@dataclass(frozen=True)
class GallerySetting:
    """A method of galleries, of which each holds one photo of everybody.

    With several `releases`, as of publishers who do not know of each other, people are dealt into two
    galleries for each, by bits of its own. Otherwise it is as `Setting`.
    """

    method: KSame
    releases: int = 1
    regions: ClassVar[None] = None

    @classmethod
    def of(cls, name: str, k: int, *, codec: str | None = None, releases: int = 1) -> GallerySetting:
        """Return the setting of the method of this name.

        Raises `UsageError` if files are missing that it needs, `InvalidParameter`, and `ModelError`.
        """
        if METHODS[name].classes and not (has_extra("faces") and has_extra("models")):
            raise UsageError(f"{name} reads the {KEEPS} of faces, for which files are missing", hint=NEEDED)
        return cls(METHODS[name].make(k, codec), releases)

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name

    @property
    def parameters(self) -> dict[str, Json]:
        """How many share a picture, the codec or what is kept, and the number of releases if several."""
        own: dict[str, Json] = {"k": self.method.k}
        own |= {"codec": str(self._space.codec)} if self._space else {}
        own |= {"keeps": KEEPS} if METHODS[self.name].classes else {}
        return own | ({"releases": self.releases} if self.releases > 1 else {})

    @property
    def _space(self) -> Portraits | None:
        return getattr(self.method, "space", None)

    def check(self, parts: Split) -> None:
        """Raise `UsageError` unless all photos have one size, and some galleries enough people of a class."""
        items = [*parts.known, *parts.probes, *parts.strangers]
        sizes = {item.read().image.shape for item in items}
        if len(sizes) > 1:
            problem = f"{self.name} takes photos of one size and number of channels, not of {len(sizes)}"
            raise UsageError(problem, hint="align and crop the faces first")
        least, there = self._least, len({item.person for item in parts.probes})
        if there < least:
            problem = f"{self.name} needs {least} people for k = {self.method.k}, and there are {there}"
            raise UsageError(problem, hint="take a lower k, or more people")
        first = _galleries(parts.probes)[0]
        faces = np.stack([parts.probes[place].read().image for place in first])
        if max(map(len, self._classes(faces))) < least:
            problem = f"{self.name} needs {least} people who are read as one {KEEPS} for k = {self.method.k}"
            raise UsageError(problem, hint="take a lower k, or more people")

    @property
    def _least(self) -> int:
        return self.method.k * (TWO if self.releases > 1 else 1)

    def all_shown(self, items: Sequence[Item], seed: int) -> Iterator[Shown]:
        """Yield what an adversary sees of each photo, as `Setting.all_shown`; of galleries that are too
        small, and of classes in them that are, nothing is released.
        """
        found: list[list[View]] = [[] for _ in items]
        for gallery in map(np.array, _galleries(items)):
            if len(gallery) < self._least:
                continue
            name = items[gallery[0]].name  # the attacker's galleries are dealt by other bits
            faces = np.stack([items[place].read().image for place in gallery])
            classes = [own for own in self._classes(faces) if len(own) >= self._least]
            for release in range(self.releases):
                bits = SeededBits(seed, f"{self.method!r} {name} release {release}")
                for own in classes:
                    for place, view in zip(gallery[own], self._release_once(faces[own], bits), strict=True):
                        found[place].append(view)
        promise = self.method.guarantee(faces=max(self._least, len({item.person for item in items})))
        for views in found:
            yield (replace(views[0], more=tuple(views[1:])), promise) if views else None

    def _classes(self, faces: Faces) -> list[Places]:
        """Return the places of the faces of each class; all are one where the method keeps none."""
        if not METHODS[self.name].classes:
            return [np.arange(len(faces))]
        read = np.array([face_utility.reading(face)[KEEPS] for face in faces])
        return [np.flatnonzero(read == value) for value in np.unique(read)]

    def _release_once(self, faces: Faces, bits: SeededBits) -> list[View]:
        """Return what is seen of one release of the faces of a class, in their order."""
        order = np.argsort(bits.words(len(faces)), kind="stable")
        alone = faces if self._space is None else self._space.decode(self._space.encode(faces))
        alone = self._fit_size(alone, faces.shape[1:])
        views: dict[int, View] = {}
        for part in np.array_split(order, TWO if self.releases > 1 else 1):
            names = [str(face) for face in part]
            made = self.method.release(faces[part], people=names, classes=["one"] * len(part))
            pictures = self._fit_size(made.faces, faces.shape[1:])
            for group in made.groups:
                for member in group.members:
                    others = tuple(alone[part[one]] for one in group.averaged if one != member)
                    views[int(part[member])] = self._view(pictures[member], others)
        return [views[place] for place in range(len(faces))]

    @staticmethod
    def _fit_size(pictures: Faces, size: tuple[int, ...]) -> Faces:
        """Return pictures of the photos' height, width and channels."""
        return pictures if pictures.shape[1:] == size else np.stack([spread(one, size) for one in pictures])

    def _view(self, image: UInt8[np.ndarray, "h w c"], others: tuple[np.ndarray, ...]) -> View:
        """Return one release with its public settings."""
        certificate: dict[str, Json] = {
            "method": self.name,
            "parameters": {name: value for name, value in self.parameters.items() if name != "releases"},
            "regions": [],
        }
        hidden = np.ones(image.shape[:2], np.bool_)
        return View(image, hidden, certificate, others=others)


def _galleries(items: Sequence[Item]) -> list[list[int]]:
    """Return the places of the first photo of everybody, of the second, and so on."""
    found: list[list[int]] = []
    seen: dict[str, int] = {}
    for place, item in enumerate(items):
        number = seen[item.person] = seen.get(item.person, -1) + 1
        if number == len(found):
            found.append([])
        found[number].append(place)
    return found
