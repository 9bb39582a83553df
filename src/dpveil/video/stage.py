"""From a plan to frames: the scene, what is drawn for it once, and the renderer that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import UInt8

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource
from dpveil.video.asked import MEAN, SPLIT
from dpveil.video.drawing import Drawn, Mean, draw, draw_frame, draw_mean
from dpveil.video.drawing_file import from_bytes, to_bytes
from dpveil.video.facts import Frame
from dpveil.video.layer import Layer
from dpveil.video.places import Scene, Subject
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import Clip
from dpveil.video.render_faces import paint
from dpveil.video.renderer import Renderer
from dpveil.video.segments import picked
from dpveil.video.track import Track

Bits = Callable[[str], BitSource]
"""Returns the bits of a draw by its name, such as "person 2"."""
MOVES: Final = "is of a box that stays where it is, and {} moves"


@dataclass(frozen=True)
class Stage:
    """A plan made ready to be drawn and rendered."""

    plan: VideoPlan

    @cached_property
    def scene(self) -> Scene:
        """The clip as it will be rendered."""
        plan, facts = self.plan, self.plan.facts
        rate = float((facts.frames - 1) / facts.seconds) if facts.seconds else 1.0
        return Scene(
            width=facts.width,
            height=facts.height,
            rate=rate,
            method=plan.method,
            tracks=tuple(track for track in plan.tracks if not track.visible),
            pose=plan.pose,
            steps=plan.post_processing,
        )

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Whoever and whatever is drawn, numbered from 1."""
        draws = enumerate(self.plan.draws, start=1)
        return tuple(Subject(number, one.tracks, one.key) for number, one in draws)

    @property
    def each_frame(self) -> bool:
        """Whether every frame is drawn on its own, so that the bits are needed to the end."""
        return self.plan.over_time == SPLIT and not self.scene.faces
