"""`dpveil train`: learn a codec, a gallery or an attribute model from public images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpveil.cli.options import AsJson
from dpveil.cli.train_common import NETWORKS, Common
from dpveil.errors import InvalidParameter, PhotoError, UnknownName

OTHERS = (*NETWORKS, "gallery", "attributes")
"""Models that are learned from labelled shards."""


def train_command(
    codec: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="pca, mixture, dictionary, aam, gan, upconv or stylegan; denoiser, gallery or attributes.",
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
            help="Allow dlib's file of 68 landmarks (no commercial use); not for pca, mixture, dictionary.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .csv of labels by hand, such as glasses; attributes, gallery."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An attribute model that reads beards and glasses; gallery."),
    ] = None,
    faces: Annotated[int, typer.Option(metavar="N", min=2, help="Faces to make; gallery.")] = 1024,
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
    """Learn a codec, denoiser, gallery or attribute model from public images, and write it with a model card.

    \b
    Examples:
      dpveil train pca faces/ --out faces.safetensors --length 40 --data "public portraits" --terms CC0
      dpveil train gallery utkface/*.tar --out gallery.safetensors --landmarks-68 package
      dpveil train attributes utkface/ --out attributes.safetensors --landmarks-68 package

    Images are cropped to their centre square and resized to --side. A model reveals its training data: never
    train on images that have to stay private. Every 20th image is held out for evaluation. To resume an
    interrupted training, run the same command again. Exit code 1: a model was written, but some images could
    not be read.

    gallery makes faces of nobody for the methods gallery and attributes: averages of ten adults with the same
    labels, from the same shards as attributes; it needs --landmarks-68 package. With --model, a beard is one
    of these labels, and nobody with glasses takes part.

    gan trains an encoder and a decoder network on the same shards, in an hour on two cores: codes of 128
    coordinates, of crops of 64 pixels; --length, --side and --grey do not apply. It needs dpveil[train].
    With --landmarks-68 package the decoder learns poses.

    upconv trains a generator of 2000 people on the same shards, which is given a gender, and with
    --landmarks-68 package an expression. All else as for gan.

    stylegan trains StyleGAN2's generator as the decoder of an encoder, on the same shards. With --generator
    it trains only an encoder, for a checkpoint of somebody's. It takes no landmarks.

    denoiser learns to guess the face under the noise of a release, from releases of the same shards, as a
    post-processing.

    attributes learns to predict attributes of a face from .tar shards with a .json of age, gender and race
    beside every picture, as in UTKFace; --length, --side and --grey do not apply. The last fifth of the
    pictures is held out. With --landmarks-68 package it also learns pose and smile; with --labels it also
    learns what that file has of some of the pictures, such as glasses and a beard.
    """
    from dpveil.training.codecs import TRAINERS

    if codec not in (kinds := (*TRAINERS, *OTHERS)):
        raise UnknownName("kind of model", codec, kinds)
    common: Common = {
        "paths": _expanded(images),
        "out": _named(out),
        "seed": seed,
        "data": data,
        "terms": terms,
        "replace": force,
    }
    only_codecs = {"--length": length == 100, "--side": side == 128, "--grey": not grey}
    if codec == "gallery":
        from dpveil.cli.train_gallery import GalleryOptions, gallery

        _usual(only_codecs, codec)
        return gallery(common, GalleryOptions(faces, landmarks_68, model, labels), json)
    _usual({"--faces": faces == 1024, "--model": model is None}, codec)
    if codec in NETWORKS:
        from dpveil.cli.train_networks import NetworkOptions, network

        styled = codec == "stylegan"
        own = {
            "--landmarks-68": landmarks_68 is None or not styled,
            "--generator": generator is None or styled,
        }
        _usual({**only_codecs, "--labels": labels is None, **own}, codec)
        return network(codec, common, NetworkOptions(full, landmarks_68, steps, generator), json)
    _usual({"--full": not full, "--steps": steps is None, "--generator": generator is None}, codec)
    if codec == "attributes":
        from dpveil.cli.train_attributes import attributes

        _usual(only_codecs, codec)
        return attributes(common, landmarks_68, labels, json)
    _usual({"--labels": labels is None}, codec)
    from dpveil.cli.train_codec import Crops, trained

    return trained(codec, common, Crops(side, grey, length, landmarks_68), json)


def _usual(options: dict[str, bool], codec: str) -> None:
    """Raise `InvalidParameter` for an option that is not its default and does not apply to `codec`."""
    for name, usual in options.items():
        if not usual:
            raise InvalidParameter(name, None, f"is not for {codec}", hint="leave it out")


def _named(out: Path | None) -> Path:
    if out is None:
        raise InvalidParameter("--out", None, "is missing", hint="name the model, such as model.safetensors")
    return out


def _expanded(images: list[Path]) -> tuple[Path, ...]:
    """Return the named files, and those in named folders with the suffix of an image or shard.

    Images in unsupported formats are included, so that they are reported.
    """
    from dpveil.io import FORMATS
    from dpveil.io.folders import UNWRITTEN, is_folder, walk
    from dpveil.io.tar import SHARD

    files = [
        path
        for given in images
        for path, problem in (walk(given) if is_folder(given) else [(given, "named")])
        if problem or path.suffix.lower() in UNWRITTEN.union(FORMATS, [SHARD])
    ]
    if not files:
        raise PhotoError("there are no images among the inputs", hint="name images, folders or .tar shards")
    return tuple(files)
