"""Training of codecs, from images to files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import save
from dpveil.codecs import AAM, PCA, Codec, Dictionary, Mixture, StoredCodec
from dpveil.core.rationals import Json
from dpveil.errors import PhotoError, UnknownName
from dpveil.metrics import psnr, ssim
from dpveil_train import aam, dictionary, mixture, pca
from dpveil_train.crops import CropFile, photos
from dpveil_train.landmarks import WORDS, Finder
from dpveil_train.order import Order, Progress, Trained, silent

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
ROUNDS: Final = {Mixture.name: mixture.ROUNDS}
"""The number of further steps on codes in memory, of trainers that have any."""


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
        _refuse_none(crops)
        codec = _fit(order, crops, progress)
        codec = codec.with_card(replace(codec.card, metrics=reconstruction_metrics(codec, crops)))
        digest = save(codec, order.out, replace=order.replace)
        return Trained(codec, digest, crops.count, crops.failed)


def reconstruction_metrics(codec: Codec, crops: CropFile) -> dict[str, Json]:
    """Return the mean PSNR in dB and SSIM of held-out crops after encoding and decoding, each at most 100."""
    found = [
        (psnr(crop, seen, data_range=255), ssim(crop, seen, data_range=255))
        for batch in crops.held_out_crops()
        for crop, seen in zip(batch, codec.decode(codec.encode(batch)), strict=True)
    ]
    if not found:
        return {}
    noise, likeness = np.mean(np.minimum(found, 100), axis=0)
    return {"images": len(found), "psnr": round(float(noise), 2), "ssim": round(float(likeness), 4)}


def _refuse_none(crops: CropFile) -> None:
    if crops.count:
        return
    if len(crops.failed) == 1:
        raise crops.failed[0]
    raise (
        PhotoError(
            f"none of {len(crops.failed)} images can be read", hint=f"the first one: {crops.failed[0]}"
        )
        if crops.failed
        else PhotoError("the shards contain no images", hint="give .tar files with JPEG or PNG files")
    )


def _fit(order: CodecOrder, crops: CropFile, progress: Progress) -> StoredCodec:
    held, passes = len(crops.held_out), PASSES[order.codec]
    settings = {**order.settings(), "images": crops.count - held, "passes": passes}
    card = Card(order.codec, order.data, order.terms, order.seed, settings)
    more: dict[str, Any] = {} if order.landmarks is None else {"landmarks": order.landmarks}
    rounds = ROUNDS.get(order.codec, 0)
    with progress(crops.batches(passes) + rounds, "learning") as step:
        source = crops.source(order.seed, step)
        if rounds:
            more["step"] = step
        trained: StoredCodec = TRAINERS[order.codec](
            source, card=card, seed=order.seed, length=order.length, **more
        )
        return trained
