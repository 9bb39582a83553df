"""A convolutional network that is trained on releases: the parrot of McPherson et al."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import cv2
import numpy as np
from jaxtyping import Float32

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.errors import InvalidParameter, UsageError

if TYPE_CHECKING:
    import torch

SIDE: Final = (48, 56)
"""Columns and rows to which a picture is reduced; about half of AT&T's."""
WIDTHS: Final = (16, 32, 32)
"""Channels after each convolution."""
HIDDEN: Final = 256
EPOCHS: Final = 25
BATCH: Final = 32
RATE: Final = 1e-3
DECAY: Final = 1e-3
SHIFT: Final = 2
"""Largest shift of a training picture, in pixels."""


@dataclass(frozen=True)
class NetworkParrot(Attack):
    """Trains a small network on the attacker's own releases: three convolutions and two layers.

    Pictures are shifted and mirrored in training. Needs the extra `train`. `seed` is that of its weights and
    batches: the same background gives the same attacker. Source: McPherson, Shokri & Shmatikov 2016, §4.
    """

    name: ClassVar[str] = "network"
    summary: ClassVar[str] = "convolutional network of the picture, 48 × 56 pixels, trained on releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)
    needs: ClassVar[str] = "train"

    seed: int = 0

    def fit(self, background: Background) -> Fitted:
        """Return the trained network; raises `InvalidParameter` for a background without two people.

        Raises `UsageError` without torch.
        """
        if len(background.names) < 2:
            raise InvalidParameter("background", None, "shows fewer than two people", hint="add people")
        try:
            import torch
        except ImportError as error:
            raise UsageError("the attack network needs torch", hint="pip install 'dpveil[train]'") from error
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # sums do not depend on the machine's cores
        try:
            return self._trained(background)
        finally:
            torch.set_num_threads(before)

    def _trained(self, background: Background) -> Fitted:
        import torch

        pictures = _small(background.released)
        mean, spread = float(pictures.mean()), float(pictures.std()) + 1e-6
        x, y = torch.from_numpy((pictures - mean) / spread), torch.from_numpy(background.owners)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            net = _network(len(background.names)).to(memory_format=torch.channels_last)
            optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
            steps = EPOCHS * -(-len(x) // BATCH)
            rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3 * RATE, total_steps=steps)
            for _ in range(EPOCHS):
                for rows in torch.randperm(len(x)).split(BATCH):
                    loss = torch.nn.functional.cross_entropy(net(_moved(x[rows])), y[rows])
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                    rates.step()
        return _Network(net.eval(), mean, spread, background.names)


@dataclass(frozen=True, eq=False)
class _Network(Fitted):
    net: Any
    mean: float
    spread: float
    names: tuple[str, ...]

    def score(self, releases: Sequence[View]) -> Scores:
        import torch

        x = torch.from_numpy((_small(releases) - self.mean) / self.spread)
        with torch.no_grad():
            logits = torch.cat([self.net(part) + self.net(part.flip(3)) for part in x.split(256)])
        return Scores(logits.double().numpy(), self.names)


def _network(people: int) -> Any:
    from torch import nn

    layers: list[nn.Module] = []
    before = 1
    for width in WIDTHS:
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        before = width
    size = before * (SIDE[0] // 8) * (SIDE[1] // 8)
    rest = [nn.Flatten(), nn.Dropout(0.5), nn.Linear(size, HIDDEN), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, *rest, nn.Linear(HIDDEN, people))


def _moved(x: torch.Tensor) -> torch.Tensor:
    """Return pictures that are shifted together, and mirrored, by chance."""
    import torch

    right, down, mirrored = torch.randint(0, 2 * SHIFT + 1, (3,)).tolist()
    moved = x.roll((right - SHIFT, down - SHIFT), (3, 2))
    return moved.flip(3) if mirrored % 2 else moved


def _small(views: Sequence[View]) -> Float32[np.ndarray, "n 1 56 48"]:
    grey = [view.image.mean(axis=2, dtype=np.float32) for view in views]
    return np.stack(
        [cv2.resize(one, SIDE, interpolation=cv2.INTER_AREA)[None] / np.float32(255) for one in grey]
    )
