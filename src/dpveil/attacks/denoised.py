"""Post-processing before recognition: what takes noise away for users does so for attackers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from dpveil.attacks.base import Background, View
from dpveil.attacks.patches import largest_box
from dpveil.attacks.wrapped import Undo, Wrapped
from dpveil.postprocessing import Step, opens, parse


@dataclass(frozen=True)
class Denoised(Wrapped):
    """Runs a post-processing step on the largest region, by default the denoiser, before `inner` looks.

    `step` is written as in `dpveil obfuscate --post-processing`: "denoiser", "median:3". Raises as
    `postprocessing.parse` does. Source: Reilly & Fan 2021 §3.4 (median); docs, "Post-processing".
    """

    name: ClassVar[str] = "denoised"
    summary: ClassVar[str] = "the denoiser's guess at the face under the noise, then another attack"
    needs: ClassVar[str] = "models"

    step: str = "denoiser"

    @property
    def label(self) -> str:
        """Its name, with a step that is not the usual one, and the inner attack."""
        kind, _, path = self.step.partition(":")
        step = f"{kind}:{Path(path).stem}" if self._own else self.step
        told = self.name if step == "denoiser" else f"{self.name}:{step}"
        return f"{told}({self.inner.label})"

    @property
    def opens(self) -> bool:
        """Whether the step takes a user's network, or the inner attack opens a file."""
        return self._own or self.inner.opens

    @property
    def _own(self) -> bool:
        return opens(self.step)

    @property
    def extras(self) -> tuple[str, ...]:
        """What the step and the inner attack need."""
        return super().extras if self.step.startswith("denoiser") else self.inner.extras

    @classmethod
    def of(cls, text: str) -> Denoised:
        """Return the attack with this step."""
        return cls(step=text)

    def undo(self, background: Background) -> Undo:
        """Return what runs the step; nothing is learnt."""
        step = parse(self.step)
        return lambda views: _stepped(views, step)


def _stepped(views: Sequence[View], step: Step) -> tuple[View, ...]:
    return tuple(_one(view, step) for view in views)


def _one(view: View, step: Step) -> View:
    box = largest_box(view)
    part = (slice(None), slice(None)) if box is None else box.slices
    inner = view.hidden[part] if box is not None else np.ones(view.hidden.shape, np.bool_)
    image = view.image.copy()
    image[part] = np.where(inner[..., None], step(np.ascontiguousarray(image[part])), image[part])
    return replace(view, image=image)
