"""Which gallery or model of attributes a method uses: by kind and hash, as certificates write it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from dpveil.codecs.attributes import AttributeModel, load_attributes
from dpveil.assets.defaults import default_path
from dpveil.codecs.gallery import FaceGallery, load_gallery
from dpveil.core.numbers import Json
from dpveil.core.parameters import Parameter
from dpveil.errors import InvalidParameter, ModelError, UsageError
from dpveil.io.names import shown

DEFAULT: Final = "default"
WRITTEN: Final = re.compile(r"([a-z]+) sha256:([0-9a-f]{64})")
LOADERS: Final[dict[str, Any]] = {"gallery": load_gallery, "attributes": load_attributes}
TYPES: Final[dict[str, type]] = {"gallery": FaceGallery, "attributes": AttributeModel}


@dataclass(frozen=True)
class FileReference:
    """A file by its `kind`, "gallery" or "attributes", and the `digest` of what is in it.

    `source` is what the file holds, or None where only a certificate names it: then the default is taken if
    that is the one, and any other is asked for. No path is ever part of it.

    >>> str(FileReference.of("gallery sha256:" + 64 * "0", "gallery"))[:22]
    'gallery sha256:0000000'
    """

    kind: str
    digest: str
    source: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, value: object, kind: str) -> FileReference:
        """Return the reference to "default", a file, what a file holds, or what a reference wrote.

        Raises `UsageError` where the default is not installed, `ModelError` and `InvalidParameter`.
        """
        if isinstance(value, FileReference) and value.kind == kind:
            return value
        if isinstance(value, TYPES[kind]):
            return cls(kind, value.digest, value)  # type: ignore[attr-defined]
        if not isinstance(value, str | Path):
            raise InvalidParameter(kind, type(value).__name__, "is no file", hint="name a file of that kind")
        if WRITTEN.fullmatch(str(value)):
            return cls.written(str(value), kind)
        path = default_path(kind) if str(value) == DEFAULT else Path(value)
        try:
            stamp = path.stat().st_mtime_ns, path.stat().st_size
        except (OSError, ValueError) as error:
            hint = f"make one: dpveil train {kind} SHARDS... --out {kind}.safetensors"
            raise ModelError(f"there is no {kind} {shown(path)}", hint=hint) from error
        return _loaded(kind, path, stamp)

    @classmethod
    def written(cls, text: object, kind: str) -> FileReference:
        """Return the reference that `text` is the written form of, as in certificates; opens no file.

        Raises `InvalidParameter` for anything else.
        """
        known = WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if known is None or known[1] != kind:
            problem = f"is no {kind} as certificates write it"
            raise InvalidParameter(kind, text, problem, hint=f"{kind} sha256:…")
        return cls(kind, known[2])

    @property
    def held(self) -> Any:
        """What the file holds; raises `ModelError` where it is not at hand."""
        if self.source is not None:
            return self.source
        try:
            default = FileReference.of(DEFAULT, self.kind)
        except UsageError:
            default = None
        if default != self:
            what = "gallery" if self.kind == "gallery" else "model of attributes"
            option = "--gallery" if self.kind == "gallery" else "--model"
            problem = f"the {what} with the hash {self.digest[:12]}… is not at hand"
            raise ModelError(problem, hint=f"name its file with {option}")
        return default.source

    def __str__(self) -> str:
        return f"{self.kind} sha256:{self.digest}"


@lru_cache(maxsize=4)
def _loaded(kind: str, path: Path, stamp: tuple[int, int]) -> FileReference:
    held = LOADERS[kind](path)
    return FileReference(kind, held.digest, held)


class FileField(Parameter[object, FileReference]):
    """A gallery or a model of attributes: "default", a file, or what it holds."""

    def __init__(self, kind: str) -> None:
        super().__init__(default=DEFAULT)
        self.kind = kind

    def check(self, value: object) -> FileReference:
        """Return the reference to the file."""
        return FileReference.of(value, self.kind)

    def stated(self, value: Json) -> FileReference:
        """Return the reference that is written so."""
        return FileReference.written(value, self.kind)
