"""From a plan to frames: the scene, what is drawn for it once, and the renderer that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.noise.bits import BitSource
from dpveil.video.asked import MEAN, SPLIT
from dpveil.video.drawing import Drawn, Mean, covered, draw, draw_frame, draw_mean
from dpveil.video.drawing_file import Heads, read, write
from dpveil.video.facts import Frame
from dpveil.video.places import Scene, Subject
from dpveil.video.plan import VideoPlan
from dpveil.video.reading import Clip
from dpveil.video.render_faces import paint
from dpveil.video.renderer import Renderer
from dpveil.video.segments import picked
from dpveil.video.track import Track

Bits = Callable[[str], BitSource]
"""Returns the bits of a draw by its name, such as "person 2"."""
OWN: Final = "{} in frame {} of track {}"
"""The name of the draw of one frame."""


@dataclass(frozen=True)
class Stage:
    """A plan made ready to be drawn and rendered."""

    plan: VideoPlan

    @property
    def scene(self) -> Scene:
        """The clip as it will be rendered."""
        return self.plan.scene

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Whoever and whatever is drawn, numbered from 1."""
        draws = enumerate(self.plan.draws, start=1)
        return tuple(Subject(number, one.tracks, one.track, one.key) for number, one in draws)

    @property
    def each_frame(self) -> bool:
        """Whether every frame is drawn on its own, so that the bits are needed to the end."""
        return self.plan.over_time == SPLIT and not self.scene.faces

    def draw(self, clip: Clip, bits: Bits, file: BinaryIO) -> None:
        """Draw everybody once, and write that to a file, which `renderer` reads.

        With the same clip and `bits`, it is the same file. Nothing is drawn here if `each_frame` is.
        """
        draws = dict[int, Drawn]()
        if not self.each_frame:
            make = self._means if self.plan.over_time == MEAN and not self.scene.faces else self._once
            draws = make(clip, bits)
        write(file, draws, self._painted(clip, draws))

    def renderer(self, drawn: BinaryIO, bits: Bits | None) -> Renderer:
        """Return what renders frames from a file of `draw`, which stays open meanwhile.

        `bits` are needed if `each_frame` is drawn.
        """
        draws, layers = read(drawn, self.plan.post_processing)
        own = None if bits is None or not self.each_frame else self._own(bits)
        return Renderer(self.scene, self.subjects, draws, layers, own)

    def _once(self, clip: Clip, bits: Bits) -> dict[int, Drawn]:
        draws = {}
        for subject, frame in _at(clip, {s.number: s.key.frame for s in self.subjects}):
            one = self.subjects[subject - 1]
            plain = self.scene.faces and not self.scene.shows_face(one.track)
            draws[subject] = covered() if plain else draw(self.scene, one, frame.image, bits(self._name(one)))
        return draws

    def _means(self, clip: Clip, bits: Bits) -> dict[int, Drawn]:
        """Draw the mean of each subject, whose box stays where it is, as the plan has checked."""
        means = {s.number: Mean(self.scene.raster(s.track, s.key.frame)) for s in self.subjects}
        first = min(subject.track.first for subject in self.subjects)
        last = max(subject.track.last for subject in self.subjects)
        for frame in clip.frames(first, last + 1):
            for subject in self.subjects:
                if subject.track.first <= frame.index <= subject.track.last:
                    means[subject.number].add(frame.image)
        return {s.number: draw_mean(self.scene, means[s.number], bits(self._name(s))) for s in self.subjects}

    def _painted(self, clip: Clip, draws: Mapping[int, Drawn]) -> Iterator[tuple[int, Heads]]:
        """Yield the heads of each face; reads pixels outside of what is replaced alone."""
        scene = self.scene
        faces = {
            track.number: (subject.number, track)
            for subject in self.subjects
            for track in subject.tracks
            if scene.shows_face(track)
        }
        frames = {number: scene.painted_at(track).frame for number, (_, track) in faces.items()}
        for number, frame in _at(clip, frames):
            subject, track = faces[number]
            yield number, paint(scene, draws[subject], track, frame.image)

    def _own(self, bits: Bits) -> Callable[[Subject, Track, Frame], UInt8[np.ndarray, "h w 3"]]:
        """Return what draws one frame, by a part of the budget; the same again for the same bits."""

        def own(subject: Subject, track: Track, frame: Frame) -> UInt8[np.ndarray, "h w 3"]:
            name = OWN.format(self._name(subject), frame.index, track.number)
            method = self.plan.draws[subject.number - 1].method
            return draw_frame(self.scene, method, track, frame.index, frame.image, bits(name))

        return own

    def _name(self, subject: Subject) -> str:
        return self.plan.draws[subject.number - 1].name


def _at(clip: Clip, frames: Mapping[int, int]) -> Iterator[tuple[int, Frame]]:
    """Yield each number with its frame, in the order of frames, decoding each once."""
    for frame in picked(clip, frames.values()):
        for number in sorted(number for number, wanted in frames.items() if wanted == frame.index):
            yield number, frame
