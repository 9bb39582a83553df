"""What the commands about clips say of plans, and which files they refuse to write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpveil.cli import say
from dpveil.cli.preview import check_name
from dpveil.core.guarantee import counted
from dpveil.errors import OutputError
from dpveil.io.names import shown

if TYPE_CHECKING:
    from dpveil.video.facts import Track
    from dpveil.video.plan import VideoPlan


def check_apart_from(sources: Sequence[Path], written: Mapping[str, Path | None], *, replace: bool) -> None:
    """Raise any error that would prevent writing these files, by their options, before a clip is read."""
    from dpveil.io.folders import identity
    from dpveil.io.writing import refusal

    originals = {identity(source) for source in sources}
    for option, path in written.items():
        if path is None:
            continue
        if option != "--out":
            check_name(path, option)
        if identity(path) in originals:
            raise OutputError(f"{shown(path)} is the clip or the plan itself", hint="choose another name")
        if os.path.lexists(path) and not replace:
            raise refusal(path, FileExistsError(17, ""))


def check_different(named: Mapping[str, Path | None]) -> None:
    """Raise `OutputError` if two files are the same; `named` has what is read and written by what it is."""
    from dpveil.io.folders import identity

    seen: dict[object, str] = {}
    for name, path in named.items():
        other = name if path is None else seen.setdefault(identity(path), name)
        if path is not None and other != name:
            raise OutputError(f"{shown(path)} is {other} and {name}", hint="give each its own name")


def plan_document(plan: VideoPlan, path: Path, sheet: Path | None) -> dict[str, Any]:
    """Return the JSON document about a plan."""
    from dpveil.video.words import draws

    return {
        "plan": str(path),
        "sheet": None if sheet is None else str(sheet),
        "frames": plan.facts.frames,
        "seconds": float(plan.facts.seconds),
        "cuts": list(plan.cuts),
        "tracks": [_track(track) for track in plan.tracks],
        "draws": draws(plan.quote),
        "guarantee": plan.total.to_json(),
        "guarantees": [guarantee.to_json() for guarantee in plan.guarantees],
        "strength": plan.strength,
        "per_frame": plan.per_frame.to_json(),
        "units": plan.units,
        "warnings": list(plan.warnings),
        "in_the_clear": list(plan.in_the_clear),
    }


def tell_plan(
    plan: VideoPlan, tell: Callable[[str], None], options: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Say what a plan replaces, what it costs, and all that warns of it; `options` are as in `notes.told`."""
    from dpveil.core.envelope import told

    for line in _lines(plan):
        tell(line)
    for text in told(plan.warnings, options):
        say.note(f"warning: {text}")
    if plan.left_out:
        say.note(f"left out of the release: {', '.join(plan.left_out)}")


def tell_written(plan: Path, sheet: Path | None) -> None:
    """Say where a plan is, and what to do with it."""
    say.note(f"wrote {shown(plan)}: change it, and release with dpveil video render {shown(plan)} --out ...")
    if sheet is not None:
        tell_private(sheet)


def tell_private(sheet: Path) -> None:
    """Say where a sheet is, and that it is private."""
    say.note(f"wrote {shown(sheet)}: it shows the original, so keep it as private")


def _lines(plan: VideoPlan) -> Iterator[str]:
    from dpveil.video import words
    from dpveil.video.facts import clock
    from dpveil.video.sheets import ended, times_of

    seconds = times_of(plan.facts)
    for track in plan.tracks:
        first, last = clock(seconds[track.first]), clock(seconds[track.last])
        score = "" if track.score is None else f", score {track.score:.2f}"
        person = "" if track.person is None else f", person {track.person}"
        end = f", {ended(track)}" + ", stays as it is" * track.visible
        yield f"track {track.number}: {track.kind}, {first} to {last}{score}{person}{end}"
    length = f"{counted(plan.facts.frames, 'frame')}, {clock(float(plan.facts.seconds))}"
    yield f"{length}: {counted(words.draws(plan.quote), 'draw')}, {plan.total} ({plan.strength})"
    yield from filter(None, (words.event(plan.quote), plan.remark))


def _track(track: Track) -> dict[str, Any]:
    names = ("number", "kind", "first", "last", "end", "score", "person", "visible")
    return {name: getattr(track, name) for name in names}
