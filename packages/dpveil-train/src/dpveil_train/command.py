"""`dpveil train`: learn a codec, a denoiser or an attribute model from public images."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import AsJson
from dpveil.cli.progress import bar
from dpveil.errors import InvalidParameter, PhotoError, UnknownName

if TYPE_CHECKING:
    from dpveil_train.order import Trained

NETWORKS: Final = {
    "gan": "dpveil_train.gan",
    "stylegan": "dpveil_train.stylegan",
    "upconv": "dpveil_train.upconv",
    "denoiser": "dpveil_train.denoiser",
}
"""The module that trains each network: its `PLANS` by name and the function `train`."""
OTHERS: Final = (*NETWORKS, "attributes")  # models that are no codecs without networks
LEARNED: Final = {"gan": "poses", "upconv": "expressions"}
"""What the decoder of a network learns from landmarks."""
TAKEN: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("--length", "--side", "--grey"), ()),
    **dict.fromkeys(("--full", "--steps"), (*NETWORKS,)),
    "--generator": ("stylegan",),
    "--labels": ("attributes",),
    "--landmarks-68": (*LEARNED, "aam", "attributes"),
}
"""The kinds of models for which each option is; without any, codecs without networks."""


def command(
    codec: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="pca, mixture, dictionary, aam, gan, upconv or stylegan; or denoiser, attributes.",
        ),
    ],
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGES", help="Images, folders, and WebDataset shards (.tar).")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The model, such as model.safetensors.")
    ] = None,
    length: Annotated[int, typer.Option(metavar="M", min=1, help="Coordinates of a code.")] = 100,
    side: Annotated[int, typer.Option(metavar="N", min=4, max=1024, help="Side of a crop in pixels.")] = 128,
    grey: Annotated[bool, typer.Option("--grey", help="Grey crops instead of colour.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed, the same model.")] = 0,
    data: Annotated[
        str, typer.Option(metavar="WORDS", help="What the images are, for the model card.")
    ] = "not stated",
    terms: Annotated[
        str, typer.Option(metavar="WORDS", help="Terms of their licence, for the model card.")
    ] = "not stated",
    landmarks_68: Annotated[
        str | None,
        typer.Option(
            metavar="package|FILE",
            help="Allow dlib's file of 68 landmarks (no commercial use); aam, gan, upconv, attributes.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .csv of labels by hand, such as glasses; attributes."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The sizes of the paper, for a GPU; gan, upconv, stylegan.")
    ] = False,
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Steps of training of networks. Default: 9000.")
    ] = None,
    generator: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A generator of StyleGAN2 in PyTorch, to train an encoder for; stylegan."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False,
    json: AsJson = False,
) -> int:
    """Learn a codec, denoiser or attribute model from public images, and write it with a model card.

    \b
    Examples:
      dpveil train pca faces/ --out faces.safetensors --length 40 --data "public portraits" --terms CC0
      dpveil train attributes utkface/ --out attributes.safetensors --landmarks-68 package

    Images are cropped to their centre square and resized to --side. A model reveals its training data: never
    train on images that have to stay private. Every 20th image is held out for evaluation. To resume an
    interrupted training of a network, run the same command again. Exit code 1: a model was written, but some
    images could not be read.

    gan trains an encoder and a decoder network, in an hour on two cores, on .tar shards with a .json of age,
    gender and race beside every picture, as in UTKFace: codes of 128 coordinates, of crops of 64 pixels;
    --length, --side and --grey do not apply.
    With --landmarks-68 package the decoder learns poses.

    upconv trains a generator of 2000 people on the same shards, which is given a gender, and with
    --landmarks-68 package an expression. All else as for gan.

    stylegan trains StyleGAN2's generator as the decoder of an encoder, on the same shards. With --generator
    it trains only an encoder, for a checkpoint of somebody's. It takes no landmarks.

    denoiser learns to guess the face under the noise of a release, from releases of the same shards, as a
    post-processing.

    attributes learns to predict attributes of a face from the same shards; --length, --side and --grey do not
    apply. The last fifth of the pictures is held out. With --landmarks-68 package it also learns pose and
    smile; with --labels it also learns what that file has of some of the pictures, such as glasses and a
    beard.
    """
    from dpveil_train.codecs import TRAINERS

    if codec not in (kinds := (*TRAINERS, *OTHERS)):
        raise UnknownName("kind of model", codec, kinds)
    given = {
        "--length": length != 100,
        "--side": side != 128,
        "--grey": grey,
        "--full": full,
        "--steps": steps is not None,
        "--generator": generator is not None,
        "--labels": labels is not None,
        "--landmarks-68": landmarks_68 is not None,
    }
    for name, kinds_of in TAKEN.items():
        if given[name] and codec not in (kinds_of or TRAINERS):
            raise InvalidParameter(name, None, f"is not for {codec}", hint="leave it out")
    if out is None:
        raise InvalidParameter("--out", None, "is missing", hint="name the model, such as model.safetensors")
    common: dict[str, Any] = {"out": out, "seed": seed, "data": data, "terms": terms, "replace": force}
    common["paths"] = _files_among(images)
    if codec == "attributes":
        return _attributes(common, landmarks_68, labels, json)
    if codec in NETWORKS:
        return _network(codec, common, "full" if full else "small", landmarks_68, steps, generator, json)
    canvas = (side, side, 1 if grey else 3)
    return _codec({**common, "codec": codec, "canvas": canvas, "length": length}, landmarks_68, json)


def _files_among(images: list[Path]) -> tuple[Path, ...]:
    """Return the named files, and those in named folders with the suffix of an image or shard.

    Images in unsupported formats are included, so that they are reported.
    """
    from dpveil.io.folders import UNWRITTEN, is_folder, walk
    from dpveil.io.names import FORMATS
    from dpveil_train.crops import SHARD

    files = [
        path
        for given in images
        for path, problem in (walk(given) if is_folder(given) else [(given, "named")])
        if problem or path.suffix.lower() in UNWRITTEN.union(FORMATS, [SHARD])
    ]
    if not files:
        raise PhotoError("there are no images among the inputs", hint="name images, folders or .tar shards")
    return tuple(files)


def _codec(settings: dict[str, Any], landmarks_68: str | None, json: bool) -> int:
    from dpveil_train.codecs import CodecOrder, train_codec
    from dpveil_train.crops import EVERY
    from dpveil_train.landmarks import Finder

    order = CodecOrder(**settings, landmarks=None if landmarks_68 is None else Finder(landmarks_68))
    made = train_codec(order, bar)
    model = made.model
    height, width, channels = canvas = model.canvas
    used, held, lines = model.card.settings, model.card.metrics, []
    if "images_with_landmarks" in used:
        found, asked = used["images_with_landmarks"], used["images"]
        lines.append(f"learned from {found} of {asked} images, those with sure landmarks")
    if held:
        lines.append(f"held out: {held['images']} images, PSNR {held['psnr']} dB, SSIM {held['ssim']}")
    elif not json:
        say.note(f"nothing was measured: fewer than {EVERY} images were given")
    shape = f"{height}×{width} {'grey' if channels == 1 else 'colour'}"
    about = {"codec": model.name, "length": model.length, "canvas": list(canvas)}
    head = f"{model.name}, {model.length} coordinates of {shape} crops"
    return _tell(made, order.out, json, about, head, *lines)


def _network(
    kind: str,
    common: dict[str, Any],
    size: str,
    landmarks_68: str | None,
    steps: int | None,
    generator: Path | None,
    json: bool,
) -> int:
    from dpveil.codecs import Codec
    from dpveil_train.landmarks import Finder
    from dpveil_train.networks import NetworkOrder

    home = import_module(NETWORKS[kind])
    plan = home.PLANS[size]
    if steps is not None:
        plan = replace(plan, steps=steps)
    finder = None if landmarks_68 is None else Finder(landmarks_68)
    order = NetworkOrder(plan=plan, generator=generator, landmarks=finder, **common)
    made = home.train(order, bar)
    model = made.model
    if order.landmarks is None and kind in LEARNED and not json:
        say.note(f"the decoder knows no {LEARNED[kind]}: allow landmarks with --landmarks-68 package")
    length = {"length": model.length} if isinstance(model, Codec) else {}
    held = dict(model.card.metrics)
    measured = f"held out: {held.pop('images')} images, {', '.join(f'{n} {v}' for n, v in held.items())}"
    head = f"{kind}, {', '.join(model.card_words().facts)}"
    return _tell(made, order.out, json, {"codec": model.name, **length, **model.facts()}, head, measured)


def _attributes(common: dict[str, Any], landmarks_68: str | None, labels: Path | None, json: bool) -> int:
    from dpveil_train.attributes import AttributeOrder, train_attributes
    from dpveil_train.labelled import NO_MORE, HandLabels
    from dpveil_train.landmarks import PACKAGE

    if landmarks_68 not in (None, PACKAGE):
        hint = f"{PACKAGE}, or leave it out"
        raise InvalidParameter("--landmarks-68", landmarks_68, "is not accepted for attributes", hint=hint)
    by_hand = NO_MORE if labels is None else HandLabels.read(labels)
    order = AttributeOrder(landmarks=5 if landmarks_68 is None else 68, labels=by_hand, **common)
    made = train_attributes(order, bar)
    values = made.model.values
    measured = (
        f"held out: {name} {share}"
        for name, share in made.model.card.metrics.items()
        if name.split(",")[0] in values and " by " not in name
    )
    document = {"values": {name: list(words) for name, words in values.items()}}
    return _tell(made, order.out, json, document, f"attributes, {', '.join(values)}", *measured)


def _tell(made: Trained[Any], out: Path, json: bool, about: dict[str, Any], head: str, *lines: str) -> int:
    """Say what was left out and what was made, as one document or in lines; return the exit code."""
    from dpveil.assets.trained_files import card_path

    for error in made.failed[:10]:
        say.note(f"left out: {say.one_line(error)}")
    if len(made.failed) > 10:
        say.note(f"left out: {len(made.failed) - 10} more")
    if json:
        files = {"output": str(out), "card": str(card_path(out)), "sha256": made.digest}
        counted = {"images": made.images, "metrics": dict(made.model.card.metrics)}
        failed = [{"error": error.message, "hint": error.hint} for error in made.failed]
        say.document({"trained": [{**files, **about, **counted}], "failed": failed})
    else:
        for line in (f"{out}  {head}, {made.images} images", *lines, f"sha256 {made.digest}"):
            say.answer(line)
    return exits.INCOMPLETE if made.failed else exits.DONE
