"""A gallery of faces of nobody, and the file that keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.file_reference import Kind
from dpveil.assets.model_cards import Card, CardWords
from dpveil.assets.trained_files import Tensors, TrainedFile
from dpveil.core.array_types import Float32, Float64, Int8, Int64, UInt8
from dpveil.core.rationals import Json
from dpveil.errors import InvalidParameter, ModelError, PhotoError
from dpveil.faces.attribute_model import VALUES, labelled
from dpveil.faces.geometry.align import Frame
from dpveil.io.reading import read_bytes
from dpveil.opencv import cv2

if TYPE_CHECKING:
    from dpveil.faces.geometry.head_picture import View

SIDE: Final = 128  # side of a face in pixels
FRAME: Final = Frame(SIDE)
SMALL: Final = 32  # side of the downscaled faces from which features are computed, in pixels
QUALITY: Final = 92  # quality of the WebP pictures in a file, out of 100
MOST_FACES: Final = 1 << 13  # decoded, so many take 400 MB
MOST_FEATURES: Final = 512
MOST_VIEWS: Final = 64
DEFAULT: Final = "275c2ae0ad2109b6cd71d1087bc43352d0919d88a080e75df18514b3b225290d"  # of dpveil-faces
BATCH: Final = 256  # crops whose features are computed at once
Faces = UInt8[np.ndarray, "n 128 128 3"]
CAUTION: Final = (
    "Labels are what most of the people in an average are labelled with in the training data. They are",
    "what its annotators or models saw in a picture, not what a person says of themself.",
)
ORIGIN: Final = (
    "Every face is an average of several people. It may resemble somebody, who need not be one of them.",
)
PROMISE: Final = "A gallery alone promises nothing. Privacy comes from a mechanism that draws a face of it."


@dataclass(frozen=True, eq=False)
class FaceGallery(TrainedFile):
    """Faces of nobody, as WebP `pictures` of 128 × 128 pixels in the frame of UTKFace.

    `labels[a][i]` is the index in `values[a]` of the most frequent label among the contributors to face i.
    `readings[a][i]` is what face i itself looks like, as an index in `VALUES`: what a model reads in it, and
    its tone; `yaws[i]` is the turn of its head in degrees. The `rows` are a linear map, learned from public
    faces, from the pixels of a face of 32 × 32 to the features that `distances` compares.
    """

    name: ClassVar[str] = "gallery"
    hint: ClassVar[str] = "the default one comes with: dpveil install faces"

    pictures: tuple[bytes, ...]
    labels: Mapping[str, Int8[np.ndarray, " n"]]
    values: Mapping[str, tuple[str, ...]]
    readings: Mapping[str, Int8[np.ndarray, " n"]]
    yaws: Int8[np.ndarray, " n"]
    rows: Float32[np.ndarray, "k 3072"]
    card: Card

    def __len__(self) -> int:
        return len(self.pictures)

    @cached_property
    def faces(self) -> Faces:
        """Every face, n × 128 × 128 × 3, uint8 sRGB, read-only; raises `ModelError` for a bad picture."""
        out = self.decoded(range(len(self)))
        out.setflags(write=False)
        return out

    def looks(self, name: str) -> Int64[np.ndarray, " n"] | None:
        """Return each face's index in `VALUES` of an attribute, as labelled or read; None without either."""
        return next(iter(self.labels_and_readings(name)), None)

    def labels_and_readings(self, name: str) -> list[Int64[np.ndarray, " n"]]:
        """Return faces' indices in `VALUES` of an attribute: of the label, if any, and of the reading."""
        label, reading = labelled(self.labels, self.values, name), self.readings.get(name)
        both = label, None if reading is None else reading.astype(np.int64)
        return [one for one in both if one is not None]

    def view(self, face: int, yaw: int | None) -> View:
        """Return a face, turned to a yaw in degrees unless it is None; raises `ModelError`."""
        return _view(self, face, yaw)

    def decoded(self, numbers: Sequence[int], tones: Sequence[int] = ()) -> Faces:
        """Return the faces of these indices, k × 128 × 128 × 3, uint8 sRGB; raises `ModelError`.

        With `tones`, a class for every face, each is brought to the lightness of its class.
        """
        from dpveil.faces.geometry import tone

        out = np.empty((len(numbers), SIDE, SIDE, 3), np.uint8)
        for place, number in enumerate(numbers):
            try:
                photo = read_bytes(self.pictures[number], f"face {number}", max_pixels=SIDE * SIDE)
            except PhotoError as error:
                raise ModelError(error.message, hint=error.hint) from error
            if photo.image.shape != out.shape[1:]:
                raise ModelError(f"face {number} is not {SIDE} × {SIDE} in colour")
            out[place] = photo.image
        made: dict[tuple[int, int], np.ndarray] = {}
        for place, (number, wanted) in enumerate(zip(numbers, tones, strict=bool(tones))):
            if (number, wanted) not in made:
                made[number, wanted] = np.rint(tone.toned(out[place], tone.CROP, tone.LEVELS[wanted]))
            out[place] = made[number, wanted]
        return out

    @cached_property
    def features(self) -> Float64[np.ndarray, "n k"]:
        return features_of(self.faces, self.rows)

    def distances(self, crops: UInt8[np.ndarray, "m 128 128 3"]) -> Float64[np.ndarray, "m n"]:
        """Return the Euclidean distance of each crop to every face, in feature space."""
        at, of = features_of(crops, self.rows), self.features
        square = (at**2).sum(axis=1)[:, None] - 2 * at @ of.T + (of**2).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(square, 0)))

    def facts(self) -> dict[str, Json]:
        """Return the labels' names and values, and the readings' names, for the file's header."""
        values: Json = {name: list(words) for name, words in self.values.items()}
        return {"values": values, "readings": list(self.readings)}

    def tensors(self) -> dict[str, np.ndarray]:
        sizes = [len(picture) for picture in self.pictures]
        kept: dict[str, np.ndarray] = {
            "pictures": np.frombuffer(b"".join(self.pictures), np.uint8),
            "ends": np.cumsum(sizes, dtype=np.int64),
            "rows": self.rows.astype(np.float16),
            "yaws": self.yaws,
        }
        kept |= {f"label {name}": self.labels[name] for name in self.values}
        return kept | {f"reading {name}": self.readings[name] for name in self.readings}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the gallery stored in a file; raises `ModelError` for contents that do not fit together."""
        data, ends = tensors["pictures"], tensors["ends"].astype(np.int64)
        starts = np.concatenate([[0], ends[:-1]])
        rows = tensors["rows"].astype(np.float32)
        if ends.ndim != 1 or not 2 <= len(ends) <= MOST_FACES or data.dtype != np.uint8 or data.ndim != 1:
            raise ModelError(f"the file is not a gallery of 2 to {MOST_FACES} faces")
        if not (starts < ends).all() or ends[-1] != len(data):
            raise ModelError("the file's pictures are not contiguous")
        if (
            rows.ndim != 2
            or rows.shape[1] != SMALL * SMALL * 3
            or not 0 < len(rows) <= MOST_FEATURES
            or not np.isfinite(rows).all()
        ):
            raise ModelError(f"the file's features are not 1 to {MOST_FEATURES} finite rows of 3072")
        values = {str(name): tuple(str(word) for word in words) for name, words in facts["values"].items()}
        labels = {name: tensors[f"label {name}"] for name in values}
        read = {str(name): tensors[f"reading {name}"] for name in facts["readings"]}
        kept = [(name, labels[name], len(words)) for name, words in values.items()]
        for name, label, count in kept + [(name, own, len(VALUES[name])) for name, own in read.items()]:
            fits = label.shape == ends.shape and label.dtype == np.int8
            if not fits or not ((label >= 0) & (label < count)).all():
                raise ModelError(f"the file's labels of {name} do not fit its faces")
        yaws = tensors["yaws"]
        if yaws.shape != ends.shape or yaws.dtype != np.int8:
            raise ModelError("the file's yaws do not fit its faces")
        pictures = tuple(data[start:end].tobytes() for start, end in zip(starts, ends, strict=True))
        return cls(pictures, labels, values, read, yaws, rows, card)

    def check(self, digest: str) -> None:
        """Decode every face to check it, except for the default gallery, which is known to be intact."""
        if digest != DEFAULT:
            _ = self.faces

    def card_words(self) -> CardWords:
        return CardWords(
            what=f"A dpveil gallery: {len(self)} faces of nobody, 128 × 128 pixels in colour.",
            labels=[self._counted(name) for name in self.values],
            caution=CAUTION,
            origin=ORIGIN,
            making="Making",
            measured="Measured",
            unmeasured="Nothing.",
            promise=PROMISE,
        )

    def _counted(self, name: str) -> str:
        """Return, as text, how many faces have each value of a label."""
        labels = self.labels[name].tolist()
        counts = (f"{word} {labels.count(place)}" for place, word in enumerate(self.values[name]))
        return f"{name}: {', '.join(counts)}"


@lru_cache(maxsize=MOST_VIEWS)
def _view(gallery: FaceGallery, face: int, yaw: int | None) -> View:
    from dpveil.faces.geometry.head_picture import View

    return View.of_crop(gallery.decoded([face])[0], FRAME, yaw, float(gallery.yaws[face]))


def webp(face: UInt8[np.ndarray, "128 128 3"]) -> bytes:
    """Return a face, uint8 sRGB, as WebP; raises `InvalidParameter` if it cannot be encoded."""
    done, data = cv2.imencode(
        ".webp", cv2.cvtColor(face, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_WEBP_QUALITY, QUALITY]
    )
    if not done:
        raise InvalidParameter("face", str(face.shape), "cannot be compressed")
    return bytes(data)


def small(crops: UInt8[np.ndarray, "n 128 128 3"]) -> Float32[np.ndarray, "n 3072"]:
    """Return crops downscaled to 32 × 32 pixels (means of 4 × 4) as rows of levels."""
    times = SIDE // SMALL
    means = crops.reshape(len(crops), SMALL, times, SMALL, times, 3).mean(axis=(2, 4), dtype=np.float32)
    return np.asarray(means.reshape(len(crops), -1))


def features_of(
    crops: UInt8[np.ndarray, "n 128 128 3"], rows: Float32[np.ndarray, "k 3072"]
) -> Float64[np.ndarray, "n k"]:
    """Return the features of crops, n × k, by the linear map `rows` of `FaceGallery`."""
    starts = range(0, len(crops), BATCH)
    parts = [small(crops[start : start + BATCH]).astype(np.float64) @ rows.T for start in starts]
    return np.asarray(np.concatenate([*parts, np.empty((0, len(rows)))]))


GALLERY: Final = Kind(
    noun="gallery",
    option="gallery",
    written="gallery sha256:…",
    hint=FaceGallery.hint,
    kinds={FaceGallery.name: FaceGallery},
    holds=FaceGallery,
    default="gallery",
)
"""Files of galleries; the default is that of dpveil-faces."""
