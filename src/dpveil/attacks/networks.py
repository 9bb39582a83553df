"""Networks that are trained on releases: the loop that all of them share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.patches import has_colour, small
from dpveil.attacks.vectors import check_people
from dpveil.errors import UsageError

if TYPE_CHECKING:
    import torch


SIDE: Final = (46, 56)  # columns and rows to which a picture is reduced: half of AT&T's
BATCH: Final = 32
RATE: Final = 3e-3
DECAY: Final = 1e-3
SHIFT: Final = 2  # largest shift of a training picture, in pixels


class NetworkAttack(Attack):
    """An attack that trains a network on the attacker's own releases, reduced to 46 × 56 pixels.

    It reads three channels where photos have colours, and one where they are grey. Training pictures are
    shifted and mirrored. `seed` is that of weights, batches and shifts; with one thread, the same background
    gives the same attacker on the same machine. Needs the extra `attacks`.
    """

    sees: ClassVar[tuple[str, ...]] = (PIXELS,)
    needs: ClassVar[str] = "attacks"

    seed: int
    epochs: int

    @abstractmethod
    def network(self, people: int, channels: int) -> torch.nn.Sequential:
        """Return the network with fresh weights: n × channels × 56 × 46 to a score for each person."""

    def fit(self, background: Background) -> Fitted:
        """Return the trained network; raises `InvalidParameter` for a background without two people.

        Raises `UsageError` without torch.
        """
        check_people(background)
        try:
            import torch
        except ImportError as error:
            problem = f"the attack {self.name} needs torch, which is not installed"
            raise UsageError(problem, hint="pip install 'dpveil[attacks]'") from error
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # sums do not depend on the machine's cores
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                return self._train(background)
        finally:
            torch.set_num_threads(before)

    def _train(self, background: Background) -> Fitted:
        import torch

        look = _Look.of(background)
        x, y = look(background.released), torch.from_numpy(background.owners)
        net = self.network(len(background.names), x.shape[1])
        net = net.to(memory_format=torch.channels_last)  # pools and norms in a third of the time
        optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
        steps = self.epochs * -(-len(x) // BATCH)
        rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
        for _ in range(self.epochs):
            order: Any = torch.randperm(len(x))
            for rows in order.split(BATCH):
                found = net(_augment(x[rows]))
                loss: Any = torch.nn.functional.cross_entropy(found, y[rows], label_smoothing=0.1)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                rates.step()
        return _Network(net.eval(), look, background.names)


@dataclass(frozen=True, eq=False)
class _Look:
    """Pictures as a network reads them: of one channel or three, less the mean, by the spread."""

    colour: bool
    mean: float
    spread: float

    @classmethod
    def of(cls, background: Background) -> _Look:
        plain = cls(has_colour(background), 0.0, 1.0)
        pictures = plain(background.released).numpy()
        return replace(plain, mean=float(pictures.mean()), spread=float(pictures.std()) + 1e-6)

    def __call__(self, views: Sequence[View]) -> torch.Tensor:
        import torch

        pictures = small(views, SIDE, colour=self.colour).astype(np.float32).transpose(0, 3, 1, 2)
        return torch.from_numpy(np.ascontiguousarray((pictures - self.mean) / self.spread))


@dataclass(frozen=True, eq=False)
class _Network(Fitted):
    net: Any
    look: _Look
    names: tuple[str, ...]

    def score(self, releases: Sequence[View]) -> Scores:

        found = _of_both(self.net, self.look(releases), len(self.names))
        return Scores(found.double().log_softmax(1).numpy(), self.names)


def _of_both(net: Any, x: Any, width: int) -> torch.Tensor:
    """Return the mean of what a network gives of pictures and of their mirror images, n × width."""
    import torch

    with torch.no_grad():
        parts = [(net(part) + net(part.flip(3))) / 2 for part in x.split(256)]
    return torch.cat(parts) if len(x) else torch.empty(0, width)


def _augment(x: torch.Tensor) -> torch.Tensor:
    """Return pictures that are shifted, each in its own way, and half of them mirrored, by chance."""
    import torch

    padded = torch.nn.functional.pad(x, (SHIFT, SHIFT, SHIFT, SHIFT), mode="replicate")
    shifts = torch.randint(0, 2 * SHIFT + 1, (len(x), 2)).tolist()
    mirrored = torch.rand(len(x)) < 0.5
    height, width = x.shape[2:]
    out = torch.stack([one[:, down : down + height, right : right + width]
                       for one, (right, down) in zip(padded, shifts, strict=True)])  # fmt: skip
    found = torch.where(mirrored[:, None, None, None], out.flip(3), out)
    return found.contiguous(memory_format=torch.channels_last)


WIDTHS: Final = (16, 32, 64)  # channels after each convolution or block
HIDDEN: Final = 256  # units of the layer before the last


@dataclass(frozen=True)
class NetworkParrot(NetworkAttack):
    """Three convolutions and two layers, trained on releases; settings as in `NetworkAttack`.

    Source: McPherson, Shokri & Shmatikov 2016, §4.
    """

    name: ClassVar[str] = "network"
    summary: ClassVar[str] = "convolutional network of the picture, 46 × 56 pixels, trained on releases"

    seed: int = 0
    epochs: int = 25

    def network(self, people: int, channels: int) -> torch.nn.Sequential:
        """Return three convolutions with pooling, and two layers with dropout."""
        from torch import nn

        layers: list[nn.Module] = []
        before = channels
        for width in WIDTHS:
            convolution = nn.Conv2d(before, width, 3, padding=1)
            layers += [convolution, nn.BatchNorm2d(width), nn.MaxPool2d(2), nn.ReLU()]
            before = width
        size = before * (SIDE[0] // 8) * (SIDE[1] // 8)
        rest = [nn.Flatten(), nn.Dropout(0.5), nn.Linear(size, HIDDEN), nn.ReLU(), nn.Dropout(0.5)]
        return nn.Sequential(*layers, *rest, nn.Linear(HIDDEN, people))


@dataclass(frozen=True)
class ResidualParrot(NetworkAttack):
    """A stem, three residual blocks and a mean over places, trained on releases; settings as in
    `NetworkAttack`.

    Source: He et al. 2016 (residual networks), much smaller.
    """

    name: ClassVar[str] = "residual"
    summary: ClassVar[str] = "small residual network of the picture, 46 × 56 pixels, trained on releases"

    seed: int = 0
    epochs: int = 30

    def network(self, people: int, channels: int) -> torch.nn.Sequential:
        """Return the stem, the blocks, and a linear layer on means of 3 × 3 places."""
        from torch import nn

        stem = [
            nn.Conv2d(channels, WIDTHS[0], 5, stride=2, padding=2, bias=False),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.ReLU(),
        ]
        before, blocks = WIDTHS[0], []
        for width in WIDTHS:
            blocks.append(_block(before, width))
            before = width
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Dropout(0.3),
                             nn.Linear(9 * before, people))  # fmt: skip


def _block(before: int, width: int) -> torch.nn.Module:
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc,unused-ignore]
        """Two convolutions beside a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            stride = 1 if before == width else 2
            self.main = nn.Sequential(
                nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            self.short = nn.Conv2d(before, width, 1, stride=stride, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Return the sum of both ways, without what is negative."""
            return nn.functional.relu(self.main(x) + self.short(x))

    return Block()
