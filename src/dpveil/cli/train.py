"""`dpveil train`: learn a codec from public images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import AsJson
from dpveil.errors import InvalidParameter, OutputError, UsageError

if TYPE_CHECKING:
    from dpveil.cli.training import Order, Trained


def train_command(
    codec: Annotated[
        str, typer.Argument(metavar="CODEC", help="pca, dictionary or aam; gallery or attributes.")
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
        str, typer.Option(metavar="WORDS", help="What their licence allows, for the model card.")
    ] = "not stated",
    landmarks_68: Annotated[
        str | None,
        typer.Option(
            metavar="package|FILE",
            help="Allow dlib's file of 68 landmarks (no commercial use); aam, gallery, attributes.",
        ),
    ] = None,
    faces: Annotated[int, typer.Option(metavar="N", min=2, help="Faces to make; gallery.")] = 1024,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that exists.")] = False,
    json: AsJson = False,
) -> int:
    """Learn a codec of face crops from public images, and write it with a model card.

    \b
    Example:
      dpveil train pca faces/ --out faces.safetensors --length 40 --data "public portraits" --terms CC0

    Images are cut to their centre square and resized to --side. Whatever is learned can be seen in the model:
    never train on what has to stay private. Every 20th image is held out and measured. An interrupted
    training goes on where the same command is run again. Exit code 1: a model was written, and some images
    were not readable.

    gallery makes faces of nobody for the methods gallery and attributes: averages of ten different adults of
    the same labels, from such shards as attributes takes, and only with --landmarks-68 package.

    attributes learns what a face looks like from .tar shards with a .json of age, gender and race beside
    every picture, as UTKFace has them; --length, --side and --grey are not for it. The last fifth of the
    pictures is held out. With --landmarks-68 package it also learns pose and smile.
    """
    from dpveil.cli.marks import finder_for
    from dpveil.cli.training import Order, trained

    if codec in ("gallery", "attributes"):
        canvas = {"--length": length == 100, "--side": side == 128, "--grey": not grey}
        _usual({**canvas, "--faces": faces == 1024 or codec == "gallery"}, codec)
        words = {"data": data, "terms": terms}
        taken = (_expanded(images), _new_model(out, force))
        if codec == "gallery":
            from dpveil.cli.train_gallery import train_gallery

            return train_gallery(*taken, faces, seed, words, landmarks_68, force, json)
        from dpveil.cli.train_attributes import train_attributes

        return train_attributes(*taken, seed, words, landmarks_68, force, json)

    _usual({"--faces": faces == 1024}, codec)
    order = Order(
        codec=_known(codec),
        paths=_expanded(images),
        out=_new_model(out, force),
        canvas=(side, side, 1 if grey else 3),
        length=length,
        seed=seed,
        data=data,
        terms=terms,
        force=force,
        landmarks=finder_for(codec, landmarks_68),
    )
    made = trained(order)
    _tell(order, made, json)
    return exits.INCOMPLETE if made.failed else exits.DONE


def _usual(options: dict[str, bool], codec: str) -> None:
    """Raise `InvalidParameter` for an option that was given and is not for what is trained."""
    for name, usual in options.items():
        if not usual:
            raise InvalidParameter(name, None, f"is not for {codec}", hint="leave it out")


def _known(codec: str) -> str:
    from dpveil.codecs import TABLE
    from dpveil.errors import UnknownName

    if codec not in TABLE:
        raise UnknownName("codec", codec, TABLE)
    return codec


def _new_model(out: Path | None, force: bool) -> Path:
    """Return where the model goes; what can be refused is refused before anything is trained."""
    from dpveil.codecs.store import SUFFIX, card_path
    from dpveil.io.names import shown

    if out is None:
        raise InvalidParameter("--out", None, "is missing", hint="name the model, such as model.safetensors")
    if out.suffix != SUFFIX:
        raise InvalidParameter(
            "--out", str(out), f"does not end in {SUFFIX}", hint="such as model.safetensors"
        )
    if not out.parent.is_dir():
        raise OutputError(f"cannot write {shown(out)}: there is no such folder", hint="make the folder first")
    for path in (out, card_path(out)):
        if path.exists() and not force:
            raise OutputError(
                f"cannot write {shown(path)}: it exists already", hint="choose another name, or use --force"
            )
    return out


def _expanded(images: list[Path]) -> tuple[Path, ...]:
    """Return the files that were named, and of folders those whose names end like an image's or a shard's.

    Images of formats that are not read are among them, so that they are told to be left out.
    """
    from dpveil.cli.inputs import UNREAD, is_folder, walk
    from dpveil.codecs.crops import SHARD
    from dpveil.io import FORMATS

    files = [
        path
        for given in images
        for path, problem in (walk(given) if is_folder(given) else [(given, "named")])
        if problem or path.suffix.lower() in UNREAD.union(FORMATS, [SHARD])
    ]
    if not files:
        raise UsageError("there are no images in what was given", hint="name images, folders or .tar shards")
    return tuple(files)


def _tell(order: Order, made: Trained, json: bool) -> None:
    from dpveil.codecs.crops import EVERY

    for error in made.failed[:10]:
        say.note(f"left out: {say.one_line(error)}")
    if len(made.failed) > 10:
        say.note(f"left out: {len(made.failed) - 10} more")
    if json:
        say.document(made.to_json(order))
        return
    codec = made.codec
    height, width, channels = codec.canvas
    shape = f"{height}×{width} {'grey' if channels == 1 else 'colour'}"
    say.answer(
        f"{order.out}  {codec.name}, {codec.length} coordinates of {shape} crops, {made.images} images"
    )
    settings, held = codec.card.settings, codec.card.metrics
    if "images_with_landmarks" in settings:
        found, asked = settings["images_with_landmarks"], settings["images"]
        say.answer(f"learned from {found} of {asked} images, those with sure landmarks")
    if held:
        say.answer(f"held out: {held['images']} images, PSNR {held['psnr']} dB, SSIM {held['ssim']}")
    else:
        few = "fewer than 20 images were given"
        copies = "all images that were held out are copies of others"
        say.note(f"nothing was measured: {few if made.images < EVERY else copies}")
    say.answer(f"sha256 {made.digest}")
