"""Running a training of the completion network: checkpoints, sheets, and the errors of what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import cv2
import numpy as np
import torch

from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.hair import Hair
from dpveil_train.completion.losses import reconstruction
from dpveil_train.completion.network import spread
from dpveil_train.completion.trainer import Trainer

RANGES: Final = 100
"""Photos from which the ranges of a network in 8 bits are taken."""


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


@torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
def given(trainer: Trainer, hair: Hair, *, held_out: bool, most: int = RANGES) -> list[np.ndarray]:
    """Return what a release gives to the network, 1 × 18 × s × s, for photos of a training or held out.

    Faces are those of the gallery, and every fifth head is seen without anything around it.
    """
    rows = trainer.held_out if held_out else np.asarray(trainer.maker.rows)
    out = []
    for number, row in enumerate(rows[:: max(1, len(rows) // most)][:most].tolist()):
        chosen = [7 * number % len(trainer.maker.faces)] if len(trainer.maker.faces) else None
        seen = trainer.maker.plain([row], chosen, None).seen[0].numpy()
        if number % 5 == 0:
            seen[:3], seen[3] = seen[:3] * seen[4], 0
        face = (seen[:3].transpose(1, 2, 0) + 1) * np.float32(127.5)
        example, _ = hair.of(face, number, float(trainer.maker.yaws[row]))
        out.append(np.concatenate([seen, example])[None].astype(np.float32))
    return out


def lost(trainer: Trainer, made: Completion) -> float:
    """Return by how many levels a network in 8 bits differs from the one that was trained, on average."""
    network, found = trainer.shipped(), []
    for planes in given(trainer, made.hair, held_out=True):
        with torch.no_grad():
            exact = network(torch.from_numpy(planes))[:, :3].numpy()
        found.append(np.abs(made._run(planes)[:, :3] - exact).mean() * 127.5)
    return float(np.mean(found))
