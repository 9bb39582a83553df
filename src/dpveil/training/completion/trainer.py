"""Training of the completion network: reconstruction first, then with an adversarial loss too."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from dpveil.faces.geometry.completion import PLANES
from dpveil.faces.geometry.layout import neck
from dpveil.training.completion.export import taken_up
from dpveil.training.completion.losses import each, laid_out, over, reconstruction
from dpveil.training.completion.network import Completer, Critics, sharpened
from dpveil.training.completion.scenes import Maker, Scenes

EVERY: Final = 20
"""People whose number is a multiple of this are held out."""


@dataclass(frozen=True)
class Plan:
    """Hyperparameters: steps, learning rates and weights of the losses.

    `side` is that of the frame in pixels. The adversarial loss starts at the fraction `critic_from` of
    `steps`. `slope`, `kept`, `adversarial` and `features` are weights relative to the loss of levels, which
    alone would paint unknown areas without texture. `average` is the decay of the exponential moving average.
    `others` is the share of scenes with another person's face or one of the gallery while there is a critic:
    beside such faces nothing but the critic says what is right, and with a third of them, and a critic that
    weighs 0.15, it painted patterns there. `guessed` is the share of scenes that are painted to the layout
    that the network guesses; there, too, the critic alone says what is right.
    """

    steps: int = 4000
    batch: int = 16
    side: int = 144
    critic_from: float = 0.25
    rate: float = 1e-3
    critic_rate: float = 8e-4
    slope: float = 0.2
    kept: float = 0.5
    adversarial: float = 0.12
    features: float = 0.5
    others: float = 0.0
    guessed: float = 0.25
    layout_rate: float = 1e-3
    average: float = 0.999
    seed: int = 1


class Trainer:
    """The state of a training: networks, optimisers and random generator, for checkpoints."""

    def __init__(
        self, plan: Plan, photos: np.ndarray, people: np.ndarray, faces: np.ndarray, layouts: np.ndarray
    ) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.done, self.spent = plan, 0, 0.0
        self.net = Completer().to(memory_format=torch.channels_last)
        self.critic = Critics().to(memory_format=torch.channels_last)
        self.mean = copy.deepcopy(self.net).requires_grad_(requires_grad=False)
        self.before = copy.deepcopy(self.mean)
        self.optimiser = torch.optim.Adam(
            [
                {"params": list(self.net.painter.parameters()), "rate": plan.rate, "against": 0.3},
                {"params": list(self.net.layout.parameters()), "rate": plan.layout_rate, "against": 1.0},
            ],
            lr=plan.rate,
            betas=(0.5, 0.99),
        )
        self.critic_optimiser = torch.optim.Adam(
            self.critic.parameters(), lr=plan.critic_rate, betas=(0.0, 0.99)
        )
        self.generator = torch.Generator().manual_seed(plan.seed)
        held = people % EVERY == 0
        self.held_out = np.flatnonzero(held)
        self.maker = Maker(photos, np.flatnonzero(~held), faces, plan.side, self.generator, layouts)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        about = {"done": self.done, "spent": self.spent, "plan": asdict(self.plan)}
        return {**parts, **about, "generator": self.generator.get_state()}

    def take_up(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        self.done, self.spent = state["done"], state["spent"]

    def begin(self, network: bytes) -> None:
        """Begin from the weights of an exported network; its critics are new."""
        taken_up(self.net, network, (1, PLANES, self.plan.side, self.plan.side))
        for other in (self.mean, self.before):
            other.load_state_dict(self.net.state_dict())

    def step(self) -> dict[str, float]:
        """Make one training step and return the losses."""
        started, plan = time.monotonic(), self.plan
        against = self.done >= plan.critic_from * plan.steps
        self._rates()
        scenes = self.maker.random(plan.batch, int(plan.others * plan.batch) if against else 0)
        layout, guessed = scenes.layout, torch.zeros(plan.batch, dtype=torch.bool)
        seen = scenes.seen.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.net.layout(seen).float()
            if against:
                guessed[: int(plan.guessed * plan.batch)] = True
                layout = torch.where(each(guessed), self.guess(logits), layout)
            painted = self.net.painter(seen, layout).float()
        losses = reconstruction(scenes, painted, guessed) | {"layout": laid_out(scenes, logits)}
        total = losses["level"] + plan.slope * losses["slope"] + plan.kept * losses["kept"] + losses["layout"]
        if against:
            given = torch.cat([scenes.hidden, layout], dim=1)
            losses |= self._adversarial(scenes, painted, given, ~guessed)
            total = total + plan.adversarial * losses["fools"] + plan.features * losses["features"]
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.net.painter.parameters(), 1.0)
        torch.nn.utils.clip_grad_norm_(self.net.layout.parameters(), 1.0)
        self.optimiser.step()
        if against:
            losses["critic"] = self._criticise(scenes, painted.detach(), given)
        self._averaged()
        self.done += 1
        if self.done <= plan.critic_from * plan.steps:
            self.before.load_state_dict(self.mean.state_dict())
        self.spent += time.monotonic() - started
        return {name: float(value.detach()) for name, value in losses.items()}

    def guess(self, logits: Tensor) -> Tensor:
        """Return the layout that the painter is given for these logits of the network."""
        return sharpened(logits.detach() + torch.from_numpy(neck(self.plan.side)))

    def _adversarial(
        self, scenes: Scenes, painted: Tensor, given: Tensor, certain: Tensor
    ) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=False)
        with torch.autocast("cpu", torch.bfloat16):
            ours = self.critic(scenes.composed(painted), given)
            with torch.no_grad():
                real = self.critic(scenes.truth * scenes.counts, scenes.given)
        own = scenes.own & certain
        pairs = [pair for (_, a), (_, b) in zip(ours, real, strict=True) for pair in zip(a, b, strict=True)]
        apart = [(a.float() - b.float())[own].abs().mean() for a, b in pairs]
        fools = [-over(scores, scenes.hidden) for scores, _ in ours]
        return {"fools": torch.stack(fools).mean(), "features": torch.stack(apart).mean()}

    def _criticise(self, scenes: Scenes, painted: Tensor, given: Tensor) -> Tensor:
        self.critic.requires_grad_(requires_grad=True)
        both = torch.cat([scenes.truth * scenes.counts, scenes.composed(painted)])
        with torch.autocast("cpu", torch.bfloat16):
            judged = self.critic(both, torch.cat([scenes.given, given]))
        halves = [scores.float().chunk(2) for scores, _ in judged]
        margins = [side for real, fake in halves for side in (relu(1 - real), relu(1 + fake))]
        loss = torch.stack([over(margin, scenes.hidden) for margin in margins]).sum() / len(halves)
        self.critic_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.critic_optimiser.step()
        return loss.detach()

    def _rates(self) -> None:
        part = min(1.0, self.done / self.plan.steps)
        down = 0.08 + 0.92 * (0.5 + 0.5 * math.cos(math.pi * part))
        up = min(1.0, (self.done + 1) / 100)
        start = self.plan.critic_from
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * up * down * (group["against"] if part >= start else 1.0)
        for group in self.critic_optimiser.param_groups:
            group["lr"] = self.plan.critic_rate * max(0.3, down)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _averaged(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for own, new in zip(self.mean.parameters(), self.net.parameters(), strict=True):
            own.lerp_(new, 1 - weight)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def shipped(self) -> Completer:
        """Return the network to keep: its painter is a weighted mean of the averaged ones before and
        after the critics.

        Critics alone leave patterns (network interpolation, Wang et al. 2018).
        """
        out: Completer = copy.deepcopy(self.mean)
        for own, old in zip(out.painter.parameters(), self.before.painter.parameters(), strict=True):
            own.lerp_(old, BEFORE)
        return out

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def painted(self, scenes: Scenes) -> Tensor:
        """Return the scenes with their hidden part painted by the averaged network."""
        net = self.shipped()
        out: Tensor = net.painter(scenes.seen, self.guess(net.layout(scenes.seen))).clamp(-1, 1)
        return scenes.truth + scenes.hidden * (out - scenes.truth)


BEFORE: Final = 0.25
"""Weight of the weights before the critics in the network that is kept."""
PARTS: Final = ("net", "critic", "mean", "before", "optimiser", "critic_optimiser")
"""Attributes of `Trainer` whose state is in a checkpoint."""


def sheet(trainer: Trainer, rows: list[int]) -> np.ndarray:
    """Return a contact sheet of held-out photos: original, then input and completion for each kind of
    face.
    """
    maker = trainer.maker
    kept = maker.generator
    maker.generator = torch.Generator().manual_seed(0)
    plain = [maker.plain(rows, None, None), maker.plain(rows, None, rows[5:] + rows[:5])]
    if len(maker.faces):
        chosen = [7 * k % len(maker.faces) for k in range(len(rows))]
        plain.append(maker.plain(rows, chosen, None))
    maker.generator = kept
    bands = [plain[0].truth, *(x for s in plain for x in (s.seen[:, :3], trainer.painted(s)))]
    levels = [((band.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy() for band in bands]
    return np.concatenate([np.concatenate(list(band), axis=1) for band in levels])


def run(trainer: Trainer, folder: Path, *, minutes: float, log: Callable[[str], None]) -> None:
    """Train until the plan's end or for this many minutes, writing checkpoints and sheets to `folder`."""
    began = shown = saved = time.monotonic()
    held = trainer.held_out
    rows = held[:: max(1, len(held) // 12)][:12].tolist()
    sums: dict[str, list[float]] = {}
    while trainer.done < trainer.plan.steps and time.monotonic() - began < 60 * minutes:
        for name, value in trainer.step().items():
            sums.setdefault(name, []).append(value)
        now = time.monotonic()
        if trainer.done % 20 == 0:
            means = " ".join(f"{name} {np.mean(values):.4f}" for name, values in sums.items())
            log(f"step {trainer.done} spent {trainer.spent:.0f} s {means}")
            sums = {}
        if now - saved > 180:
            keep(trainer, folder)
            saved = now
        if now - shown > 600 or trainer.done in (100, 300):
            picture = sheet(trainer, rows)
            cv2.imwrite(str(folder / f"sheet-{trainer.done:05d}.png"), picture[..., ::-1])
            shown = now
    keep(trainer, folder)
    cv2.imwrite(str(folder / f"sheet-{trainer.done:05d}.png"), sheet(trainer, rows)[..., ::-1])


def keep(trainer: Trainer, folder: Path) -> None:
    """Write the checkpoint atomically."""
    new = folder / "checkpoint.new"
    torch.save(trainer.state(), new)
    new.replace(folder / "checkpoint.pt")


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def measured(trainer: Trainer, most: int = 320) -> dict[str, float]:
    """Return the errors of the network that is kept on held-out people."""
    network = trainer.shipped()
    rows = trainer.held_out[:most].tolist()
    sums: dict[str, float] = {}
    for start in range(0, len(rows), 16):
        part = rows[start : start + 16]
        scenes = trainer.maker.plain(part, None, None)
        logits = network.layout(scenes.seen)
        losses = reconstruction(scenes, network.painter(scenes.seen, trainer.guess(logits)))
        right = (logits.argmax(dim=1) == scenes.layout.argmax(dim=1)).float() * scenes.hidden[:, 0]
        losses["right"] = right.sum() / scenes.hidden.sum()
        for name in ("level", "slope", "right"):
            sums[name] = sums.get(name, 0.0) + float(losses[name]) * len(part)
    return {
        "photos": len(rows),
        "mean error of what is painted, in levels": round(127.5 * sums["level"] / len(rows), 2),
        "mean error of slopes": round(sums["slope"] / len(rows), 4),
        "hidden pixels whose class is guessed": round(sums["right"] / len(rows), 4),
    }
