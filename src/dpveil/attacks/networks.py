"""Networks that are trained on releases: the loop that all of them share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from jaxtyping import Float32

from dpveil.attacks.base import PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.patches import small
from dpveil.attacks.vectors import check_people
from dpveil.errors import UsageError

if TYPE_CHECKING:
    import torch

SIDE: Final = (46, 56)
"""Columns and rows to which a picture is reduced: half of AT&T's."""
BATCH: Final = 32
RATE: Final = 3e-3
DECAY: Final = 1e-3
SHIFT: Final = 2
"""Largest shift of a training picture, in pixels."""


class NetworkAttack(Attack):
    """An attack that trains a network on the attacker's own releases, reduced to 46 × 56 grey pixels.

    Training pictures are shifted and mirrored. `seed` is that of weights, batches and shifts; with one
    thread, the same background gives the same attacker on the same machine. Needs the extra `train`.
    """

    sees: ClassVar[tuple[str, ...]] = (PIXELS,)
    needs: ClassVar[str] = "train"

    seed: int
    epochs: int

    @abstractmethod
    def network(self, people: int) -> torch.nn.Module:
        """Return the network with fresh weights: n × 1 × 56 × 46 to a score for each person."""

    def fit(self, background: Background) -> Fitted:
        """Return the trained network; raises `InvalidParameter` for a background without two people.

        Raises `UsageError` without torch.
        """
        check_people(background)
        try:
            import torch
        except ImportError as error:
            problem = f"the attack {self.name} needs torch, which is not installed"
            raise UsageError(problem, hint="pip install 'dpveil[train]'") from error
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # sums do not depend on the machine's cores
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                return self._trained(background)
        finally:
            torch.set_num_threads(before)

    def _trained(self, background: Background) -> Fitted:
        import torch

        pictures = _small(background.released)
        mean, spread = float(pictures.mean()), float(pictures.std()) + 1e-6
        x: torch.Tensor = torch.from_numpy((pictures - mean) / spread)
        y = torch.from_numpy(background.owners)
        net = self.network(len(background.names))
        optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
        steps = self.epochs * -(-len(x) // BATCH)
        rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
        for _ in range(self.epochs):
            order: Any = torch.randperm(len(x))
            for rows in order.split(BATCH):
                found = net(_moved(x[rows]))
                loss: Any = torch.nn.functional.cross_entropy(found, y[rows], label_smoothing=0.1)
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

        x: Any = torch.from_numpy((_small(releases) - self.mean) / self.spread)
        with torch.no_grad():
            both = [(self.net(part) + self.net(part.flip(3))) / 2 for part in x.split(256)]
        logs = torch.cat(both).double().log_softmax(1) if both else torch.empty(0, len(self.names))
        return Scores(logs.numpy(), self.names)


def _moved(x: torch.Tensor) -> torch.Tensor:
    """Return pictures that are shifted, each in its own way, and half of them mirrored, by chance."""
    import torch

    padded = torch.nn.functional.pad(x, (SHIFT, SHIFT, SHIFT, SHIFT), mode="replicate")
    shifts = torch.randint(0, 2 * SHIFT + 1, (len(x), 2)).tolist()
    mirrored = torch.rand(len(x)) < 0.5
    height, width = x.shape[2:]
    moved = [one[:, down : down + height, right : right + width]
             for one, (right, down) in zip(padded, shifts, strict=True)]  # fmt: skip
    out = torch.stack(moved)
    return torch.where(mirrored[:, None, None, None], out.flip(3), out)


def _small(views: Sequence[View]) -> Float32[np.ndarray, "n 1 56 46"]:
    return small(views, SIDE).astype(np.float32).transpose(0, 3, 1, 2)
