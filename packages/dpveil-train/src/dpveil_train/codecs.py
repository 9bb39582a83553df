"""Training of codecs, from images to files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import save
from dpveil.codecs import AAM, PCA, Codec, Dictionary, Mixture, StoredCodec
from dpveil.core.rationals import Json
from dpveil.errors import UnknownName, UsageError
from dpveil.metrics import psnr, ssim
from dpveil_train import aam, dictionary, mixture, pca
from dpveil_train.crops import CropFile, photos
from dpveil_train.landmarks import WORDS, Finder
from dpveil_train.order import Order, Progress, Trained, refuse_none, silent

TRAINERS: Final[dict[str, Any]] = {
    PCA.name: pca.train_pca,
    Dictionary.name: dictionary.train_dictionary,
    AAM.name: aam.train_aam,
    Mixture.name: mixture.train_mixture,
}
"""The function that trains each codec on a `Source` of crops."""
PASSES: Final = {
    PCA.name: pca.PASSES,
    Dictionary.name: dictionary.PASSES,
    AAM.name: aam.PASSES,
    Mixture.name: mixture.PASSES,
}
"""The number of passes that each makes over the crops."""


@dataclass(frozen=True, kw_only=True)
class CodecOrder(Order):
    """An order for a codec: its name, its canvas (height and width in pixels, channels), and its length.

    `length` is the number of coordinates of a code; `landmarks` is needed for "aam". Raises `UnknownName`.
    """

    codec: str
    canvas: tuple[int, int, int] = (128, 128, 3)
    length: int = 100
    landmarks: Finder | None = None

    def __post_init__(self) -> None:
        if self.codec not in TRAINERS:
            raise UnknownName("codec", self.codec, TRAINERS)

    def check(self) -> None:
        """Raise `UsageError` for "aam" without landmarks, and the errors of `Order.check`."""
        super().check()
        if self.codec == AAM.name and self.landmarks is None:
            raise UsageError(
                "aam needs 68 landmarks of every crop; five say where a face is, and not its shape",
                hint="allow a file of them: --landmarks-68 package, or a dlib file of your own",
            )

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the codec together with the images and the seed."""
        side, _, channels = self.canvas
        own: dict[str, Json] = {"side": side, "grey": channels == 1, "length": self.length}
        if self.landmarks is None:
            return {**own, **super().settings()}
        file = {"landmarks": WORDS, "landmark_file_sha256": self.landmarks.digest}
        return {**own, **super().settings(), **file}


def train_codec(order: CodecOrder, progress: Progress = silent) -> Trained[StoredCodec]:
    """Train a codec on the images, evaluate it, and write the model and its card.

    Raises `PhotoError` if no image can be read, `InvalidParameter` if they are too few or too similar, and
    the errors of `Order.check` and of writing.
    """
    order.check()
    with (
        progress(len(order.paths), "reading") as step,
        CropFile.of(photos(order.paths, step), order.canvas, order.out.parent) as crops,
    ):
        refuse_none(crops.count, crops.failed, "give .tar files with JPEG or PNG files")
        codec = _fit(order, crops, progress)
        codec = codec.with_card(replace(codec.card, metrics=reconstruction_metrics(codec, crops)))
        digest = save(codec, order.out, replace=order.replace)
        return Trained(codec, digest, crops.count, crops.failed)


def reconstruction_metrics(codec: Codec, crops: CropFile) -> dict[str, Json]:
    """Return the mean PSNR in dB and SSIM of held-out crops after encoding and decoding, each at most 100."""
    if not len(crops.held_out):
        return {}
    decoded = ((batch, codec.decode(codec.encode(batch))) for batch in crops.held_out_crops())
    noise, alike = likeness(pair for pairs in decoded for pair in zip(*pairs, strict=True))
    return {"images": len(crops.held_out), "psnr": round(noise, 2), "ssim": round(alike, 4)}


def likeness(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Return the mean PSNR in dB, each at most 100, and SSIM of pairs of pictures."""
    found = [(min(100.0, psnr(*pair, data_range=255)), ssim(*pair, data_range=255)) for pair in pairs]
    noise, alike = np.mean(found, axis=0)
    return float(noise), float(alike)


def _fit(order: CodecOrder, crops: CropFile, progress: Progress) -> StoredCodec:
    held, passes = len(crops.held_out), PASSES[order.codec]
    settings = {**order.settings(), "images": crops.count - held, "passes": passes}
    card = Card(order.codec, order.data, order.terms, order.seed, settings)
    more: dict[str, Any] = {} if order.landmarks is None else {"landmarks": order.landmarks}
    rounds = mixture.ROUNDS if order.codec == Mixture.name else 0
    with progress(crops.batches(passes) + rounds, "learning") as step:
        source = crops.source(order.seed, step)
        if rounds:
            more["step"] = step
        trained: StoredCodec = TRAINERS[order.codec](
            source, card=card, seed=order.seed, length=order.length, **more
        )
        return trained
