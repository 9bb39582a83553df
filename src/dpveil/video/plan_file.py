"""Plans of clips as JSON that people edit: `to_text` is its canonical form, `parse_plan` reads any form.

What is read is hostile: every value is checked, sizes are bounded, and nothing that it names is opened.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

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
from dpveil.video.choices import FIXED
from dpveil.video.facts import Facts, Key, Track
from dpveil.video.plan import SCHEMA, VideoPlan
from dpveil.video.plan_checks import MOST_TRACKS, check_text, field_error

MOST_BYTES: Final = 1 << 25
HASH: Final = re.compile(r"[0-9a-f]{64}")
BY_HAND: Final = {
    "face": "faces by hand",
    "text": "text by hand",
    "plate": "plates by hand",
    "code": "codes by hand",
    "eye": "eyes by hand",
}
"""The finder of a track that a user added, by its kind."""
OTHERS: Final = "detected by hand"
"""That of other kinds, which methods that draw faces cover."""
LEFT: Final = "left"
CLIP: Final = "name sha256 format codec width height time_base start steps audio dropped"
PLAN: Final = (
    "schema clip method parameters request post_processing over_time pose on_lost keep_audio cuts tracks"
)
NEEDED: Final = {"schema", "clip", "method", "tracks"}
TRACK: Final = "number kind finder score person visible end keys"
KEY: Final = "frame x y w h roll yaw"


def to_text(plan: VideoPlan) -> str:
    """Return the canonical text of a plan."""
    return plan.to_text()


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
        data = json.loads(text, object_pairs_hook=_unique_members)
        return _plan(_object(data, "plan", PLAN, NEEDED))
    except DPVeilError:
        raise
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        raise InvalidParameter("plan", None, problem, hint=f"mend it there, or {AGAIN}") from error
    except (ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
        problem = "is not the JSON of a plan"
        raise InvalidParameter("plan", None, problem, hint=AGAIN) from error


def _plan(data: Mapping[str, Any]) -> VideoPlan:
    if data["schema"] != SCHEMA:
        raise field_error("schema", data["schema"], "is not one of a plan", f"this version reads {SCHEMA}")
    clip = _object(data["clip"], "clip", CLIP, {*CLIP.split()} - {"dropped"})
    chosen = {n: data[n] for n in ("over_time", "pose", "on_lost") if n in data}
    if "keep_audio" in data:
        chosen["keep_audio"] = _flag(data["keep_audio"], "keep_audio")
    steps = _list(data.get("post_processing", []), "post_processing")
    texts = [check_text(step, f"post_processing[{at}]") for at, step in enumerate(steps)]
    listed = _list(data["tracks"], "tracks")
    if len(listed) > MOST_TRACKS:
        raise field_error("tracks", len(listed), "are too many", f"at most {MOST_TRACKS:,}")
    plan = VideoPlan(
        clip=clip["name"],
        facts=_facts(clip),
        method=_method(data["method"], data.get("parameters", {})),
        tracks=tuple(_track(each, f"tracks[{at}]") for at, each in enumerate(listed)),
        cuts=tuple(_list(data.get("cuts", []), "cuts")),
        request=tuple(_list(data.get("request", []), "request")),
        post_processing=tuple(map(stated_step, texts)),
        **chosen,
    )
    return plan


def _facts(clip: Mapping[str, Any]) -> Facts:
    if not isinstance(clip["sha256"], str) or not HASH.fullmatch(clip["sha256"]):
        raise field_error("sha256", clip["sha256"], "is no SHA-256", AGAIN)
    steps = _list(clip["steps"], "steps")
    for at, step in enumerate(steps):
        if len(_list(step, f"steps[{at}]")) != 2:
            raise field_error(f"steps[{at}]", None, "is not a difference and a count", AGAIN)
    dropped = _list(clip.get("dropped", []), "dropped")
    return Facts(
        sha256=clip["sha256"],
        format=check_text(clip["format"], "format"),
        codec=check_text(clip["codec"], "codec"),
        width=clip["width"],
        height=clip["height"],
        time_base=exact(check_text(clip["time_base"], "time_base"), "time_base"),
        start=clip["start"],
        steps=tuple((step[0], step[1]) for step in steps),
        audio=_flag(clip["audio"], "audio"),
        dropped=tuple(check_text(each, f"dropped[{at}]") for at, each in enumerate(dropped)),
    )


def _track(value: object, where: str) -> Track:
    data = _object(value, where, TRACK, {"number", "kind", "keys"})
    keys = []
    for at, each in enumerate(_list(data["keys"], f"{where}.keys")):
        name = f"{where}.keys[{at}]"
        keys.append(Key(**_object(each, name, KEY, {"frame", "x", "y", "w", "h"})))
    optional = {n: data[n] for n in ("score", "person", "visible") if n in data}
    kind, end = data["kind"], data.get("end", LEFT)
    by_hand = BY_HAND.get(kind, OTHERS) if isinstance(kind, str) else OTHERS
    finder = data.get("finder", kind if kind in FIXED else by_hand)
    return Track(number=data["number"], kind=kind, finder=finder, end=end, keys=tuple(keys), **optional)


def _method(name: object, parameters: object) -> Method:
    """Return a method by name; parameters that are left out have their defaults, and none names a file."""
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownName("method", escape_text(str(name))[:60], METHODS)
    kind = METHODS[name]
    names = {each.name: inspect.getattr_static(kind, each.name) for each in fields(kind)}
    known = {each: static for each, static in names.items() if isinstance(static, Parameter)}
    given = _object(parameters, "parameters", " ".join(known), set())
    for each, value in given.items():
        if isinstance(value, dict | list):
            raise field_error(f"parameters.{each}", None, "is not a single value")
    return build(name, {n: None if v is None else known[n].stated(v) for n, v in given.items()})


def _object(value: object, where: str, names: str, needed: set[str]) -> dict[str, Any]:
    """Return a JSON object that has the `needed` fields and no others than `names`."""
    if not isinstance(value, dict):
        raise field_error(where, value, "is not an object")
    known, before = names.split(), "" if where == "plan" else f"{where}."
    for name, each in value.items():
        if name not in known:
            hint = f"{suggestion(name, known)}its fields are {', '.join(known)}"
            raise field_error(
                f"{'' if where == 'plan' else where + '.'}{escape_text(name)[:60]}", each, "is unknown", hint
            )
    for name in known:
        if name in needed and name not in value:
            raise field_error(f"{before}{name}", None, "is missing")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise field_error(where, value, "is not a list")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise field_error(where, value, "is neither true nor false")
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise field_error(escape_text(name)[:60], value, "is given twice in one object", "leave one out")
        data[name] = value
    return data
