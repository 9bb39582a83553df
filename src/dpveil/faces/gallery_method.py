"""A face of nobody that resembles the original, drawn from a gallery by the rank of its distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpveil.assets.file_reference import AssetField
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import OptionalCount, Positive
from dpveil.core.rationals import Json, to_json
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.faces.base import Crops, FaceMethod
from dpveil.faces.face_gallery import GALLERY, FaceGallery
from dpveil.faces.geometry.align import Frame
from dpveil.mechanisms.latent.base import TIME
from dpveil.mechanisms.rank_choice import RankChoice
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, kw_only=True)
class Gallery(FaceMethod):
    """A face of nobody, drawn from a gallery by the rank of its distance to the original.

    `gallery` is "default", or the file of a `FaceGallery`; certificates contain its hash. The `near` nearest
    faces have weight e^ε (by default the number that minimises the mean rank), and all others 1. Pure ε-DP
    for any two crops: the probabilities of two ranks differ by a factor of at most e^ε, and nothing else
    depends on the crop (proof in `mechanisms.rank_choice`). `protect` and `placing` as in
    `FaceMethod`. Raises `InvalidParameter`, `ModelError`, and `UsageError` if the default gallery is not
    installed. Source: McKenna & Sheldon 2020; docs, "Gallery".

    >>> method = Gallery(epsilon=8, gallery="gallery sha256:" + 64 * "0")
    >>> str(method.guarantee(height=100, width=80, channels=3))
    '8-DP, any-image'
    """

    name: ClassVar[str] = "gallery"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "a synthetic face that is like the face, drawn by rank"
    source: ClassVar[str] = "McKenna & Sheldon 2020"
    typical: ClassVar[Mapping[str, Json]] = {"epsilon": 8}
    help: ClassVar[Mapping[str, str]] = {
        "gallery": "The synthetic faces that are shown, or default: those of dpveil-faces.",
        "near": "How many of the nearest faces get the higher chance.",
    }

    epsilon: Positive = Positive()
    near: OptionalCount = OptionalCount(optional=True)
    gallery: AssetField = AssetField(GALLERY)

    def __post_init__(self) -> None:
        self._check_protect()
        if self.gallery.source is not None:
            self._fits()

    def _fits(self) -> None:
        """Raise `InvalidParameter` if ε is too large for this gallery."""
        try:
            _ = self._choice.weights
        except NoiseError as error:
            problem = f"is too large for a choice among {len(self._faces)} faces"
            raise InvalidParameter(
                "epsilon", to_json(self.epsilon), problem, hint="30 or less; 12 is nearly always the nearest"
            ) from error

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        scope = Scope("the canonical crop of the face", (TIME,))
        return Guarantee(kind="pure", epsilon=self.epsilon, relation=Relation("any-image"), scope=scope)

    def parameters(self) -> dict[str, Json]:
        return {**super().parameters(), "gallery": str(self.gallery)}

    @property
    def frame(self) -> Frame:
        return Frame(128)

    @property
    def turned(self) -> bool:
        """True: faces of a gallery look ahead, whatever the photo shows."""
        return True

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Load the gallery; raises any error that would prevent drawing a face."""
        super().prepare(height=height, width=width, channels=channels)
        _ = self._choice.weights, self._faces.features

    @cached_property
    def _faces(self) -> FaceGallery:
        faces: FaceGallery = self.gallery.held
        return faces

    @cached_property
    def _choice(self) -> RankChoice:
        return RankChoice(count=len(self._faces), epsilon=self.epsilon, near=self.near)

    def _draw(self, crops: Crops, bits: BitSource) -> Crops:
        faces = self._faces
        shown: Crops = faces.faces[self._choice.choose(faces.distances(crops), bits)]
        return shown
