"""The plan of a rendering that was killed: kept in its state's folder, and used only if this user made it.

Whoever sends an archive with such a folder can write anything into it, also a key: nothing in there tells who
wrote the plan. What an archive cannot bring is the state of the output's folder, which is in the user's own
(`batch.state`): it has the digest of each plan that was kept. A plan without one is as if it were not there.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from dpveil.batch.state import State as Remembered
from dpveil.errors import OutputError
from dpveil.io import received
from dpveil.io.refused import Refused
from dpveil.video.begun import digest_of
from dpveil.video.plan_file import MOST_BYTES
from dpveil.video.state import State, check_own, folder_of

PLAN: Final = "plan.json"


def keep_plan(work: State, out: Path, plan: str, asked: str) -> None:
    """Store the text of a plan with what was asked, so that another process need not plan again."""
    work.keep(PLAN, plan.encode())
    with suppress(OSError):  # else it is planned again
        Remembered(out.parent).note_begun(_digest(out, plan, asked))


def left_plan(out: Path, asked: str) -> str | None:
    """Return the text of the plan by which a killed process was rendering to `out`, if it was asked the same.

    `asked` is the digest of what it was asked, as it was given to `keep_plan`. None as well if nothing tells
    that it was this user who kept it there.
    """
    folder = folder_of(out)
    try:
        check_own(folder)
        plan = received(folder / PLAN, MOST_BYTES).decode()
    except (OSError, OutputError, Refused, UnicodeDecodeError):
        return None
    return plan if _digest(out, plan, asked) in Remembered.read(out.parent).begun else None


def _digest(out: Path, plan: str, asked: str) -> str:
    return digest_of({"out": out.name, "plan": plan, "asked": asked})
