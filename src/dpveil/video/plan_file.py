"""Plans of clips as JSON that people edit: every value is checked, and nothing that it names is opened."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeVar

from dpveil.catalogue import build
from dpveil.core.numbers import exact
from dpveil.core.parameters import Parameter
from dpveil.core.registry import METHODS
from dpveil.errors import DPVeilError, InvalidParameter, UnknownName, suggestion
from dpveil.io import read_untrusted
from dpveil.io.names import check_path, escape_text, show_path
from dpveil.io.unreadable import Refused
from dpveil.mechanisms.method import Method
from dpveil.postprocessing import step_from_certificate as stated_step
from dpveil.video.facts import FIXED, Facts, Key, Track
from dpveil.video.plan import SCHEMA, VideoPlan
from dpveil.video.plan_checks import check_text, field_error

MOST_BYTES: Final = 1 << 25
HASH: Final = re.compile(r"[0-9a-f]{64}")
BY_HAND: Final = {
    "text": "text by hand",
    **{kind: f"{kind}s by hand" for kind in ("face", "plate", "code", "eye")},
}
"""The finder of a track that a user added, by its kind."""
OTHERS: Final = "detected by hand"
"""That of other kinds, which methods that draw faces cover."""
CLIP: Final = "name sha256 format codec width height time_base start steps audio dropped"
PLAN: Final = "schema clip method parameters request post_processing keep_audio cuts tracks"
TRACK: Final = "number kind finder score person visible end keys"
KEY: Final = "frame x y w h roll yaw"


def read_plan(path: str | Path) -> VideoPlan:
    """Return the plan in a file; raises `UsageError` that names the field and the value which is wrong."""
    file = Path(check_path(path, "give the name of a plan, such as plan.json"))
    try:
        text = read_untrusted(file, MOST_BYTES).decode()
    except Refused as refusal:
        hint = refusal.remedy if file.exists() else "make one with dpveil video analyze"
        raise InvalidParameter("plan", show_path(file), refusal.problem, hint=hint) from refusal
    except UnicodeDecodeError as error:
        raise InvalidParameter("plan", show_path(file), "is not UTF-8 text", hint=AGAIN) from error
    return parse_plan(text)


AGAIN: Final = "make it again with dpveil video analyze"


def parse_plan(text: str) -> VideoPlan:
    """Return the plan that `text` states, which may be written in any form of JSON.

    Raises errors of `dpveil.errors`, one line each, that name the field and its value.
    """
    try:
        data = json.loads(text)
        return _plan(_object(data, "", PLAN, {"schema", "clip", "method", "tracks"}))
    except DPVeilError:
        raise
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        raise InvalidParameter("plan", None, problem, hint=f"mend it there, or {AGAIN}") from error
    except (ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
        raise InvalidParameter("plan", None, "is not the JSON of a plan", hint=AGAIN) from error


def _plan(data: Mapping[str, Any]) -> VideoPlan:
    if data["schema"] != SCHEMA:
        raise field_error("schema", data["schema"], "is not one of a plan", f"this version reads {SCHEMA}")
    clip = _object(data["clip"], "clip", CLIP, {*CLIP.split()} - {"dropped"})
    if not isinstance(clip["sha256"], str) or not HASH.fullmatch(clip["sha256"]):
        raise field_error("sha256", clip["sha256"], "is no SHA-256", AGAIN)
    dropped = _of(list, clip.get("dropped", []), "dropped")
    facts = Facts(
        sha256=clip["sha256"],
        format=check_text(clip["format"], "format"),
        codec=check_text(clip["codec"], "codec"),
        width=clip["width"],
        height=clip["height"],
        time_base=exact(check_text(clip["time_base"], "time_base"), "time_base"),
        start=clip["start"],
        steps=tuple((step, count) for step, count in _of(list, clip["steps"], "steps")),
        audio=_of(bool, clip["audio"], "audio"),
        dropped=tuple(check_text(each, f"dropped[{at}]") for at, each in enumerate(dropped)),
    )
    tracks = _of(list, data["tracks"], "tracks")
    steps = _of(list, data.get("post_processing", []), "post_processing")
    return VideoPlan(
        clip=clip["name"],
        facts=facts,
        method=_method(data["method"], data.get("parameters", {})),
        tracks=tuple(_track(each, f"tracks[{at}]") for at, each in enumerate(tracks)),
        cuts=tuple(_of(list, data.get("cuts", []), "cuts")),
        request=tuple(_of(list, data.get("request", []), "request")),
        post_processing=tuple(stated_step(check_text(step, "post_processing")) for step in steps),
        keep_audio=_of(bool, data.get("keep_audio", False), "keep_audio"),
    )


def _track(value: object, where: str) -> Track:
    data = _object(value, where, TRACK, {"number", "kind", "keys"})
    keys = tuple(
        Key(**_object(each, f"{where}.keys[{at}]", KEY, {"frame", "x", "y", "w", "h"}))
        for at, each in enumerate(_of(list, data["keys"], f"{where}.keys"))
    )
    kind = check_text(data["kind"], f"{where}.kind")
    if data.get("score") is not None and not isinstance(data["score"], int | float):
        raise field_error(f"{where}.score", None, "is not a number")
    return Track(
        number=data["number"],
        kind=kind,
        finder=data.get("finder", kind if kind in FIXED else BY_HAND.get(kind, OTHERS)),
        end=data.get("end", "left"),
        keys=keys,
        score=data.get("score"),
        person=data.get("person"),
        visible=_of(bool, data.get("visible", False), f"{where}.visible"),
    )


def _method(name: object, parameters: object) -> Method:
    """Return a method by name; parameters that are left out have their defaults, and none names a file."""
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownName("method", escape_text(str(name))[:60], METHODS)
    kind = METHODS[name]
    names = {each.name: inspect.getattr_static(kind, each.name) for each in fields(kind)}
    known = {each: static for each, static in names.items() if isinstance(static, Parameter)}
    given = _object(parameters, "parameters", " ".join(known), set())
    return build(name, {n: None if v is None else known[n].stated(v) for n, v in given.items()})


def _object(value: object, where: str, names: str, needed: set[str]) -> dict[str, Any]:
    data, known, before = _of(dict, value, where or "plan"), names.split(), f"{where}." if where else ""
    for name in data:
        if name not in known:
            hint = f"{suggestion(name, known)}its fields are {', '.join(known)}"
            raise field_error(f"{before}{escape_text(name)[:60]}", data[name], "is unknown", hint)
    for name in known:
        if name in needed and name not in data:
            raise field_error(f"{before}{name}", None, "is missing")
    return data


JSON_TYPES: Final = {dict: "an object", list: "a list", bool: "true or false"}
Type = TypeVar("Type")


def _of(kind: type[Type], value: object, where: str) -> Type:
    if not isinstance(value, kind):
        raise field_error(where, value, f"is not {JSON_TYPES[kind]}")
    return value
