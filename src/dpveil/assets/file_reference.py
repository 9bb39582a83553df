"""A reference to a trained file by name and hash, as in certificates; loaded on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from types import UnionType
from typing import Any, Final

from dpveil.assets.trained_files import default_path, installed_path, load
from dpveil.core.parameters import Parameter
from dpveil.core.rationals import Json
from dpveil.errors import DPVeilError, InvalidParameter, ModelError, UnknownName, UsageError, suggestion
from dpveil.io.names import show_path

DEFAULT: Final = "default"
WRITTEN: Final = re.compile(r"([a-z][a-z0-9-]*)(?: ([1-9][0-9]{0,6}))? sha256:([0-9a-f]{64})")
"""The form of a reference in certificates: name, length if any, and hash."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of trained file: its names, and how it is read.

    `noun` and `option` name it in messages, `written` is an example of its form in certificates, and `hint`
    says how to get a file. `kinds` maps names of contents to their types; `holds` is the type of all of them,
    with a `name`, a `digest`, and a `length` if `sized`. `read` returns the contents of a file and its hash.
    `default` is the name of dpveil-faces' file, if any, and `others` those of more such files. `built_in` is
    a word for the result of `build`, which needs no file and is the default if that file is not installed or
    does not exist.
    """

    noun: str
    option: str
    written: str
    hint: str
    kinds: Mapping[str, Any]
    holds: type | UnionType
    read: Callable[[Path, Mapping[str, Any]], tuple[Any, str]] = load
    sized: bool = False
    default: str = ""
    others: tuple[str, ...] = ()
    built_in: str = ""
    build: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Reference:
    """A trained file by its `name`, the `digest` of its contents, and the `length` of its codes, if any.

    `source` is the contents of the file, or None if the reference comes from a certificate; then the default
    file is used if it has the same hash. Built-in choices have no digest. A reference never has a path.
    """

    name: str
    digest: str
    length: int | None
    kind: Kind = field(compare=False, repr=False)
    source: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, value: object, kind: Kind) -> Reference:
        """Return the reference to "default", a file, the contents of a file, or a reference's written form.

        The name of a kind, such as "gan", is dpveil-faces' file of that name, if there is one.

        Raises `UsageError` if the default is not installed, `InvalidParameter`, also for a word that is no
        file, and `ModelError`.
        """
        if isinstance(value, Reference) and value.kind.noun == kind.noun:
            if value.name in (*kind.kinds, kind.built_in):
                return value
            value = str(value)
        if isinstance(value, kind.holds):
            return _reference_to(value, value.digest, kind)  # type: ignore[attr-defined]
        if not isinstance(value, str | Path):
            problem = f"is no {kind.noun}"
            raise InvalidParameter(kind.option, type(value).__name__, problem, hint=f"such as {kind.written}")
        text = str(value)
        if text == kind.built_in and text:
            return cls.built_in(kind)
        if WRITTEN.fullmatch(text):
            return cls.parse(text, kind)
        path = Path(value)
        if text in (*kind.kinds, *kind.others) and (own := installed_path(text)):
            path = own
        if kind.default and text == DEFAULT:
            try:
                path = default_path(kind.default)
            except UsageError:
                if not kind.built_in:
                    raise
                return cls.built_in(kind)
        stamp = _stamp(path)
        if stamp is None:
            raise _missing(kind, path, word=path.name == value and not path.suffix)
        return _load(kind, path, stamp)

    @classmethod
    def built_in(cls, kind: Kind) -> Reference:
        return cls(kind.built_in, "", None, kind)

    @classmethod
    def parse(cls, text: object, kind: Kind) -> Reference:
        """Return the reference with this written form, as in certificates; opens no file.

        Raises `InvalidParameter` for anything else, and `UnknownName`.
        """
        if isinstance(text, str) and text and text == kind.built_in:
            return cls.built_in(kind)
        known = WRITTEN.fullmatch(text) if isinstance(text, str) else None
        fits = known is not None and (known[2] is not None) == kind.sized
        if known is None or not fits or not (kind.sized or known[1] in kind.kinds):
            problem = f"is no {kind.noun} as certificates write one"
            raise InvalidParameter(kind.option, text, problem, hint=f"such as {kind.written}")
        if known[1] not in kind.kinds:
            raise UnknownName(kind.noun, known[1], kind.kinds)
        return cls(known[1], known[3], int(known[2]) if kind.sized else None, kind)

    @property
    def held(self) -> Any:
        """The contents of the file; raises `ModelError` if it is not available."""
        if self.source is not None:
            return self.source
        if self.kind.build is not None and self.name == self.kind.built_in:
            return self.kind.build()
        for text in (DEFAULT, self.name, *self.kind.others) if self.kind.default else ():
            if text == DEFAULT or installed_path(text):
                try:
                    known = Reference.of(text, self.kind)
                except UsageError:
                    continue
                if known == self:
                    return known.source
        problem = f"the {self.kind.noun} with the hash {self.digest[:12]}… is not available"
        raise ModelError(problem, hint=f"name its file with --{self.kind.option}")

    @property
    def terms(self) -> str:
        """What the file's licence allows, by its card; empty if nothing is known of it."""
        with suppress(ModelError):
            return getattr(getattr(self.held, "card", None), "terms", "") if self.digest else ""
        return ""

    def __str__(self) -> str:
        if not self.digest:
            return self.name
        return f"{self.name} {f'{self.length} ' if self.length else ''}sha256:{self.digest}"


def forbids_commerce(terms: Iterable[str]) -> bool:
    """Whether the licence of a trained file allows non-commercial use alone."""
    return any("non-commercial" in text for text in terms)


def terms_of(users: Iterable[object]) -> dict[str, str]:
    """Return the licence terms of the trained files that methods and steps use, by their written names."""
    values = (getattr(user, name) for user in users for name in getattr(user, "__dataclass_fields__", ()))
    return {str(value): value.terms for value in values if isinstance(value, Reference) and value.terms}


def _reference_to(held: Any, digest: str, kind: Kind) -> Reference:
    return Reference(held.name, digest, held.length if kind.sized else None, kind, held)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return the modification time of a file in ns, and its size; None if there is no file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size) if S_ISREG(found.st_mode) else None


def _missing(kind: Kind, path: Path, *, word: bool) -> DPVeilError:
    words = [known for known in (DEFAULT * bool(kind.default), kind.built_in) if known]
    hint = suggestion(str(path).lower(), words) + kind.hint
    if word:
        return InvalidParameter(kind.option, show_path(path), "is neither a file nor a known word", hint=hint)
    return ModelError(f"there is no {kind.noun} {show_path(path)}", hint=hint)


@lru_cache(maxsize=8)
def _load(kind: Kind, path: Path, stamp: tuple[int, int]) -> Reference:
    held, digest = kind.read(path, kind.kinds)
    return _reference_to(held, digest, kind)


class AssetField(Parameter[object, Reference]):
    """A parameter that names a trained file of one kind: "default", a file, or what it holds."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(default=DEFAULT if kind.default else kind.built_in)
        self.kind = kind

    def check(self, value: object) -> Reference:
        return Reference.of(value, self.kind)

    def stated(self, value: Json) -> Reference:
        return Reference.parse(value, self.kind)
