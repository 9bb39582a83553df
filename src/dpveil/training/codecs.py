"""One training from its images to its files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpveil import __version__
from dpveil.training.landmarks import WORDS, Finder
from dpveil.cli.progress import bar
from dpveil.codecs import TABLE, Card, Codec, card_path, save
from dpveil.training.checkpoint import FileCheckpoint
from dpveil.training.crops import CropFile, photos
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, PhotoError
from dpveil.metrics import psnr, ssim


@dataclass(frozen=True)
class Order:
    """What is to be trained."""

    codec: str
    paths: tuple[Path, ...]
    out: Path
    canvas: tuple[int, int, int]
    length: int
    seed: int
    data: str
    terms: str
    force: bool
    landmarks: Finder | None = None

    def settings(self) -> dict[str, Json]:
        """Return what, beside the images and the seed, decides what is learned."""
        side, _, channels = self.canvas
        own: dict[str, Json] = {
            "side": side,
            "grey": channels == 1,
            "length": self.length,
            "dpveil": __version__,
        }
        if self.landmarks is None:
            return own
        return {**own, "landmarks": WORDS, "landmark_file_sha256": self.landmarks.digest}


@dataclass(frozen=True)
class Trained:
    """What was trained: from how many images, and which were left out."""

    codec: Codec
    digest: str
    images: int
    failed: list[DPVeilError]

    def to_json(self, order: Order) -> dict[str, Any]:
        """Return the JSON document of the command."""
        done = {
            "output": str(order.out),
            "card": str(card_path(order.out)),
            "sha256": self.digest,
            "codec": self.codec.name,
            "length": self.codec.length,
            "canvas": list(self.codec.canvas),
            "images": self.images,
            "metrics": dict(self.codec.card.metrics),
        }
        failed = [{"error": error.message, "hint": error.hint} for error in self.failed]
        return {"trained": [done], "failed": failed}


def trained(order: Order) -> Trained:
    """Read the images, learn from them, measure, and write model and card.

    Raises `PhotoError` where no image can be read, and what training and writing raise.
    """
    with (
        bar(len(order.paths), "reading") as step,
        CropFile.of(photos(order.paths, step), order.canvas, order.out.parent) as crops,
    ):
        _refuse_none(crops)
        checkpoint = _checkpoint(order, crops)
        codec = _fitted(order, crops, checkpoint)
        codec = codec.with_card(replace(codec.card, metrics=measured(codec, crops)))
        digest = save(codec, order.out, replace=order.force)
        checkpoint.remove()
        return Trained(codec, digest, crops.count, crops.failed)


def measured(codec: Codec, crops: CropFile) -> dict[str, Json]:
    """Return means of PSNR in dB and SSIM of decoded codes against the crops that were held out."""
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
        else PhotoError("the shards hold no images", hint="give .tar files with JPEG or PNG files")
    )


def _checkpoint(order: Order, crops: CropFile) -> FileCheckpoint:
    """Return the file beside the model that keeps what is finished of this very training."""
    about = {"codec": order.codec, "seed": order.seed, "crops": crops.digest, **order.settings()}
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    return FileCheckpoint(order.out.with_name(f".{order.out.name}.checkpoint"), key)


def _fitted(order: Order, crops: CropFile, checkpoint: FileCheckpoint) -> Codec:
    kind = TABLE[order.codec]
    held = len(crops.held_out)
    card = Card(
        codec=order.codec,
        data=order.data,
        terms=order.terms,
        seed=order.seed,
        settings={**order.settings(), "images": crops.count - held, "passes": kind.passes},
    )
    with bar(crops.batches(kind.passes), "learning") as step:
        source = crops.source(order.seed, step)
        more: dict[str, Any] = {} if order.landmarks is None else {"landmarks": order.landmarks}
        settled = {"seed": order.seed, "length": order.length, "checkpoint": checkpoint, **more}
        return kind.train(source, card=card, **settled)
