"""`dpveil train pca`, `mixture`, `dictionary` and `aam`: trains a codec."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.cli.train_common import Common, document, failed
from dpveil.errors import UsageError
from dpveil.training.codecs import CodecOrder, train_codec
from dpveil.training.crops import EVERY
from dpveil.training.landmarks import Finder
from dpveil.training.order import Trained


class Crops(NamedTuple):
    """The options for crops and codes."""

    side: int
    grey: bool
    length: int
    landmarks_68: str | None


def trained(codec: str, common: Common, crops: Crops, json: bool) -> int:
    """Train the codec, print the result, and return the exit code."""
    canvas = (crops.side, crops.side, 1 if crops.grey else 3)
    order = CodecOrder(codec=codec, canvas=canvas, length=crops.length, **common)
    order.check()
    order = replace(order, landmarks=_finder(codec, crops.landmarks_68))
    made = train_codec(order, bar)
    code = failed(made)
    if json:
        model = made.model
        about = {"codec": model.name, "length": model.length, "canvas": list(model.canvas)}
        document(made, order.out, **about)
    else:
        _tell(order.out, made)
    return code


def _finder(codec: str, file: str | None) -> Finder | None:
    """Return the landmark finder for a codec that needs one; raises `UsageError` if `file` does not fit."""
    if codec == "aam":
        if file is None:
            raise UsageError(
                f"{codec} needs 68 landmarks of every crop; five say where a face is, and not its shape",
                hint="allow a file of them: --landmarks-68 package, or a dlib file of your own",
            )
        return Finder(file)
    if file is not None:
        raise UsageError(f"{codec} needs no landmarks", hint="leave out --landmarks-68")
    return None


def _tell(out: Path, made: Trained[Any]) -> None:
    codec = made.model
    height, width, channels = codec.canvas
    shape = f"{height}×{width} {'grey' if channels == 1 else 'colour'}"
    say.answer(f"{out}  {codec.name}, {codec.length} coordinates of {shape} crops, {made.images} images")
    settings, held = codec.card.settings, codec.card.metrics
    if "images_with_landmarks" in settings:
        found, asked = settings["images_with_landmarks"], settings["images"]
        say.answer(f"learned from {found} of {asked} images, those with sure landmarks")
    if held:
        say.answer(f"held out: {held['images']} images, PSNR {held['psnr']} dB, SSIM {held['ssim']}")
    else:
        few = f"fewer than {EVERY} images were given"
        copies = "all images that were held out are copies of others"
        say.note(f"nothing was measured: {few if made.images < EVERY else copies}")
    say.answer(f"sha256 {made.digest}")
