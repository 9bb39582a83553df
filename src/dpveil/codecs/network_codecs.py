"""GAN and StyleGAN, and what codecs of networks share: the ellipse that they show, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.assets.trained_files import Tensors, arrays_of
from dpveil.codecs.base import Canvas, Crops, StoredCodec, canvas_of
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.core.array_types import Bool, Float32, Float64
from dpveil.errors import InvalidParameter, ModelError

OVAL: Final = (0.5, 0.5, 0.47, 0.56)
"""Ellipse that encoders see and decoders draw: centre and half axes, in units of a crop's side. It is public
and the same for everybody."""
SIDES: Final = range(8, 513)  # possible sides of a crop, in pixels
LENGTHS: Final = range(1, 4097)  # possible lengths of a code
COUNTS: Final = range(1, 9217)
"""How many numbers an encoder may give, of which a code is made; StyleGAN's W+ has 9216 at 1024 pixels."""
ASKEW: Final = 1e-2  # largest error of an inner product of two rows of the basis


@dataclass(frozen=True, eq=False)
class EncoderDecoder(StoredCodec):
    """The base of codecs of two networks: a code holds principal components of what an encoder gives.

    `encoder` and `decoder` are ONNX networks of one picture: 1 × 3 × s × s from -1 to 1, grey beyond `OVAL`,
    to 1 × n; and 1 × (n + c), whose last c are `conditions`, 0 if nothing is asked for, to a picture. There
    are no skip connections: a picture is a function of code and conditions. `mean` and the orthonormal rows
    of `basis` are the principal components of training codes; `energy` is W_m at the mean code, in finite
    differences. A concrete codec has a name, its `conditions`, how many times as `large` as usual its
    networks may be and how `bright` on average what they make of zeros, and no fields of its own.
    """

    likely: ClassVar[bool] = True
    conditions: ClassVar[tuple[str, ...]] = ()
    large: ClassVar[int] = 1
    bright: ClassVar[float] = 1.0

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
        return len(self.basis)

    def _encode(self, crops: Crops) -> Codes:
        # Huge weights give infinities for some faces, and whether there is a release must not depend on the
        # face: such numbers count as their mean.
        found = [self.encoder.raw(planes[None])[0] for planes in pictures(crops)]
        away = np.stack([*found, self.mean])[:-1].astype(np.float64) - self.mean
        return np.asarray(np.where(np.isfinite(away), away, 0) @ self.basis.T.astype(np.float64))

    def _decode(self, codes: Codes) -> Crops:
        return self._render_codes(codes, np.zeros(len(self.conditions)))

    def _render_codes(self, codes: Codes, conditions: Float64[np.ndarray, " c"]) -> Crops:
        raw = codes @ self.basis + self.mean
        given = np.concatenate([raw, np.tile(conditions, (len(codes), 1))], axis=1)
        return decode_crops(self.decoder, given, self.canvas)

    def tensors(self) -> dict[str, np.ndarray]:
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
        canvas = square_of(facts)
        mean, basis = arrays_of(tensors, {}, np.float32, mean="n", basis="m n")
        length, count = basis.shape
        (energy,) = arrays_of(tensors, {"m": length}, np.float64, energy="m")
        if count not in COUNTS or length not in LENGTHS or length > count:
            raise ModelError("the file's basis does not fit its codes")
        if not (energy > 0).all():
            raise ModelError("an energy of the file is not above 0")
        if np.abs(basis @ basis.T - np.eye(length)).max() > ASKEW:
            raise ModelError("the file's basis is not orthonormal")
        statistics = Statistics.of_tensors(tensors, energy, components=True)
        encoder, decoder = cls.networks(tensors["encoder"], tensors["decoder"], canvas[0], count)
        return cls(encoder, decoder, mean, basis, energy, statistics, canvas, card)

    @classmethod
    def networks(
        cls, encoder: np.ndarray, decoder: np.ndarray, side: int, count: int
    ) -> tuple[Network, Network]:
        """Return an encoder to `count` numbers and a decoder in arrays of bytes, each run once.

        Raises `ModelError` for any other networks.
        """
        picture, given = (1, 3, side, side), (1, count + len(cls.conditions))
        return (
            Network.of(encoder, picture, (1, count), "encodes faces", np.inf, cls.large),
            Network.of(decoder, given, picture, "decodes faces", cls.bright, cls.large),
        )


def square_of(facts: Mapping[str, Any]) -> Canvas:
    """Return the canvas in a file's header; raises `ModelError` if it is no square in colour."""
    canvas = canvas_of(facts)
    side, across, channels = canvas
    if side not in SIDES or across != side or channels != 3:
        raise ModelError("the file's canvas is no square in colour")
    return canvas


def pictures(crops: Crops) -> Float32[np.ndarray, "n 3 s s"]:
    """Return crops as an encoder sees them: from -1 to 1, and 0 beyond the public ellipse."""
    planes = crops.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(127.5) - 1
    return np.asarray(planes * ellipse_mask(crops.shape[1]))


def decode_crops(decoder: Network, given: Float64[np.ndarray, "n m"], canvas: Canvas) -> Crops:
    """Return the crops that a decoder makes of each row alone, grey beyond the public ellipse."""
    out = np.empty((len(given), *canvas), np.uint8)
    beyond = ~ellipse_mask(canvas[0])
    for place, one in enumerate(given.astype(np.float32)):
        levels = (decoder(one[None])[0].transpose(1, 2, 0) + 1) * np.float32(127.5)
        out[place] = np.clip(np.rint(levels), 0, 255)
        out[place][beyond] = 128
    return out


def ellipse_mask(side: int) -> Bool[np.ndarray, "s s"]:
    at = (np.arange(side) + 0.5) / side
    x, y, a, b = OVAL
    return np.asarray(((at - x) / a)[None, :] ** 2 + ((at - y) / b)[:, None] ** 2 <= 1)


@dataclass(frozen=True, eq=False)
class StyleGAN(EncoderDecoder):
    """A code holds coordinates of W+, layers × style: leading principal components, or its own.

    The generator's noise inputs are constants of its network, so that a picture is a function of its code.
    Pictures have the pose of the code. Its networks may be four times as large as those of other codecs.
    Source: Li & Clifton 2021 §3; Karras et al. 2020.
    """

    name: ClassVar[str] = "stylegan"
    summary: ClassVar[str] = "an encoder network to the styles of StyleGAN2's generator"
    source: ClassVar[str] = "Li & Clifton 2021 §3"
    large: ClassVar[int] = 4
    bright: ClassVar[float] = 2.0


CONDITIONS: Final = ("gender", "yaw", "pitch")
"""What the decoder is given beside a code: gender, 1 for female and -1 for male, and angles in radians."""
CLEAR: Final = 2.0
"""Largest gender that is passed on; training had 1. Of random codes 97 % are read as told, or 78 % at 1."""
STEEP: Final = 1.2  # largest angle that is passed on, in radians


@dataclass(frozen=True, eq=False)
class GAN(EncoderDecoder):
    """A code holds the leading principal components of what an encoder network makes of a crop.

    The decoder was trained on noisy codes. Source: Croft thesis §6.4-6.5, tables 6.1 and 6.2.
    """

    name: ClassVar[str] = "gan"
    summary: ClassVar[str] = "an encoder and a decoder network, trained against a critic on noisy codes"
    source: ClassVar[str] = "Croft thesis §6.4-6.5"
    frontal: ClassVar[bool] = True
    conditions: ClassVar[tuple[str, ...]] = CONDITIONS
    attributes: ClassVar[Mapping[str, tuple[str, tuple[float, ...]]]] = {
        "gender": ("gender", (-CLEAR, CLEAR))
    }

    def render(self, codes: Codes, *, gender: float = 0.0, yaw: float = 0.0, pitch: float = 0.0) -> Crops:
        """Return the crops of codes in another gender or pose: the same code may be rendered at no cost.

        `gender` is -1 (male) to 1 (female), or up to ±2 to outweigh what the code says; angles are in
        radians, at most ±1.2. They must be public or released themselves. Raises `InvalidParameter` for other
        values, and as `decode`.
        """
        given = {"gender": gender, "yaw": yaw, "pitch": pitch}
        for name, value in given.items():
            most = CLEAR if name == "gender" else STEEP
            if not abs(value) <= most:
                raise InvalidParameter(name, value, f"is not from {-most} to {most}", hint="0 is neutral")
        self.decode(codes[:0])
        low, high = self.statistics.quantiles[:, 0]
        kept = np.clip(codes.astype(np.float64), low, high)
        return self._render_codes(kept, np.array([given[name] for name in CONDITIONS]))
