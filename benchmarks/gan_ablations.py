"""What each ingredient of `gan` is worth, as in figure 6.2 of Croft's thesis: five networks, one more each.

`STAGES` starts with a code that is a map, without noise in training, pose or mask, and ends with what
`dpveil train gan` has. All else is equal: faces, seed, and the extent, which is small, so that five trainings
take half an hour of one core: half of the small plan's channels and batch, and fewer steps (`--steps`).

Measured are releases of held-out faces of UTKFace, by `pca-basis` at the ratio of the thesis, and without
noise. Every decoder is told the gender that the attribute model reads, and those with a pose that of the
landmarks, as in the thesis. Measures are those of `decoded_quality`, on one path for all: 64 × 64 pixels
within the public ellipse, grey beyond. `PSNR` is that of decoded codes without noise, and `yaw` the median
difference to the original's in degrees, where landmarks of both are sure.

`python benchmarks/gan_ablations.py --kept FOLDER` needs the extra `neural`; it keeps networks in FOLDER, goes
on where it was interrupted, and writes `results/gan_ablations.json` and the picture of the page.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
from skimage import data

from codec_budgets import sized
from decoded_quality import Known, known, path_of_all, row_of
from dpveil import Photo
from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.attacks.resampling import by_person
from dpveil.cli.progress import bar
from dpveil.codecs import GAN, load
from dpveil.codecs.gan import CLEAR, STEEP
from dpveil.codecs.neural import shown
from dpveil.faces.geometry import Frame, place
from dpveil.mechanisms.latent import PCABasis
from dpveil.metrics import psnr
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.training.generators.export import codec_of
from dpveil.training.generators.orders import NetworkOrder
from dpveil.training.generators.plan import PLANS, Plan
from dpveil.training.generators.trainer import Trainer
from dpveil.training.landmarks import PACKAGE, Finder
from dpveil.training.network_orders import learned, read_faces
from timing import report

SHARDS = Path(__file__).parent.parent.parent / "shared" / "data" / "utkface_128"
FILES = 5
"""Shards of faces that are read, half of them: in so few steps hardly a face is seen twice."""
WHOLE = replace(PLANS["small"], widths=(16, 32, 64, 128), batch=16)
SPATIAL = replace(WHOLE, spatial=True, noisy=False, posed=False, masked=False)
STAGES: dict[str, Plan] = {
    "code a map": SPATIAL,
    "code 1 × 1 × 128": replace(SPATIAL, spatial=False),
    "+ noise in training": replace(SPATIAL, spatial=False, noisy=True),
    "+ pose": replace(SPATIAL, spatial=False, noisy=True, posed=True),
    "+ mask": WHOLE,
}
BUDGETS = (200, 1000)
FACES, MOST = 400, 2000
"""Held-out faces that are released, and faces in training that they are compared with."""
RATIO = Fraction(9, 10)
DRAWN = 200
"""The budget of the picture, that of the thesis' figure 6.14."""
TILE = 128
PICTURE = Path(__file__).parent.parent / "reproduction" / "croft-thesis-6" / "ablations.png"


@dataclass(frozen=True, eq=False)
class Stage:
    """A network and what it was trained with, and faces by it, whole: also beyond the ellipse."""

    codec: GAN
    plan: Plan

    def codes(self, crops: np.ndarray) -> np.ndarray:
        """Return the codes of crops, of which only networks with a mask do not see what is beyond it."""
        planes = sized(crops, self.plan.side).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1
        if self.plan.masked:
            planes = planes * shown(self.plan.side)
        raw = np.stack([self.codec.encoder.raw(one[None].astype(np.float32))[0] for one in planes])
        return np.asarray((raw - self.codec.mean).astype(np.float64) @ self.codec.basis.T)

    def faces(self, codes: np.ndarray, told: np.ndarray) -> np.ndarray:
        """Return the faces of codes, told gender, yaw and pitch."""
        kept = told * (1, self.plan.posed, self.plan.posed)
        given = np.concatenate([codes @ self.codec.basis + self.codec.mean, kept], axis=1)
        drawn = [self.codec.decoder(one[None])[0].transpose(1, 2, 0) for one in given.astype(np.float32)]
        return np.clip(np.rint((np.stack(drawn) + 1) * 127.5), 0, 255).astype(np.uint8)

    def released(self, codes: np.ndarray, told: np.ndarray, epsilon: int | None, seed: int = 1) -> np.ndarray:
        """Return releases of codes at a budget, or decoded codes without noise."""
        if epsilon is not None:
            mechanism = PCABasis(epsilon=epsilon, ratio=RATIO, clip=0)
            codes = mechanism.release(codes, self.codec.statistics, bits=SeededBits(seed))
        return self.faces(codes, told)


def shortened(plan: Plan, steps: int) -> Plan:
    """Return the plan with fewer steps, in eight epochs."""
    return replace(plan, steps=steps, epoch=max(1, steps // 8))


def trained(folder: Path, steps: int) -> dict[str, Path]:
    """Train what is not in the folder yet, and return the files."""
    files = {name: folder / f"stage-{place}.safetensors" for place, name in enumerate(STAGES)}
    missing = [name for name, file in files.items() if not file.exists()]
    if not missing:
        return files
    paths = tuple(sorted(SHARDS.glob("*.tar")))[:FILES]
    order = NetworkOrder(paths=paths, out=files[missing[0]], landmarks=Finder(PACKAGE))
    crops, conditions = faces_of(order, folder / "faces.npz")
    for name in missing:
        plan = shortened(STAGES[name], steps)
        trainer = Trainer(plan, crops, conditions)
        kept = learned(trainer, replace(order, out=files[name], plan=plan), GAN.name, len(crops), bar)
        about = {"steps": steps, "images": len(trainer.faces.rows), "hours": round(trainer.spent / 3600, 2)}
        card = Card(GAN.name, "UTKFace", "non-commercial research only", plan.seed, about)
        save(codec_of(trainer, card), files[name])
        kept.unlink(missing_ok=True)
    return files


def faces_of(order: NetworkOrder, kept: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the crops and conditions, which are read once: poses take minutes."""
    if not kept.exists():
        crops, conditions, _ = read_faces(order, bar)
        np.savez(kept, crops=crops, conditions=conditions)
    with np.load(kept) as read:
        return read["crops"], read["conditions"]


def poses(crops: np.ndarray, finder: Finder) -> np.ndarray:
    """Return yaw and pitch in radians of each crop, NaN where they are not sure."""
    found = [finder.pose(crop) for crop in sized(crops, 128)]
    return np.array([(np.nan, np.nan) if one is None else (one.yaw, one.pitch) for one in found])


def told_of(crops: np.ndarray, know: Known, turned: np.ndarray) -> np.ndarray:
    """Return what decoders are told: gender, yaw and pitch, 0 where unknown."""
    gender = np.where(know.model.read(sized(crops, 128))["gender"] == 1, CLEAR, -CLEAR)
    return np.column_stack([gender, np.clip(np.nan_to_num(turned), -STEEP, STEEP)])


def measured(name: str, stage: Stage, know: Known, finder: Finder) -> list[dict[str, object]]:
    """Return a row for each budget."""
    faces = know.held_out[:FACES]
    turned, codes = poses(faces, finder), stage.codes(faces)
    told, rows = told_of(faces, know, turned), []
    for epsilon in (None, *BUDGETS):
        made = path_of_all(stage.released(codes, told, epsilon))
        row = row_of(name, epsilon or "∞", made, know, None)
        off = np.degrees(np.abs(poses(made, finder)[:, 0] - turned[:, 0]))
        near = (off <= 10)[np.isfinite(off)].astype(float)
        names = [str(n) for n in range(len(near))]
        within = [near.mean(), *by_person(near, names, draws=2000, level=0.95, seed=0)]
        row["yaw"] = round(float(np.nanmedian(off)), 1)
        row["yaw within 10°"] = [round(float(one), 3) for one in within]
        pairs = zip(know.real[:FACES], made, strict=True)
        row["PSNR"] = round(float(np.mean([psnr(a, b, data_range=255) for a, b in pairs])), 2)
        rows.append(row)
        print(row, flush=True)
    return rows


def picture(stages: dict[str, Stage], know: Known, finder: Finder) -> np.ndarray:
    """Return the astronaut, decoded and released five times by each network, a row for each."""
    photo = Photo(data.astronaut())
    box = max((found.box for found in Faces(margin=0).detect(photo)), key=lambda one: one.w)
    crop = place(photo, box, frame=Frame(TILE)).crop(photo)[None]
    told, bands = told_of(crop, know, poses(crop, finder)), []
    for stage in stages.values():
        codes = stage.codes(crop)
        made = [stage.released(codes, told, None)]
        made += [stage.released(codes, told, DRAWN, seed) for seed in range(1, 6)]
        if stage.plan.masked:
            for one in made:
                one[:, ~shown(stage.plan.side)] = 128
        bands.append(np.concatenate([crop[0], *(sized(one, TILE)[0] for one in made)], axis=1))
    return np.concatenate(bands)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=600)
    asked = parser.parse_args()
    asked.kept.mkdir(parents=True, exist_ok=True)
    files, finder, know, rows = trained(asked.kept, asked.steps), Finder(PACKAGE), known(MOST), []
    stages = {name: Stage(load(file), STAGES[name]) for name, file in files.items()}
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(PICTURE), picture(stages, know, finder)[..., ::-1])
    for name, stage in stages.items():
        rows += measured(name, stage, know, finder)
    report("gan_ablations", rows)


if __name__ == "__main__":
    main()
