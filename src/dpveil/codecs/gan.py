"""A neural codec: an encoder to 1 × 1 × n, and a decoder that is given gender and pose beside the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Bool, Float32, Float64

from dpveil.assets.cards import Card
from dpveil.assets.network import Network
from dpveil.assets.store import Tensors
from dpveil.codecs.base import Canvas, Crops
from dpveil.codecs.files import StoredCodec, canvas_of
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.errors import InvalidParameter, ModelError

CONDITIONS: Final = ("gender", "yaw", "pitch")
"""What the decoder is given beside a code: gender, 1 for female and -1 for male, and angles in radians."""
STEEP: Final = 1.2
"""Largest angle that is passed on, in radians."""
OVAL: Final = (0.5, 0.5, 0.47, 0.56)
"""Ellipse that the encoder sees and the decoder draws: centre and half axes, in units of a crop's side. It is
public and the same for everybody."""
SIDES: Final = range(8, 513)
"""Possible sides of a crop, in pixels."""
LENGTHS: Final = range(1, 4097)
"""Possible lengths of a code."""
ASKEW: Final = 1e-2
"""Largest error of an inner product of two rows of the basis."""


@dataclass(frozen=True, eq=False)
class GAN(StoredCodec):
    """A code holds the leading principal components of what an encoder network makes of a crop.

    `encoder` and `decoder` are ONNX networks of one picture: 1 × 3 × s × s from -1 to 1, grey beyond `OVAL`,
    to 1 × n; and 1 × (n + 3), whose last three are `CONDITIONS`, to a picture. There are no skip connections:
    a picture is a function of code and conditions. `mean` and the orthonormal rows of `basis` are the
    principal components of training codes; `energy` is W_m at the mean code, in finite differences. The
    decoder was trained on noisy codes. Source: Croft thesis §6.4-6.5, tables 6.1 and 6.2.
    """

    name: ClassVar[str] = "gan"
    summary: ClassVar[str] = "an encoder and a decoder network, trained against a critic on noisy codes"
    source: ClassVar[str] = "Croft thesis §6.4-6.5"
    frontal: ClassVar[bool] = True
    likely: ClassVar[bool] = True

    encoder: Network
    decoder: Network
    mean: Float32[np.ndarray, " n"]
    basis: Float32[np.ndarray, "m n"]
    energy: Float64[np.ndarray, " m"]
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """The number of components."""
        return len(self.basis)

    def _encode(self, crops: Crops) -> Codes:
        found = [self.encoder(planes[None])[0] for planes in pictures(crops)]
        raw = np.stack([*found, self.mean])[:-1]
        return np.asarray((raw - self.mean).astype(np.float64) @ self.basis.T.astype(np.float64))

    def _decode(self, codes: Codes) -> Crops:
        return self._rendered(codes, np.zeros((len(codes), len(CONDITIONS))))

    def render(self, codes: Codes, *, gender: float = 0.0, yaw: float = 0.0, pitch: float = 0.0) -> Crops:
        """Return the crops of codes in another gender or pose: the same code may be rendered at no cost.

        `gender` is from -1 (male) to 1 (female), angles are in radians, at most ±1.2. They must be public or
        released themselves. Raises `InvalidParameter` for other values, and as `decode`.
        """
        given = {"gender": gender, "yaw": yaw, "pitch": pitch}
        for name, value in given.items():
            most = 1.0 if name == "gender" else STEEP
            if not abs(value) <= most:
                raise InvalidParameter(name, value, f"is not from {-most} to {most}", hint="0 is neutral")
        self.decode(codes[:0])
        low, high = self.statistics.quantiles[:, 0]
        kept = np.clip(codes.astype(np.float64), low, high)
        return self._rendered(kept, np.tile([given[name] for name in CONDITIONS], (len(codes), 1)))

    def _rendered(self, codes: Codes, conditions: Float64[np.ndarray, "n 3"]) -> Crops:
        raw = codes @ self.basis + self.mean
        given = np.concatenate([raw, conditions], axis=1).astype(np.float32)
        out = np.empty((len(codes), *self.canvas), np.uint8)
        beyond = ~shown(self.canvas[0])
        for place, one in enumerate(given):
            levels = (self.decoder(one[None])[0].transpose(1, 2, 0) + 1) * np.float32(127.5)
            out[place] = np.clip(np.rint(levels), 0, 255)
            out[place][beyond] = 128
        return out

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file: networks, basis and statistics."""
        return {
            "encoder": np.frombuffer(self.encoder.contents, np.uint8),
            "decoder": np.frombuffer(self.decoder.contents, np.uint8),
            "mean": self.mean,
            "basis": self.basis,
            "energy": self.energy,
            **self.statistics.tensors(),
        }

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the codec stored in a file; raises `ModelError` for contents that do not fit together."""
        canvas = canvas_of(facts)
        side, across, channels = canvas
        if side not in SIDES or across != side or channels != 3:
            raise ModelError("the file's canvas is no square in colour")
        mean, basis = (tensors[name].astype(np.float32) for name in ("mean", "basis"))
        energy = tensors["energy"].astype(np.float64)
        count, length = len(mean), len(basis)
        fits = mean.ndim == 1 and basis.shape == (length, count) and energy.shape == (length,)
        if not fits or count not in LENGTHS or not 0 < length <= count:
            raise ModelError("the file's basis does not fit its codes")
        finite = all(np.isfinite(one).all() for one in (mean, basis, energy))
        if not finite or not (energy > 0).all():
            raise ModelError("the file's basis or energies are not finite, or an energy is not above 0")
        if np.abs(basis @ basis.T - np.eye(length)).max() > ASKEW:
            raise ModelError("the file's basis is not orthonormal")
        statistics = Statistics.of_tensors(tensors, energy, components=True)
        encoder, decoder = networks(tensors["encoder"], tensors["decoder"], side, count)
        return cls(encoder, decoder, mean, basis, energy, statistics, canvas, card)


def networks(encoder: np.ndarray, decoder: np.ndarray, side: int, count: int) -> tuple[Network, Network]:
    """Return an encoder and a decoder in arrays of bytes, run once; raises `ModelError` for any others."""
    picture, given = (1, 3, side, side), (1, count + len(CONDITIONS))
    return (
        Network.of(encoder, picture, (1, count), "encodes faces", np.inf),
        Network.of(decoder, given, picture, "decodes faces", 1.0),
    )


def pictures(crops: Crops) -> Float32[np.ndarray, "n 3 s s"]:
    """Return crops as an encoder sees them: from -1 to 1, and 0 beyond the public ellipse."""
    planes = crops.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(127.5) - 1
    return np.asarray(planes * shown(crops.shape[1]))


def shown(side: int) -> Bool[np.ndarray, "s s"]:
    """Return which pixels of a crop lie in the public ellipse."""
    at = (np.arange(side) + 0.5) / side
    x, y, a, b = OVAL
    return np.asarray(((at - x) / a)[None, :] ** 2 + ((at - y) / b)[:, None] ** 2 <= 1)
