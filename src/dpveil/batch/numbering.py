"""Numbered outputs such as photo-000001.png, which reveal no name; a photo keeps its number across runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dpveil.batch.state import State, key_of
from dpveil.errors import UsageError
from dpveil.io import make_folder, sole_writer
from dpveil.io.names import shown
from dpveil.io.writing import refusal

NUMBERED: Final = re.compile(r"photo-([0-9]{6,15})\.png(\.certificate\.json)?")


def numbered(names: Sequence[str], out: Path) -> list[str]:
    """Return the output's name for every input's, in their order: known numbers stay, new ones follow.

    The numbers are in the state file of `out` before this returns. Raises `UsageError` where releases lie
    there whose numbers it does not know: they may be of these photos, and would be paid for twice.
    """
    make_folder(out)
    try:
        with sole_writer([out]):
            state = State.read(out)
            _check(out, state)
            keys = [key_of(name) for name in names]
            last = max(state.numbers.values(), default=0)
            new = [key for key in keys if key not in state.numbers]
            if new:
                state.note_numbers((key, last + place) for place, key in enumerate(new, 1))
    except OSError as error:
        raise refusal(out, error) from error
    return [f"photo-{state.numbers[key]:06}.png" for key in keys]


def _check(out: Path, state: State) -> None:
    known = set(state.numbers.values())
    for name in sorted(path.name for path in out.iterdir()):
        match = NUMBERED.fullmatch(name)
        if match and int(match[1]) not in known:
            reason = state.problem or "the state file there does not say so"
            raise UsageError(
                f"{shown(out / name)} is a numbered release of an unknown photo: {reason}",
                hint="choose another --out",
            )
