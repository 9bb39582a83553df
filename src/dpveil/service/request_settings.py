"""The settings of a request, checked in a worker: no field opens a file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dpveil.assets.file_reference import DEFAULT, WRITTEN, AssetField
from dpveil.assets.trained_files import installed_path
from dpveil.catalogue import DEFAULT as USUAL
from dpveil.catalogue import build, options
from dpveil.core.parameters import Parameter, Value
from dpveil.core.registry import METHODS
from dpveil.errors import InvalidParameter, UnknownName, nearest
from dpveil.io.names import FORMATS
from dpveil.io.reading import check_trust
from dpveil.mechanisms.method import Method
from dpveil.postprocessing import Step, opens, parse_all
from dpveil.regions import Faces, Finder, check_if_none, parse
from dpveil.regions.finder import Numbers
from dpveil.regions.given_regions import OBJECTS
from dpveil.regions.spec import NAMED_FINDERS, split_choices
from dpveil.release.plan import default_method

SEARCH: Final = {
    **{
        name: name
        for name in ("threshold", "margin", "min_face", "long_side", "smallest", "detector", "only")
    },
    "except": "exclude",
}
"""Settings of the search for faces, and the arguments of `Faces` for them."""
COMMON: Final = ("method", "regions", "if_none", "at_least", "post_processing", "format", "trust_source")
"""Settings that every method has; all others are parameters of the method, or of the search for faces."""
SUBJECT: Final = "subject"  # who pays, which the server takes before a worker sees the settings
WORDS: Final = {"replace": "another name", "box": "regions", "exclude": "except", "max_pixels": "the limit"}
"""Words for arguments of Python whose settings have other names."""
BOX: Final = re.compile(rf"(?:{OBJECTS})?[-+ 0-9,]{{7,100}}")
FORMS: Final = "whole, faces, text, plates, codes, eyes, irises, a box x,y,w,h in pixels, or object:x,y,w,h"
MOST_LISTED: Final = 1000  # most regions, steps and numbers of faces in a request


@dataclass(frozen=True)
class Request:
    """Checked settings: a method, and for a photo its regions and what else `plan` takes."""

    method: Method
    regions: tuple[Finder, ...]
    post_processing: tuple[Step, ...]
    if_none: str | None
    at_least: str | None
    format: str | None
    trust_source: str | None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Request:
        """Return the request for these settings; raises errors of `dpveil.errors` as the library does.

        Unknown settings are refused, and so is every value that would open a file.
        """
        search = {SEARCH[name]: value for name, value in settings.items() if name in SEARCH}
        rest = {name: value for name, value in settings.items() if name not in (*SEARCH, *COMMON)}
        own = (*COMMON, *SEARCH, SUBJECT)
        name = settings.get("method")
        for word in rest:  # what no method has: with a method named, `build` says what that takes
            known = (*own, *(options(METHODS[USUAL]) if name is None else ()))
            if not any(hasattr(kind, word) for kind in METHODS.values()) and (
                name is None or nearest(word, known)
            ):
                raise UnknownName("setting", word[:100], known)
        given = _finders(settings["regions"], search) if "regions" in settings else None
        method = _method(default_method(given or ()) if name is None and not rest else name, rest)
        optional = ("if_none", "at_least", "format", "trust_source")
        words = {n: None if settings.get(n) is None else _text(n, settings[n]) for n in optional}
        if words["format"] is not None and words["format"] not in FORMATS.values():
            raise UnknownName("format", words["format"][:100], set(FORMATS.values()))
        return cls(
            method=method,
            regions=method.accepts(_finders(method.regions, search) if given is None else given),
            post_processing=_steps(settings.get("post_processing", [])),
            if_none=check_if_none(words["if_none"]),
            at_least=words["at_least"],
            format=words["format"],
            trust_source=check_trust(words["trust_source"]),
        )


def _method(name: object, parameters: dict[str, Any]) -> Method:
    if name is not None and (not isinstance(name, str) or name not in METHODS):
        raise UnknownName("method", str(name)[:100], METHODS)
    kind = METHODS[name or USUAL]
    for key, value in parameters.items():
        if not isinstance(value, str | int | bool | None):
            raise InvalidParameter(key[:100], type(value).__name__, "is not a single value", hint="write one")
        _check_opens_nothing(key, value, inspect.getattr_static(kind, key, None))
    return build(name, parameters)


def _check_opens_nothing(name: str, value: object, kind: object) -> None:
    """Raise `InvalidParameter` for a parameter that can name a file, unless its value is no file's name."""
    if not isinstance(kind, Parameter) or isinstance(kind, Value | Numbers):
        return  # `build` refuses what is no parameter
    if isinstance(kind, AssetField):
        text, own = str(value), kind.kind
        named = text in own.kinds and installed_path(text) is not None
        if text in (DEFAULT, own.built_in) or WRITTEN.fullmatch(text) or named:
            return
    raise InvalidParameter(
        name, str(value)[:100], "cannot be chosen here", hint="a request names no file: leave it out"
    )


def _steps(given: object) -> tuple[Step, ...]:
    steps = [_text("post_processing", step) for step in _as_list(given, "post_processing")]
    for step in steps:
        if opens(step):
            hint = "a request names no file: write denoiser alone"
            raise InvalidParameter("post_processing", step[:100], "cannot be chosen here", hint=hint)
    return tuple(parse_all(steps))


def _finders(regions: object, search: Mapping[str, Any]) -> list[Finder]:
    specs = regions if isinstance(regions, list) and not _is_box(regions) else [regions]
    texts = []
    for spec in _as_list(specs, "regions"):  # a text may have several names, such as "faces+text"
        several = isinstance(spec, str) and len(spec) <= MOST_LISTED
        texts += [_region(part) for part in (split_choices(spec) if several else [spec])]
    if search and "faces" not in texts:
        name = next(iter(search))
        raise InvalidParameter(name, None, "is only for faces", hint="add faces to regions, or leave it out")
    return [parse(_faces(search) if text == "faces" else text) for text in texts]


def _is_box(regions: list[Any]) -> bool:
    return bool(regions) and all(isinstance(number, int) for number in regions)


def _region(spec: object) -> str:
    text = ",".join(map(str, spec)) if isinstance(spec, list) and _is_box(spec) else spec
    if not isinstance(text, str) or not (text.strip() in NAMED_FINDERS or BOX.fullmatch(text)):
        shown = str(text)[:100]
        raise UnknownName("regions", shown, NAMED_FINDERS, hint=f"choose {FORMS}")
    return text.strip()


def _faces(search: Mapping[str, Any]) -> Faces:
    for name, value in search.items():
        numbers = name in ("only", "exclude") and isinstance(value, list)
        if not (numbers or isinstance(value, str | int)) or isinstance(value, bool):
            kind = type(value).__name__
            raise InvalidParameter(name, kind, "is not a value", hint="write a number or a word")
        if numbers:
            _as_list(value, name)
    return Faces(**search)


def _as_list(values: object, name: str) -> list[Any]:
    found = values if isinstance(values, list) else [values]
    if len(found) > MOST_LISTED:
        raise InvalidParameter(name, None, f"has {len(found):,} entries", hint=f"at most {MOST_LISTED:,}")
    return found


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > 1000:
        raise InvalidParameter(name, type(value).__name__, "is not a word", hint="write it as text")
    return value
