"""Trained files: safetensors with a model card, and a hash over the contents."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

import numpy as np

from dpveil.assets.model_cards import Card, CardWords, card_text
from dpveil.core.rationals import Json
from dpveil.errors import ModelError, UsageError
from dpveil.io.names import escape_text, show_path
from dpveil.io.writing import write_together

PACKAGE: Final = "dpveil_faces"
OWN: Final = str(Path(__file__).parent)  # where this package keeps files of its own
INSTALL: Final = "dpveil install faces"  # the command that installs detectors and landmarks, for messages
CENTERFACE: Final = Path(sys.prefix, "share", "dpveil", "centerface.onnx")
"""Where that command puts the network of CenterFace."""
CENTERFACE_SHA256: Final = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"
FILES: Final = (
    "pip install packages/dpveil-faces, from dpveil's repository (learned from UTKFace: for non-commercial"
    " research only), or name a file of your own"
)


def default_path(name: str) -> Path:
    """Return the path of a default file, such as "pca" or "gallery"; raises `UsageError` if not installed."""
    if (path := installed_path(name)) is None:
        raise UsageError(f"the default {name} of faces is not installed", hint=FILES)
    return path


def installed_path(name: str) -> Path | None:
    """Return the path of a default file, such as "pca" or "gallery", or None if it is not installed."""
    paths = (Path(place) / f"{name}.safetensors" for place in (OWN, *_package_folders(PACKAGE)))
    return next((path for path in paths if path.is_file()), None)


@cache
def _package_folders(package: str) -> tuple[str, ...]:
    spec = find_spec(package)
    return tuple((spec.submodule_search_locations if spec else None) or ())


FORMAT: Final = 2  # the version of the file format
KEY: Final = "dpveil"  # the entry of safetensors' metadata that holds dpveil's header
SUFFIX: Final = ".safetensors"
NAME: Final = re.compile(r"[A-Za-z0-9_. -]{1,100}")  # names of arrays
MOST_FILE_BYTES: Final = 1 << 30  # largest file in bytes
UNFIT: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors raised by parsing a file, which is untrusted, whose contents are not those of its kind."""
AGAIN: Final = "download it again, or train it again"
NAMED: Final = "check its name"

Tensors = Mapping[str, np.ndarray]


class TrainedFile(ABC):
    """The contents of a trained file: named arrays, a few facts about them, and a card.

    `name` is the kind in files and certificates, and `hint` says how to get a file. Concrete classes are
    frozen dataclasses.
    """

    name: ClassVar[str]
    hint: ClassVar[str] = NAMED
    card: Card

    @abstractmethod
    def facts(self) -> dict[str, Json]:
        """Return the entries of the file's header besides its kind and card."""

    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file."""

    @classmethod
    def load(cls, path: str | Path, *, expected: str | None = None) -> Self:
        """Return the contents of a file of this kind; raises `ModelError` as the function `load`."""
        return load(path, {cls.name: cls}, expected=expected)[0]

    @classmethod
    @abstractmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the contents of a file; raises `ModelError`, or any of `UNFIT`, if they are invalid."""

    def check(self, digest: str) -> None:  # noqa: B027  most have nothing left to check
        """Make checks that files with a known hash can skip; raises as `of_file`."""

    @abstractmethod
    def card_words(self) -> CardWords:
        """Return the lines that this kind of file adds to its card."""

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the contents in hexadecimal, which certificates state."""
        return encode_file(self)[1]

    def with_card(self, card: Card) -> Self:
        return replace(self, card=card)  # type: ignore[type-var]


S = TypeVar("S", bound=TrainedFile)


def save(held: TrainedFile, path: str | Path, *, replace: bool = False) -> str:
    """Write a trained file and its card as Markdown (`card_path`), both or neither; return the file's hash.

    Raises `OutputError` if they cannot be written, or exist and `replace` is false.
    """
    data, digest = encode_file(held)
    words = card_text(held.card, held.card_words(), Path(path).name, digest)
    write_together([(card_path(path), words.encode("utf-8")), (Path(path), data)], replace=replace)
    return digest


def card_path(path: str | Path) -> Path:
    """Return the path of a model's card: model.card.md for model.safetensors."""
    return Path(path).with_suffix(".card.md")


def load(path: str | Path, kinds: Mapping[str, type[S]], *, expected: str | None = None) -> tuple[S, str]:
    """Return the contents of a file, of one of the `kinds` by name, and its hash.

    `expected` is the hash, if the user knows it: the one in the file detects damage, not forgery. Raises
    `ModelError` for a file that is missing, truncated, altered since it was written, of another version or
    of another kind.
    """
    name = show_path(path)
    about, tensors, digest = load_tensors(path, expected=expected, hint=next(iter(kinds.values())).hint)
    if about.get("codec") not in list(kinds):
        held = escape_text(repr(about.get("codec")))
        raise ModelError(f"{name} is of the kind {held}", hint=f"needed here: {', '.join(kinds)}")
    kind = str(about["codec"])
    try:
        made = kinds[kind].of_file(about, tensors, Card(**about["card"]))
        made.__dict__["digest"] = digest
        made.check(digest)
        return made, digest
    except ModelError as error:
        raise ModelError(f"{name} cannot be used: {error.message}", hint="train it again") from error
    except UNFIT as error:
        raise ModelError(f"{name} is not a complete {kind} model", hint="train it again") from error


def arrays_of(
    tensors: Tensors, known: Mapping[str, int], kind: type[np.floating], **shapes: str
) -> list[np.ndarray]:
    """Return arrays of a file by name, as finite numbers of this type and of these shapes.

    A shape such as "m pixels" names its lengths: one name is one length in all arrays, and `known` has those
    that the file's header gives. Raises `ModelError` for other arrays, and `KeyError` for missing ones.
    """
    lengths, found = dict(known), []
    for name, shape in shapes.items():
        made, sides = tensors[name].astype(kind), shape.split()
        pairs = zip(sides, made.shape, strict=False)
        if made.ndim != len(sides) or any(
            lengths.setdefault(side, length) != length for side, length in pairs
        ):
            raise ModelError(f"the file's {name} do not fit its other arrays, or its canvas")
        if not np.isfinite(made).all():
            raise ModelError(f"the file's {name} are not finite")
        found.append(made)
    return found


def encode_file(held: TrainedFile) -> tuple[bytes, str]:
    """Return the bytes of a file, which depend on its contents only, and its hash."""
    about = {"format": FORMAT, "codec": held.name, **held.facts(), "card": asdict(held.card)}
    return encode_tensors(about, held.tensors())


def encode_tensors(about: dict[str, Any], tensors: Tensors) -> tuple[bytes, str]:
    """Return the bytes of a file with the header `about` and these arrays, and its hash.

    Raises `UsageError` if safetensors is not installed.
    """
    try:
        from safetensors.numpy import save as packed_tensors
    except ImportError as error:
        raise missing() from error
    digest = _hash(about, tensors)
    # A single entry: the library writes several in random order.
    text = json.dumps({"about": about, "sha256": digest}, sort_keys=True)
    # The library copies raw memory, so views have to be made contiguous.
    kept = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    return packed_tensors(kept, metadata={KEY: text}), digest


def missing() -> UsageError:
    """Return the error for a missing safetensors package."""
    return UsageError("safetensors is not installed", hint="pip install 'dpveil[models]'")


def tensors_of(path: Path, *, hint: str = NAMED) -> tuple[dict[str, np.ndarray], str]:
    """Return the arrays of a safetensors file and dpveil's header as text.

    Raises `ModelError`, with this `hint` if there is no file.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise missing() from error
    if not path.is_file():
        raise ModelError(f"there is no model {show_path(path)}", hint=hint)
    if path.stat().st_size > MOST_FILE_BYTES:
        raise ModelError(f"{show_path(path)} is larger than 1 GiB", hint="models of dpveil are smaller")
    try:
        with safe_open(path, framework="numpy") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  not a dict
            return tensors, (opened.metadata() or {})[KEY]
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{show_path(path)} is not a model of dpveil, or is damaged", hint=AGAIN) from error


def load_tensors(
    path: str | Path, *, expected: str | None = None, hint: str = NAMED
) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    """Return the header, the arrays and the hash of a file, after checking the hash and the version.

    Raises `ModelError`, with this `hint` if there is no file.
    """
    tensors, text = tensors_of(Path(path), hint=hint)
    name = show_path(path)
    try:
        both = json.loads(text)
        about, digest = dict(both["about"]), str(both["sha256"])
        own = _hash(about, tensors)
    except UNFIT as error:
        raise ModelError(f"{name} is not a model of dpveil, or is damaged", hint=AGAIN) from error
    if own != digest:
        raise ModelError(f"{name} was altered since it was written", hint=AGAIN)
    if expected is not None and digest != expected.strip().lower():
        raise ModelError(
            f"{name} has the hash {digest[:12]}…, not {expected.strip()[:12]}…",
            hint="it is a different model",
        )
    if about.get("format") != FORMAT:
        raise ModelError(
            f"{name} has format {escape_text(repr(about.get('format')))}, and this version reads {FORMAT}",
            hint="train it again, or use the version of dpveil that wrote it",
        )
    return about, tensors, digest


def _hash(about: dict[str, Any], tensors: Tensors) -> str:
    """Return the SHA-256 of the header and of every tensor, sorted by name.

    The hashed text is unambiguous, as names cannot contain the first character of a type (<f4, |u1).
    """
    if strange := [name for name in tensors if not NAME.fullmatch(name)]:
        raise ValueError(f"{strange[0]!r} is no name of a tensor")
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
