"""Train the completion network: `python -m dpveil_train.completion SHARDS... --out FOLDER`.

Frames, their layouts and turns are made first and kept in the folder; training resumes from a checkpoint
there. The result is `completion.safetensors` with its card. Needs mediapipe 0.10.14 for the layouts.
"""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import torch

from dpveil.assets import Card, save
from dpveil.assets.defaults import default_path
from dpveil.core.numbers import Json
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.geometry.completion import Completion
from dpveil_train.completion.choosing import hair_of
from dpveil_train.completion.export import completion_of
from dpveil_train.completion.frames import write_frames
from dpveil_train.completion.layouts import write_layouts
from dpveil_train.completion.running import given, lost, measured, run
from dpveil_train.completion.trainer import EVERY, Plan, Trainer
from dpveil_train.completion.turns import write_turns
from dpveil_train.network_orders import peak_memory


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
    if (folder / "checkpoint.pt").is_file():
        trainer.take_up(torch.load(folder / "checkpoint.pt", weights_only=True))
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


if __name__ == "__main__":
    main()
