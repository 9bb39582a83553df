"""Numbered outputs such as photo-000001.png, which hide names; a photo keeps its number across runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from dpveil.batch.state import State, key_of
from dpveil.errors import UsageError
from dpveil.io import make_folder, received, sole_writer
from dpveil.io.folders import is_folder
from dpveil.io.names import shown
from dpveil.io.refused import Refused
from dpveil.io.writing import refusal
from dpveil.release.saving import SUFFIX

NAMED: Final = "photo-{:06}.png"
"""The name of a numbered output."""
MOST_BYTES: Final = 1 << 30
"""Largest release that is hashed, in bytes."""
NUMBERED: Final = re.compile(r"photo-([0-9]{6,15})\.png(\.certificate\.json)?")
"""Names of numbered outputs and their certificates."""


def numbered(names: Sequence[str], out: Path) -> list[str]:
    """Return the numbered output of every input, in order; known inputs keep their numbers.

    Writes nothing: call `keep_numbers` once everything else is checked. Raises `UsageError` if `out` has
    releases with unknown numbers, which may be of these photos, so that their cost would be paid twice.
    """
    state = State.read(out)
    check_numbers(out, state)
    keys = [key_of(name) for name in names]
    new = [key for key in keys if key not in state.numbers]
    first = max(state.numbers.values(), default=0) + 1
    numbers = state.numbers | {key: number for number, key in enumerate(new, first)}
    return [NAMED.format(numbers[key]) for key in keys]


def keep_numbers(names: Mapping[str, str], out: Path) -> None:
    """Store the number of each input's output in the state of `out`, before anything is drawn.

    `names` maps inputs to outputs. Raises `UsageError` if another run has taken one of the numbers since, or
    as `numbered`, and `OutputError` if the state cannot be written.
    """
    make_folder(out)
    numbers = ((key_of(name), number_of(output)) for name, output in names.items())
    wanted = {key: number for key, number in numbers if number is not None}
    try:
        with sole_writer([out]):
            state = State.read(out)
            check_numbers(out, state)
            new = {key: number for key, number in wanted.items() if state.numbers.get(key) != number}
            if new.keys() & state.numbers.keys() or {*new.values()} & {*state.numbers.values()}:
                problem = f"another run has numbered photos in {shown(out)} meanwhile"
                raise UsageError(problem, hint="run the same command again")
            if new:
                state.note_numbers(new.items())
    except OSError as error:
        raise refusal(out, error) from error


def keep_all(outputs: Iterable[tuple[str | None, Path]]) -> None:
    """Store the numbers of outputs in their folders, as `keep_numbers`, each with its input's name if any."""
    found: dict[Path, dict[str, str]] = {}
    for name, output in outputs:
        if name is not None:
            found.setdefault(output.parent, {})[name] = output.name
    for folder, names in found.items():
        keep_numbers(names, folder)


def number_of(output: str) -> int | None:
    """Return the number in the name of a numbered output or its certificate; None for other names."""
    match = NUMBERED.fullmatch(output)
    return None if match is None else int(match[1])


def check_numbers(out: Path, state: State, outputs: Collection[str] = ()) -> None:
    """Raise `UsageError` if `out` has numbered releases of unknown photos.

    Known are the numbers in the state, files whose hash is in the state, and `outputs`, the names of this
    run's outputs, which may look like numbers.
    """
    known = {None, *state.numbers.values()}
    try:
        found = sorted(path.name for path in out.iterdir()) if is_folder(out) else []
    except OSError as error:
        raise refusal(out, error) from error
    for name in found:
        image = name.removesuffix(SUFFIX)
        if number_of(name) not in known and image not in outputs and not _released(out / image, state):
            reason = state.problem or "the state of this folder does not say so"
            raise UsageError(
                f"{shown(out / name)} is a numbered release of an unknown photo: {reason}",
                hint="choose another {out}",
                arguments={"out": "out"},
            )


def _released(image: Path, state: State) -> bool:
    """Whether the state has the hash of a file as a release of a photo of known name."""
    try:
        return (
            bool(state.sources) and hashlib.sha256(received(image, MOST_BYTES)).hexdigest() in state.sources
        )
    except (OSError, Refused):
        return False
