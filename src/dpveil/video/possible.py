"""Whether a plan can be rendered at all: whatever would refuse it later for a reason that is known before."""

from __future__ import annotations

from typing import Final

from dpveil.video.analyzing import Progress, nothing
from dpveil.video.audio import check_sound
from dpveil.video.encoders import encoder_for
from dpveil.video.joining import check_times
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import DECODED, Clip

CHECKING: Final = "checking"


def check_possible(
    plan: VideoPlan, clip: Clip, container: str | None, *, paid: bool, progress: Progress = nothing
) -> None:
    """Raise `ClipError` or `OutputError` if a plan cannot be rendered to a file in `container`, if known.

    Looks for an encoder, at the times of all frames, and at all packets of sound that is kept. If it is to be
    `paid`, every frame is decoded, too, unless this process has done so. Writes and draws nothing.
    """
    facts = clip.facts
    if container is not None:
        encoder_for(container, facts.width, facts.height)
        check_times(facts, container)
        if plan.keep_audio:
            check_sound(clip, container)
    if paid and facts.sha256 not in DECODED:
        for frame in clip.frames():
            progress(CHECKING, frame.index + 1, facts.frames)
