"""Trained codecs as files: safetensors, with a card inside and a hash over everything that counts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.codecs.base import Card, Codec, Tensors
from dpveil.errors import ModelError, UsageError

FORMAT: Final = 1
KEY: Final = "dpveil"
HASH: Final = "sha256"
MOST: Final = 1 << 30
"""Bytes of the largest file that is read."""


def save(codec: Codec, path: str | Path, *, replace: bool = False) -> str:
    """Write a codec and return the hash that `load` checks.

    Raises `OutputError` where it cannot, or where there is a file already and not `replace`.
    """
    from safetensors.numpy import save as packed

    from dpveil.io.writing import write_together

    tensors = codec.tensors()
    about = {"format": FORMAT, "codec": codec.name, "canvas": list(codec.canvas), "card": asdict(codec.card)}
    text = json.dumps(about, sort_keys=True)
    digest = _hash(text, tensors)
    data = packed(tensors, metadata={KEY: text, HASH: digest})
    write_together([(Path(path), data)], replace=replace)
    return digest


def load(path: str | Path, *, expected: str | None = None) -> Codec:
    """Return the codec of a file; `expected` is its hash, if the user knows it.

    Raises `ModelError` for a file that is missing, truncated, altered since it was written, of another
    version or of an unknown codec.
    """
    from dpveil.codecs import TABLE

    about, tensors, digest = _read(Path(path))
    if expected is not None and digest != expected.strip().lower():
        raise ModelError(
            f"{path} has the hash {digest[:12]}…, not {expected[:12]}…", hint="it is another model"
        )
    if about.get("format") != FORMAT:
        raise ModelError(
            f"{path} has format {about.get('format')!r}, and this version reads {FORMAT}",
            hint="train it again, or use the version of dpveil that wrote it",
        )
    if about.get("codec") not in TABLE:
        raise ModelError(f"{path} holds the codec {about.get('codec')!r}", hint=f"known: {', '.join(TABLE)}")
    try:
        card = Card(**about["card"])
        height, width, channels = (int(side) for side in about["canvas"])
        return TABLE[about["codec"]].of_tensors(tensors, (height, width, channels), card)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is no complete model of {about['codec']}", hint="train it again") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise UsageError("safetensors is not installed", hint="pip install 'dpveil[models]'") from error
    if not path.is_file():
        raise ModelError(f"there is no model {path}", hint="dpveil train CODEC IMAGES... --out MODEL")
    if path.stat().st_size > MOST:
        raise ModelError(f"{path} is larger than 1 GiB", hint="no codec of dpveil is")
    try:
        with safe_open(path, framework="numpy") as opened:
            found = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  not a dict
        text, digest = found[KEY], found[HASH]
        about = json.loads(text)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelError(f"{path} is not a model of dpveil, or is damaged", hint="fetch it again") from error
    if _hash(text, tensors) != digest:
        raise ModelError(f"{path} was altered since it was written", hint="fetch it again")
    return about, tensors, digest


def _hash(text: str, tensors: Tensors) -> str:
    """Return the SHA-256 of the card and of every tensor, by name."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
