"""Whether a plan can be rendered at all: whatever would refuse it later for a reason that is known before."""

from __future__ import annotations

from typing import Final

from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.landmarks import predictor
from dpveil.video.analyzing import Progress, nothing
from dpveil.video.audio import check_sound
from dpveil.video.drawing import check_face
from dpveil.video.encoders import encoder_for
from dpveil.video.joining import check_times
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import DECODED, Clip
from dpveil.video.segments import picked

CHECKING: Final = "checking"


def check_possible(
    plan: VideoPlan, clip: Clip, container: str | None, *, paid: bool, progress: Progress = nothing
) -> None:
    """Raise an error of `dpveil.errors` if a plan cannot be rendered to a file in `container`, if known.

    Looks for an encoder, at the times of all frames, at all packets of sound that is kept, and for landmarks
    where a face is refused without them. If it is to be `paid`, every frame is decoded, too, unless this
    process has done so. Writes and draws nothing.
    """
    facts = clip.facts
    if container is not None:
        encoder_for(container, facts.width, facts.height)
        check_times(facts, container)
        if plan.keep_audio:
            check_sound(clip, container)
    _check_faces(plan, clip)
    if paid and facts.sha256 not in DECODED:
        for frame in clip.frames():
            progress(CHECKING, frame.index + 1, facts.frames)


def _check_faces(plan: VideoPlan, clip: Clip) -> None:
    """Raise what placing a face would: `UsageError` without landmarks, `RegionError` if they are not sure."""
    method, faces = plan.method, [draw for draw in plan.draws if plan.scene.shows_face(draw.track)]
    if not isinstance(method, FaceMethod) or not faces:
        return
    if method.placing == "auto" and not method.figures:
        predictor()
    if method.placing == "landmarks":
        for frame in picked(clip, [draw.key.frame for draw in faces]):
            for draw in faces:
                if draw.key.frame == frame.index:
                    check_face(plan.scene, draw.track, draw.key, frame.image)
