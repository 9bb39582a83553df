"""Train the completion network: `python -m dpveil_train.completion SHARDS... --out FOLDER`.

Frames, their layouts and turns are made first and kept in the folder; training resumes from a checkpoint
there. The result is `completion.safetensors` with its card. Needs mediapipe 0.10.14 for the layouts.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch

from dpveil.assets import Card, save
from dpveil.assets.store import default_path
from dpveil.core.numbers import Json
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.hair import Hair
from dpveil_train.completion.frames import write_frames, write_turns
from dpveil_train.completion.hair import hair_of
from dpveil_train.completion.layouts import write_layouts
from dpveil_train.completion.network import reconstruction, spread
from dpveil_train.completion.trainer import EVERY, Plan, Trainer, completion_of
from dpveil_train.networks import OFTEN, peak_memory, read_checkpoint, write_checkpoint

CHECKPOINT: Final = "checkpoint.pt"
KEY: Final = "completion"
RANGES: Final = 100
"""Photos from which the ranges of a network in 8 bits are taken."""


def main() -> None:
    """Train as the command line says."""
    asked = _parser().parse_args()
    folder: Path = asked.out
    begun = None if asked.begin is None else Completion.load(asked.begin)
    folder.mkdir(exist_ok=True)
    torch.set_num_threads(asked.threads)
    if not (folder / "people.npy").is_file():
        write_frames(asked.shards, folder)
    people = np.load(folder / "people.npy")
    frames = np.load(folder / "frames.npy", mmap_mode="r")[: len(people)]
    if not (folder / "layouts.npy").is_file():
        write_layouts(folder)
    if not (folder / "turns.npy").is_file():
        write_turns(folder)
    layouts, turns = np.load(folder / "layouts.npy", mmap_mode="r"), np.load(folder / "turns.npy")
    faces = FaceGallery.load(asked.gallery or default_path("gallery"))
    plan = Plan(**{field.name: getattr(asked, field.name) for field in fields(Plan)})
    trainer = Trainer(plan, frames, people, np.array(faces.faces), layouts, turns[:, 0])
    if (folder / CHECKPOINT).is_file():
        read_checkpoint(trainer, folder / CHECKPOINT, KEY)
    elif begun is not None:
        trainer.begin(begun.network)
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        run(trainer, folder, minutes=asked.minutes, log=lambda line: print(line, file=log, flush=True))
    card = Card(
        codec="completion",
        data=f"{asked.data}: {len(people)} photos, one in {EVERY} of their people held out; and the gallery"
        f" sha256 {faces.digest[:12]}…",
        terms=asked.terms,
        seed=plan.seed,
        settings={**asdict(plan), "steps": trainer.done, **_begun(begun)},
        metrics={**measured(trainer), "peak memory in MiB": peak_memory()},
    )
    hair = hair_of(trainer, frames, layouts, turns)
    made = completion_of(trainer.shipped(), plan.side, card, hair, given(trainer, hair, held_out=False))
    card = replace(card, metrics={**card.metrics, "levels lost to 8 bits": lost(trainer, made)})
    save(replace(made, card=card), folder / "completion.safetensors", replace=True)


def _begun(network: Completion | None) -> dict[str, Json]:
    """Return what the card says of the network that the training began from."""
    if network is None:
        return {}
    sha = hashlib.sha256(network.network).hexdigest()
    return {"begun from": f"network sha256 {sha[:12]}…, trained on {network.card.data}; {network.card.terms}"}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dpveil_train.completion", description=__doc__)
    parser.add_argument("shards", type=Path, nargs="+", help=".tar shards of photos, each with a .json")
    parser.add_argument("--out", type=Path, required=True, help="folder of frames, checkpoint and network")
    parser.add_argument("--gallery", type=Path, help="faces of nobody that are put into photos as well")
    parser.add_argument("--begin", type=Path, help="a completion.safetensors whose weights it begins from")
    parser.add_argument("--data", default="photos of faces", help="what the card calls the photos")
    parser.add_argument("--terms", required=True, help="what the card says of their terms")
    parser.add_argument("--minutes", type=float, default=90.0, help="how long to train at most")
    parser.add_argument("--threads", type=int, default=1)
    for field in fields(Plan):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default
        )
    return parser


def run(trainer: Trainer, folder: Path, *, minutes: float, log: Callable[[str], None]) -> None:
    """Train until the plan's end or for this many minutes, with a checkpoint now and then in `folder`."""
    began = saved = time.monotonic()
    sums: dict[str, list[float]] = {}
    while trainer.done < trainer.plan.steps and time.monotonic() - began < 60 * minutes:
        for name, value in trainer.step().items():
            sums.setdefault(name, []).append(value)
        if trainer.done % 20 == 0:
            means = " ".join(f"{name} {np.mean(values):.4f}" for name, values in sums.items())
            log(f"step {trainer.done} spent {trainer.spent:.0f} s {means}")
            sums = {}
        if time.monotonic() - saved > OFTEN:
            write_checkpoint(trainer, folder / CHECKPOINT, KEY)
            saved = time.monotonic()
    write_checkpoint(trainer, folder / CHECKPOINT, KEY)


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


if __name__ == "__main__":
    main()
