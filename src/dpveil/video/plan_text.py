"""The canonical text of a plan of a clip: JSON in which what is short stands in one line, such as a key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from dpveil.core.numbers import Json
from dpveil.video.facts import Facts
from dpveil.video.track import Track

SCHEMA: Final = "dpveil.video-plan/1"
ANALYZED: Final = ("on_lost",)
"""Settings with which the tracks were searched: changed ones need another analysis."""
FOUND: Final = "tracks"
"""Beside them, how many tracks were found: some may be gone from the plan since."""
WIDTH: Final = 100
"""Objects and lists that fit into so many characters are written in one line."""


def text_of(
    clip: str,
    facts: Facts,
    settings: Mapping[str, Json],
    cuts: Sequence[int],
    tracks: Sequence[Track],
    found: int | None,
) -> str:
    """Return the text of the plan of a clip with this name, for these settings; `found` tracks were found."""
    about: dict[str, Json] = {
        "name": clip,
        "sha256": facts.sha256,
        "format": facts.format,
        "codec": facts.codec,
        "width": facts.width,
        "height": facts.height,
        "time_base": str(facts.time_base),
        "start": facts.start,
        "steps": [list(step) for step in facts.steps],
        "audio": facts.audio,
        "dropped": list(facts.dropped),
        "fields": facts.fields,
    }
    listed: list[Json] = [
        {
            "number": track.number,
            "kind": track.kind,
            "finder": track.finder,
            "score": track.score,
            "person": track.person,
            "visible": track.visible,
            "end": track.end,
            "keys": [dict(vars(key)) for key in track.keys],
        }
        for track in tracks
    ]
    chosen = {name: value for name, value in settings.items() if name not in ANALYZED}
    analyzed: dict[str, Json] = {name: settings[name] for name in ANALYZED}
    analyzed |= {} if found is None else {FOUND: found}
    data: dict[str, Json] = {"schema": SCHEMA, "clip": about, "analyzed": analyzed, **chosen}
    data |= {"cuts": list(cuts), "tracks": listed}
    return _written(data, "\n") + "\n"


def _written(value: Json, line: str) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list) or len(text) + len(line) <= WIDTH:
        return text
    deeper = line + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_written(each, deeper)}" for name, each in value.items()]
        return "{" + deeper + ("," + deeper).join(parts) + line + "}"
    return "[" + deeper + ("," + deeper).join(_written(each, deeper) for each in value) + line + "]"
