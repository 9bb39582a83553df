"""Trained codecs as files: safetensors, with a card inside and beside, and a hash over all that counts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.codecs.base import Card, Codec
from dpveil.codecs.checkpoint import Tensors
from dpveil.codecs.words import card_text
from dpveil.core.registry import CODECS
from dpveil.errors import ModelError, UsageError
from dpveil.io import write_together
from dpveil.io.names import quoted, shown

FORMAT: Final = 2
KEY: Final = "dpveil"
SUFFIX: Final = ".safetensors"
MOST: Final = 1 << 30
"""Bytes of the largest file that is read."""
UNFIT: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading a file raises that says something else than its kind does: anybody may have written it."""
AGAIN: Final = "fetch it again, or train it again"


def save(codec: Codec, path: str | Path, *, replace: bool = False) -> str:
    """Write a codec and its card in words (`card_path`), both or neither; return the hash that `load` checks.

    Raises `OutputError` where it cannot, or where there is a file already and not `replace`.
    """
    data, digest = packed(codec)
    words = card_text(codec, Path(path).name, digest)
    files = [(card_path(path), words.encode("utf-8")), (Path(path), data)]
    write_together(files, replace=replace)
    return digest


def card_path(path: str | Path) -> Path:
    """Return where the card in words of the model at `path` lies: model.card.md beside model.safetensors."""
    return Path(path).with_suffix(".card.md")


def packed(codec: Codec) -> tuple[bytes, str]:
    """Return the bytes of a codec's file, the same for the same codec, and its hash."""
    about = {"format": FORMAT, "codec": codec.name, "canvas": list(codec.canvas), "card": asdict(codec.card)}
    return sealed(about, codec.tensors())


def sealed(about: dict[str, Any], tensors: Tensors) -> tuple[bytes, str]:
    """Return the bytes of a file that says `about` itself and holds these arrays, and its hash."""
    try:
        from safetensors.numpy import save as packed_tensors
    except ImportError as error:
        raise missing() from error
    digest = _hash(about, tensors)
    # One entry: of several, the library writes now this one first and now that.
    text = json.dumps({"about": about, "sha256": digest}, sort_keys=True)
    kept = {
        name: np.array(tensor, order="C") for name, tensor in tensors.items()
    }  # it copies memory as it lies
    return packed_tensors(kept, metadata={KEY: text}), digest


def load(path: str | Path, *, expected: str | None = None) -> Codec:
    """Return the codec of a file; `expected` is its hash, if the user knows it.

    Raises `ModelError` for a file that is missing, truncated, altered since it was written, of another
    version or of an unknown codec. The hash inside finds damage, not forgery: that needs `expected`.
    """
    return identified(path, expected=expected)[0]


def identified(path: str | Path, *, expected: str | None = None) -> tuple[Codec, str]:
    """Return the codec of a file and its hash, as `load` does."""
    name = shown(path)
    about, tensors, digest = opened(path, expected=expected)
    if about.get("codec") not in list(CODECS):
        held = quoted(repr(about.get("codec")))
        raise ModelError(f"{name} holds the codec {held}", hint=f"known: {', '.join(CODECS)}")
    try:
        height, width, channels = (int(side) for side in about["canvas"])
        canvas, card = (height, width, channels), Card(**about["card"])
        return CODECS[about["codec"]].of_tensors(tensors, canvas, card), digest
    except ModelError as error:
        raise ModelError(f"{name} cannot be used: {error.message}", hint="train it again") from error
    except UNFIT as error:
        raise ModelError(f"{name} is no complete model of {about['codec']}", hint="train it again") from error


def missing() -> UsageError:
    """Return the refusal where the library of the files is not there."""
    return UsageError("safetensors is not installed", hint="pip install 'dpveil[models]'")


def tensors_of(path: Path) -> tuple[dict[str, np.ndarray], str]:
    """Return the arrays of a safetensors file and dpveil's text in it. Raises `ModelError`."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise missing() from error
    if not path.is_file():
        raise ModelError(
            f"there is no model {shown(path)}",
            hint="make one: dpveil train pca IMAGES... --out model.safetensors",
        )
    if path.stat().st_size > MOST:
        raise ModelError(f"{shown(path)} is larger than 1 GiB", hint="no codec of dpveil is")
    try:
        with safe_open(path, framework="numpy") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  not a dict
            return tensors, (opened.metadata() or {})[KEY]
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{shown(path)} is not a model of dpveil, or is damaged", hint=AGAIN) from error


def opened(
    path: str | Path, *, expected: str | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    """Return what a file of this version says about itself, its arrays and its hash, all as they were sealed.

    Raises `ModelError`.
    """
    about, tensors, digest = _read(Path(path))
    name = shown(path)
    if expected is not None and digest != expected.strip().lower():
        raise ModelError(
            f"{name} has the hash {digest[:12]}…, not {expected.strip()[:12]}…", hint="it is another model"
        )
    if about.get("format") != FORMAT:
        raise ModelError(
            f"{name} has format {quoted(repr(about.get('format')))}, and this version reads {FORMAT}",
            hint="train it again, or use the version of dpveil that wrote it",
        )
    return about, tensors, digest


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    tensors, text = tensors_of(path)
    try:
        both = json.loads(text)
        about, digest = dict(both["about"]), str(both["sha256"])
        own = _hash(about, tensors)
    except UNFIT as error:
        raise ModelError(f"{shown(path)} is not a model of dpveil, or is damaged", hint=AGAIN) from error
    if own != digest:
        raise ModelError(f"{shown(path)} was altered since it was written", hint=AGAIN)
    return about, tensors, digest


def _hash(about: dict[str, Any], tensors: Tensors) -> str:
    """Return the SHA-256 of the card and of every tensor, by name."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
