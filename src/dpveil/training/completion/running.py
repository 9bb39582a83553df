"""Running a training of the completion network: checkpoints, sheets, and the errors of what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch

from dpveil.training.completion.losses import reconstruction
from dpveil.training.completion.network import spread
from dpveil.training.completion.trainer import Trainer


def sheet(trainer: Trainer, rows: list[int]) -> np.ndarray:
    """Return a contact sheet of held-out photos: original, then input and completion for each kind of
    face.
    """
    maker = trainer.maker
    kept = maker.generator
    maker.generator = torch.Generator().manual_seed(0)
    likes = rows[5:] + rows[:5]
    plain = [maker.plain(rows, None, None), maker.plain(rows, None, None, likes)]
    if len(maker.faces):
        chosen = [7 * k % len(maker.faces) for k in range(len(rows))]
        plain.append(maker.plain(rows, chosen, None, likes))
    maker.generator = kept
    unlooked = trainer.painted(plain[0], looked=False)
    bands = [plain[0].truth, unlooked, *(trainer.painted(s) for s in plain)]
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
        logits, looked = network.layout(scenes.seen), torch.ones(len(part), dtype=torch.bool)
        look = spread(trainer.looks(scenes.example))
        losses = reconstruction(scenes, network.painter(scenes.seen, scenes.layout, look), looked)
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
