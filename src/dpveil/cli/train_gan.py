"""`dpveil train gan`: trains an encoder and a decoder network."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.cli.train_common import Common, document, failed
from dpveil.errors import UsageError
from dpveil.training.landmarks import Finder


class GANOptions(NamedTuple):
    """The options of `dpveil train gan`: the paper's sizes, the file of landmarks, and steps, if given."""

    full: bool
    landmarks_68: str | None
    steps: int | None


def gan(common: Common, options: GANOptions, json: bool) -> int:
    """Train the codec, print the result, and return the exit code."""
    try:
        from dpveil.training.generators.orders import GANOrder, train_gan
        from dpveil.training.generators.plan import PLANS
    except ImportError as error:
        hint = "pip install 'dpveil[neural]'"
        raise UsageError(f"gan is trained with torch and onnx; {error.name} is missing", hint=hint) from error
    plan = PLANS["full" if options.full else "small"]
    if options.steps is not None:
        plan = replace(plan, steps=options.steps)
    order = GANOrder(plan=plan, **common)
    order.check()
    if options.landmarks_68 is not None:
        order = replace(order, landmarks=Finder(options.landmarks_68))
    made = train_gan(order, bar)
    code, model = failed(made), made.model
    if json:
        document(made, order.out, codec=model.name, length=model.length, canvas=list(model.canvas))
        return code
    held = model.card.metrics
    say.answer(f"{order.out}  gan, {model.length} coordinates of {model.canvas[0]}×{model.canvas[1]} crops")
    say.answer(f"held out: {held['images']} images, PSNR {held['psnr']} dB, SSIM {held['ssim']}")
    if order.landmarks is None:
        say.note("the decoder knows no poses: allow landmarks with --landmarks-68 package")
    say.answer(f"sha256 {made.digest}")
    return code
