"""How methods refer to codec files, and how such a file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpveil.assets import store
from dpveil.assets.reference import Kind
from dpveil.codecs.base import Codec, StoredCodec
from dpveil.core.registry import CODECS


def load(path: str | Path, *, expected: str | None = None) -> StoredCodec:
    """Return the codec stored in a file; `expected` is its hash, if the user knows it.

    Raises `ModelError` for a file that is missing, truncated, altered since it was written, of another
    version or of an unknown codec. The hash in the file detects damage; only `expected` detects forgery.
    """
    codec: StoredCodec
    codec, _ = store.load(path, CODECS, expected=expected)
    return codec


CODEC: Final = Kind(
    noun="codec",
    option="codec",
    written="pca 100 sha256:…",
    hint=StoredCodec.hint,
    kinds=CODECS,
    holds=Codec,
    sized=True,
    default="gan",
)
"""Files of codecs; the default is that of dpveil-faces' networks."""
