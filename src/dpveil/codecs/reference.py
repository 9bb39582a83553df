"""Which codec a method uses: by name, length and hash, as certificates write it; loaded when it is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

from dpveil.codecs.base import Codec
from dpveil.codecs.defaults import default_path
from dpveil.codecs.store import identified, packed
from dpveil.core.numbers import Json
from dpveil.core.parameters import Parameter
from dpveil.core.registry import CODECS
from dpveil.errors import InvalidParameter, ModelError, UnknownName, UsageError

DEFAULT: Final = "default"
WRITTEN: Final = re.compile(r"([a-z][a-z0-9-]*) ([1-9][0-9]{0,6}) sha256:([0-9a-f]{64})")
WRITTEN_HINT: Final = "name, length and hash, such as pca 100 sha256:…"


@dataclass(frozen=True)
class CodecReference:
    """A codec by its `name`, the `length` of its codes and the `digest` of its file.

    `source` is the codec itself, or None where only a certificate names it: then the default codec is taken
    if that is the one, and any other is asked for. No path is ever part of it.

    >>> str(CodecReference.of("pca 100 sha256:" + 64 * "0"))[:25]
    'pca 100 sha256:0000000000'
    """

    name: str
    length: int
    digest: str
    source: Codec | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, value: object) -> CodecReference:
        """Return the reference to "default", a model's file, a codec, or what a reference wrote.

        Raises `UsageError` where the default is not installed, `ModelError` and `InvalidParameter`.
        """
        if isinstance(value, CodecReference):
            return value
        if isinstance(value, Codec):
            return cls(value.name, value.length, packed(value)[1], value)
        if not isinstance(value, str | Path):
            raise InvalidParameter("codec", type(value).__name__, "is no codec", hint="a model's file")
        if WRITTEN.fullmatch(str(value)):
            return cls.written(str(value))
        return _of_file(default_path("pca") if str(value) == DEFAULT else Path(value))

    @classmethod
    def written(cls, text: object) -> CodecReference:
        """Return the reference that `text` is the written form of, as in certificates; opens no file.

        Raises `InvalidParameter` for anything else, and `UnknownName`.
        """
        known = WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if known is None:
            raise InvalidParameter("codec", text, "is not written as in certificates", hint=WRITTEN_HINT)
        return cls(_known(known[1]), int(known[2]), known[3])

    @property
    def codec(self) -> Codec:
        """The codec; raises `ModelError` where it is not at hand."""
        if self.source is not None:
            return self.source
        try:
            default = CodecReference.of(DEFAULT)
        except UsageError:
            default = None
        if default != self:
            raise ModelError(
                f"the codec {self.name} with the hash {self.digest[:12]}… is not at hand",
                hint="name its file with --codec",
            )
        return cast(Codec, default.source)

    def __str__(self) -> str:
        return f"{self.name} {self.length} sha256:{self.digest}"


def _known(name: str) -> str:
    if name not in CODECS:
        raise UnknownName("codec", name, CODECS)
    return name


def _of_file(path: Path) -> CodecReference:
    try:
        stamp = path.stat().st_mtime_ns, path.stat().st_size
    except OSError:
        stamp = (0, 0)
    return _loaded(path, stamp)


@lru_cache(maxsize=4)
def _loaded(path: Path, stamp: tuple[int, int]) -> CodecReference:
    codec, digest = identified(path)
    return CodecReference(codec.name, codec.length, digest, codec)


class CodecField(Parameter[object, CodecReference]):
    """A codec: "default", a model's file, or a `Codec`."""

    def check(self, value: object) -> CodecReference:
        """Return the reference to a codec."""
        return CodecReference.of(value)

    def stated(self, value: Json) -> CodecReference:
        """Return the reference that is written so."""
        return CodecReference.written(value)
