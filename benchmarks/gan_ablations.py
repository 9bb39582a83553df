"""What each ingredient of `gan` is worth, as in figure 6.2 of Croft's thesis: five networks, one more each.

`STAGES` starts with a code that is a map, without noise in training, pose or mask, and ends with what
`dpveil train gan` has. All else is equal: faces, seed, and the extent, which is small, so that five trainings
take half an hour of one core: half of the small plan's channels and batch, and fewer steps (`--steps`).

Measured are releases of held-out faces of UTKFace, by `pca-basis` at the ratio of the thesis, and without
noise (ε = ∞). Every decoder is told the gender of the label, and those with a pose that of the landmarks. All
pictures, real ones too, take one path: 64 × 64 pixels within the public ellipse, grey beyond.

- `Fréchet`: squared Fréchet distance to 2000 faces in training, on the hidden units of dpveil's attribute
  model, which is no FID; `nearer than …`: how much less it is than by another network
- `apart`: sliced Wasserstein distance to them, of levels at 16 × 16 pixels, in grey levels
- `yaw`: median difference to the original's in degrees, where landmarks of both are sure
- `PSNR` to the original, in dB

Intervals are 95 %, over faces; they say nothing of other trainings, as each network was trained once.

`python benchmarks/gan_ablations.py --kept FOLDER` needs dpveil-train; it keeps networks in FOLDER, goes
on where it was interrupted, and writes `results/gan_ablations.json` and the picture of the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from codec_budgets import sized
from decoded_quality import path_of_all
from dpveil import Photo
from dpveil.assets.cards import Card
from dpveil.assets.defaults import default_path
from dpveil.assets.store import save
from dpveil.attacks.resampling import by_person
from dpveil.cli.progress import bar
from dpveil.codecs import GAN, load
from dpveil.codecs.gan import CLEAR, STEEP
from dpveil.codecs.neural import shown
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.geometry import Frame, place
from dpveil.mechanisms.latent import PCABasis
from dpveil.metrics import psnr
from dpveil.metrics.sets import colours, frechet, sliced_wasserstein
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_train.gan import EVERY, PLANS, NetworkOrder, Plan, Trainer, codec_of
from dpveil_train.landmarks import PACKAGE, Finder
from dpveil_train.networks import learned, read_faces
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
FACES = "faces.npz"
MOST = 2000
"""Most faces in training that releases are compared with."""
HALVES = 20
RATIO = Fraction(9, 10)
DRAWN = 200
"""The budget of the picture, that of the thesis' figure 6.14."""
TILE = 96
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
    crops, conditions = faces_of(order, folder / FACES)
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


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of releases of held-out faces: their crops, what is told, and what is known of others."""

    faces: np.ndarray
    told: np.ndarray
    turned: np.ndarray
    colours: np.ndarray
    units: np.ndarray
    model: AttributeModel
    finder: Finder

    @classmethod
    def of(cls, crops: np.ndarray, conditions: np.ndarray, finder: Finder) -> Measures:
        """Return the measures of held-out faces among crops, beside as many as `MOST` in training."""
        held = np.arange(len(crops)) % EVERY == 0
        model = AttributeModel.load(default_path("attributes"))
        real = path_of_all(crops[~held][:MOST])
        known = np.nan_to_num(conditions[held])
        told = np.column_stack([CLEAR * known[:, 0], np.clip(known[:, 1:], -STEEP, STEEP)])
        units = model.units(sized(real, 128))
        turned = conditions[held, 1]
        return cls(crops[held], told, turned, colours(real), units, model, finder)

    def row(self, name: str, epsilon: object, faces: np.ndarray) -> tuple[dict[str, object], np.ndarray]:
        """Return a row, and Fréchet distances of all faces and of halves of them."""
        made, real = path_of_all(faces), path_of_all(self.faces)
        units, looks = self.model.units(sized(made, 128)), colours(made)
        far = np.array([frechet(units[half], self.units) for half in halves(len(made))])
        apart = np.array([sliced_wasserstein(looks[half], self.colours) for half in halves(len(made))])
        yaw = poses(made, self.finder)[:, 0]
        off = np.degrees(np.abs(yaw - self.turned))
        read = self.model.read(sized(made, 128))["gender"] == 1
        noise = np.mean([min(99.0, psnr(a, b, data_range=255)) for a, b in zip(real, made, strict=True)])
        row = {
            "network": name,
            "ε": epsilon,
            "Fréchet": spread(far),
            "apart": spread(apart),
            "landmarks sure": share(np.isfinite(yaw)),
            "gender as told": share(read == (self.told[:, 0] > 0)),
            "yaw within 10°": share((off <= 10)[np.isfinite(off)]),
            "yaw": round(float(np.nanmedian(off)), 1),
            "PSNR": round(float(noise), 2),
            "faces": len(made),
        }
        return row, far


def halves(count: int) -> list[np.ndarray]:
    """Return all rows, and random halves of them, the same for every set of `count`."""
    words = SeededBits(5, "halves").words(HALVES * count).reshape(HALVES, -1)
    return [np.arange(count), *(np.argsort(one, kind="stable")[: count // 2] for one in words)]


def spread(found: np.ndarray) -> list[float]:
    """Return the first value, and 1.96 deviations of the others to either side.

    The deviation of a half, drawn without replacement, is that of the whole. Set distances of halves are
    larger by a bias, which deviations do not see.
    """
    off = 1.96 * np.std(found[1:])
    return [round(float(one), 2) for one in (found[0], found[0] - off, found[0] + off)]


def share(right: np.ndarray) -> list[float]:
    """Return a share with its interval."""
    names = [f"{n:04}" for n in range(len(right))]
    ends = by_person(right.astype(float), names, draws=2000, level=0.95, seed=0)
    return [round(float(one), 3) for one in (right.mean(), *ends)]


def measured(stages: dict[str, Stage], measures: Measures) -> Iterator[dict[str, object]]:
    """Yield a row for each network and budget, with how much nearer it is than the network before."""
    yield measures.row("real faces", "-", measures.faces)[0]
    before: dict[object, np.ndarray] = {}
    first: dict[object, np.ndarray] = {}
    for name, stage in stages.items():
        codes = stage.codes(measures.faces)
        for epsilon in (None, *BUDGETS):
            row, far = measures.row(name, epsilon or "∞", stage.released(codes, measures.told, epsilon))
            if epsilon in before:
                row["nearer than the one before"] = spread(before[epsilon] - far)
                row["nearer than the first"] = spread(first[epsilon] - far)
            before[epsilon] = far
            first.setdefault(epsilon, far)
            yield row


def picture(stages: dict[str, Stage], finder: Finder) -> np.ndarray:
    """Return the astronaut, and in a row for each network, decoded and released five times."""
    photo = Photo(data.astronaut())
    box = max((found.box for found in Faces(margin=0).detect(photo)), key=lambda one: one.w)
    crop = place(photo, box, frame=Frame(128)).crop(photo)[None]
    told, bands = np.array([[CLEAR, *poses(crop, finder)[0]]]), []
    for stage in stages.values():
        codes = stage.codes(crop)
        made = [stage.released(codes, told, None)]
        made += [stage.released(codes, told, DRAWN, seed) for seed in range(1, 6)]
        if stage.plan.masked:
            for one in made:
                one[:, ~shown(stage.plan.side)] = 128
        first = crop if not bands else np.full_like(crop, 255)
        bands.append(np.concatenate([sized(one, TILE)[0] for one in (first, *made)], axis=1))
    return np.concatenate(bands)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=600)
    asked = parser.parse_args()
    asked.kept.mkdir(parents=True, exist_ok=True)
    files, finder, rows = trained(asked.kept, asked.steps), Finder(PACKAGE), []
    stages = {name: Stage(load(file), STAGES[name]) for name, file in files.items()}
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(stages, finder)).quantize(256).save(PICTURE, optimize=True)
    with np.load(asked.kept / FACES) as read:
        measures = Measures.of(read["crops"], read["conditions"], finder)
    for row in measured(stages, measures):
        rows.append(row)
        print(row, flush=True)
    report("gan_ablations", rows)


if __name__ == "__main__":
    main()
