"""`dpveil train gan` and the like: networks, trained with torch on labelled shards."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from dpveil.cli import say
from dpveil.cli.progress import bar
from dpveil.cli.train_common import NETWORKS, Common, document, failed
from dpveil.codecs import Codec
from dpveil.errors import UsageError
from dpveil.training.landmarks import Finder

LEARNED: Final = {"gan": "poses", "upconv": "expressions"}
"""What the decoder of a network learns from landmarks."""


class NetworkOptions(NamedTuple):
    """The options of `dpveil train` for networks: the paper's sizes, the file of landmarks, steps, and a
    generator of somebody's.
    """

    full: bool
    landmarks_68: str | None
    steps: int | None
    generator: Path | None


def network(kind: str, common: Common, options: NetworkOptions, json: bool) -> int:
    """Train the network, print the result, and return the exit code."""
    try:
        home = import_module(NETWORKS[kind])
    except ImportError as error:
        hint = "pip install 'dpveil[train]'"
        problem = f"{kind} is trained with torch and onnx; {error.name} is missing"
        raise UsageError(problem, hint=hint) from error
    plan = home.PLANS["full" if options.full else "small"]
    if options.steps is not None:
        plan = replace(plan, steps=options.steps)
    order = home.NetworkOrder(plan=plan, **common)
    if options.generator is not None:
        order = replace(order, generator=options.generator)
    order.check()
    if options.landmarks_68 is not None:
        order = replace(order, landmarks=Finder(options.landmarks_68))
    made = home.train(order, bar)
    code, model = failed(made), made.model
    if json:
        length = {"length": model.length} if isinstance(model, Codec) else {}
        document(made, order.out, codec=model.name, **length, **model.facts())
        return code
    say.answer(f"{order.out}  {kind}, {', '.join(model.card_words().facts)}, {made.images} images")
    held = dict(model.card.metrics)
    images = held.pop("images")
    say.answer(f"held out: {images} images, {', '.join(f'{name} {value}' for name, value in held.items())}")
    if order.landmarks is None and kind in LEARNED:
        say.note(f"the decoder knows no {LEARNED[kind]}: allow landmarks with --landmarks-68 package")
    say.answer(f"sha256 {made.digest}")
    return code
