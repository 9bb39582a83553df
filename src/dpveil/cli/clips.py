"""Clips: their options, and those among the inputs of `dpveil obfuscate`, which go their own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import say
from dpveil.cli.options import Text, splice_options
from dpveil.cli.say import Voice
from dpveil.core.guarantee import count_noun
from dpveil.core.notes import notes_with_options
from dpveil.core.urls import Url
from dpveil.errors import InvalidParameter, OutputError, UsageError
from dpveil.io.folders import VIDEOS, is_folder
from dpveil.io.names import show_path
from dpveil.io.writing import no_folder
from dpveil.release.words import in_short

if TYPE_CHECKING:
    from dpveil.batch.archive_inputs import PageSettings
    from dpveil.batch.interrupts import Interrupts
    from dpveil.batch.report import Report
    from dpveil.batch.tasks import RunSettings, Task
    from dpveil.cli.review import Part
    from dpveil.video.plan import VideoPlan


COMMON: Final[Mapping[str, Any]] = {
    "keep_audio": Annotated[
        bool,
        typer.Option("--keep-audio", help="Of clips: keep the sound, which tells who speaks; else dropped."),
    ],
}
"""What every command that takes clips has."""
PLANNING: Final[Mapping[str, Any]] = {
    "every": Annotated[
        Text,
        typer.Option(
            metavar="SECONDS",
            help="Search a frame each time so many seconds have passed, and follow between; 0: every frame."
            "  [default: 0.2]",
        ),
    ],
    "keep": Annotated[
        Text,
        typer.Option(metavar="N,N", help="Leave these tracks as they are, by their numbers on the sheet."),
    ],
    "link": Annotated[
        list[str] | None,
        typer.Option(metavar="N,N", help="These tracks are one person, as you say; repeatable."),
    ],
}
"""What a command has besides that plans a clip."""


@dataclass(frozen=True)
class ClipOptions:
    """The values of these options by name, of those that were given."""

    values: Mapping[str, Any]

    def settings(self) -> dict[str, Any]:
        """Return the values as arguments of `video.analyze`; raises `InvalidParameter`."""
        values = dict(self.values)
        if "keep" in values:
            values["keep"] = numbers(values["keep"], "keep")
        if "link" in values:
            values["link"] = [numbers(text, "link", fewest=2) for text in values["link"]]
        return values


NO_CLIPS: Final = ClipOptions({})


def numbers(text: str, option: str, *, fewest: int = 1) -> tuple[int, ...]:
    """Return the numbers of tracks in a text; raises `InvalidParameter`.

    >>> numbers("1, 4", "link")
    (1, 4)
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InvalidParameter(option, text, "is no list of tracks", hint="write numbers such as 1,4")
    found = tuple(dict.fromkeys(int(part) for part in parts))
    if len(found) < fewest:
        raise InvalidParameter(option, text, f"names fewer than {fewest} tracks", hint="such as 1,4")
    return found


def takes_clips(command: Callable[..., int], *, planning: bool = False) -> Callable[..., int]:
    """Return `command` with these options instead of its parameter `clip`, which gets a `ClipOptions`."""
    table = {**COMMON, **(PLANNING if planning else {})}
    return splice_options(command, "clip", table, lambda given, _: ClipOptions(given))


def check_different(named: Mapping[str, Path | None]) -> None:
    """Raise `OutputError` if two files are the same; `named` has what is read and written by what it is."""
    from dpveil.io.folders import identity

    seen: dict[object, str] = {}
    for name, path in named.items():
        other = name if path is None else seen.setdefault(identity(path), name)
        if path is not None and other != name:
            raise OutputError(f"{show_path(path)} is {other} and {name}", hint="give each its own name")


def plan_document(plan: VideoPlan, path: Path | None, sheet: Path | None) -> dict[str, Any]:
    return {
        "plan": None if path is None else str(path),
        "sheet": None if sheet is None else str(sheet),
        "frames": plan.facts.frames,
        "seconds": float(plan.facts.seconds),
        "cuts": list(plan.cuts),
        "tracks": [{name: getattr(track, name) for name in TRACK} for track in plan.tracks],
        "draws": len(plan.draws),
        "guarantee": plan.total.to_json(),
        "guarantees": [guarantee.to_json() for guarantee in plan.guarantees],
        "strength": plan.strength,
        "warnings": list(plan.warnings),
        "in_the_clear": list(plan.in_the_clear),
    }


def tell_plan(plan: VideoPlan, tell: Callable[[str], None]) -> None:
    """Say what a plan replaces, what it costs, and all that warns of it."""
    from dpveil.video.facts import clock
    from dpveil.video.sheets import end_text, times_of

    seconds = times_of(plan.facts)
    for track in plan.tracks:
        first, last = clock(seconds[track.first]), clock(seconds[track.last])
        score = "" if track.score is None else f", score {track.score:.2f}"
        person = "" if track.person is None else f", person {track.person}"
        end = f", {end_text(track)}" + ", stays as it is" * track.visible
        tell(f"track {track.number}: {track.kind}, {first} to {last}{score}{person}{end}")
    length = f"{count_noun(plan.facts.frames, 'frame')}, {clock(float(plan.facts.seconds))}"
    promise = in_short(plan.total, " of what is replaced")
    promise += f" ({plan.strength})" if plan.total.formal and not plan.total.free else ""
    tell(f"{length}, {count_noun(len(plan.draws), 'draw')}: {promise}")
    for text in notes_with_options(plan.warnings, OPTIONS):
        say.note(f"warning: {text}")
    if plan.left_out:
        say.note(f"left out of the release: {', '.join(plan.left_out)}")


def tell_private(sheet: Path) -> None:
    say.note(f"wrote {show_path(sheet)}: it shows the original, so keep it as private")


TRACK: Final = ("number", "kind", "first", "last", "end", "score", "person", "visible")
OPTIONS: Final = {"protect": "--protect"}  # the options that notes about clips name


def is_video_input(path: Path) -> bool:
    return path.suffix.lower().removeprefix(".") in VIDEOS.split()


def planned_clips(
    inputs: Sequence[Path],
    out: Path,
    names: str,
    format_: str | None,
    options: ClipOptions,
    scan: PageSettings,
) -> tuple[list[Task], list[Task], list[Task]]:
    """Return all tasks, those for pictures, and those for clips, which are named like their inputs.

    Documents are read as `scan` says.
    """
    from dpveil.batch.remote_output import plan_remote_tasks
    from dpveil.batch.tasks import Task, check_outputs
    from dpveil.release.saving import CLIPS

    named = out.suffix and not isinstance(out, Url) and not is_folder(out)
    if named and len(inputs) == 1 and not is_folder(inputs[0]) and is_video_input(inputs[0]):
        if out.suffix.lower() not in CLIPS:
            hint = f"end the name in one of {', '.join(CLIPS)}, or name a folder"
            raise UsageError(f"--out {show_path(out)}: a clip is released as a clip", hint=hint)
        if not is_folder(out.parent):
            raise no_folder(out)
        photos, clips = [], [Task(inputs[0], out, out.name)]
    else:
        tasks = plan_remote_tasks(inputs, out, names=names, format=format_, scan=scan)
        found = [task for task in tasks if task.inside is None and is_video_input(task.source)]
        photos = [task for task in tasks if task not in found]
        for clip in found:
            called = f"{show_path(clip.source)} is a clip, and clips"
            if names != "keep":
                raise UsageError(f"{called} keep their names", hint="leave out --names")
            if clip.remote is not None or isinstance(clip.source, Url):
                hint = "copy the clip to this disk, and name a folder as --out"
                raise UsageError(f"{called} are not read or put by URL", hint=hint)
        # a.mp4 for a.mov, or a.mov.mp4 where a photo has the same stem
        clips = [
            replace(t, output=t.output.with_suffix(".mp4"), name=Path(t.name).with_suffix(".mp4").as_posix())
            for t in found
        ]
    every = [*photos, *clips]
    if clips:
        check_outputs(every, [task.source for task in every])
    if options.values and not clips:
        first = next(iter(options.values)).replace("_", "-")
        raise UsageError(f"--{first} is for clips, and there is none among the inputs", hint="leave it out")
    options.settings()
    return every, photos, clips


def release_clips(
    report: Report,
    clips: Sequence[Task],
    choices: RunSettings,
    options: ClipOptions,
    interrupts: Interrupts,
    voice: Voice,
    parts: list[Part | None] | None,
) -> None:
    """Release every clip after the photos; add what became of each to the report, and to a page's `parts`."""
    if not clips:
        return
    from dpveil.batch.report import INTERRUPTED, Untried
    from dpveil.cli.progress import frames_bar
    from dpveil.cli.review import clip_part
    from dpveil.video.clip_in_batch import ClipRun

    def see(task: Task, plan: VideoPlan) -> None:
        if parts is not None:
            parts.append(clip_part(task, plan))

    run = ClipRun(choices=choices, more=options.settings(), see=see)
    with frames_bar(quiet=voice.quiet) as progress:
        for task in clips:
            if report.stopped is not None:
                report.fail(task, Untried(report.stopped), tried=False)
                continue
            try:
                with interrupts.raising():
                    entry = run.release(task, progress)
                warnings = notes_with_options(entry.warnings, OPTIONS)
                report.entries.append(replace(entry, warnings=warnings))
            except KeyboardInterrupt:
                report.fail(task, Untried(INTERRUPTED), tried=False)
                report.stopped = INTERRUPTED
                say.note(f"{show_path(task.source)}: the same command goes on, and pays nothing twice")
            except Exception as error:  # noqa: BLE001  one clip must not stop the rest
                report.fail(task, error)
