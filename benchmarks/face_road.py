"""Face codes stage by stage: training, a batch of codes, and a 12-megapixel photo of four faces.

`train` learns the eigenfaces of 100 coordinates from UTKFace as `dpveil train pca` does, in its own process,
whose peak resident memory is reported. `batch` encodes, draws and decodes 1 000 of its crops at once, 128 ×
128 in colour. `photo` runs the steps of `dpveil obfuscate --method latent` in one warm process: a 4000 × 3000
JPEG with four portraits of 500 to 900 pixels is read, its faces found, placed, encoded, drawn and put back,
and a PNG and a certificate are written. Times are medians; `CPU s` counts all cores, and is the one to
compare on a busy machine. Needs ../shared/data; `quick` as an argument uses one shard and fewer rounds, and
saves its figures separately.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from dpveil import Photo, read
from dpveil.core.region import Region
from dpveil.faces import Latent
from dpveil.faces.geometry import recombine
from dpveil.faces.heads import Heads
from dpveil.faces.portrait import centred
from dpveil.io import encode, write_together
from dpveil.noise.bits import SecureBits
from dpveil.regions import Faces
from dpveil.release.pipeline import obfuscate
from dpveil_train.crops import photos
from timing import load_note, report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
BUDGET = {"epsilon": 300}
CROPS, SIDE = 1000, 128
SIDES = (500, 600, 750, 900)
"""Sides in pixels of the portraits in the photo; a face takes about half of one."""
ROUNDS = 7


class Clock:
    """Wall time and processor time by stage and round."""

    def __init__(self) -> None:
        self.spent: dict[str, list[tuple[float, float]]] = {}
        self.start()

    def start(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stop(self, stage: str) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.spent.setdefault(stage, []).append((wall - self.wall, cpu - self.cpu))
        self.start()

    def rows(self, part: str, count: int, unit: str) -> list[dict[str, object]]:
        """Return a row for each stage, without the first round, which warms up."""
        rows = []
        for stage, rounds in self.spent.items():
            wall, cpu = (statistics.median(one[k] for one in rounds[1:] or rounds) for k in (0, 1))
            rows.append(row(part, stage, count, unit, wall, cpu))
        return rows


def row(
    part: str, stage: str, count: int, unit: str, wall: float, cpu: float, peak: object = ""
) -> dict[str, object]:
    return {
        "part": part,
        "stage": stage,
        "of": f"{count:,} {unit}",
        "s": round(wall, 4),
        "CPU s": round(cpu, 4),
        "ms each": round(wall / count * 1e3, 3),
        "peak MiB": peak,
    }


def train(shards: list[Path], model: Path) -> list[dict[str, object]]:
    """Return time and memory of a training run, which writes `model`."""
    program = str(Path(sysconfig.get_path("scripts")) / "dpveil")
    start = time.perf_counter()
    call = [program, "train", "pca", *map(str, shards), "--out", str(model), "--json"]
    with (model.parent / "answer.json").open("w+", encoding="utf-8") as answer:
        process = subprocess.Popen(call, stdout=answer, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        answer.seek(0)
        if status:
            raise RuntimeError(f"dpveil train ended with {status}: {answer.read()}")
        images = json.load(answer)["trained"][0]["images"]
    peak = round(usage.ru_maxrss / 1024)
    return [row("train", "pca 100", images, "images", wall, usage.ru_utime + usage.ru_stime, peak)]


def batch(method: Latent, shard: Path, rounds: int) -> list[dict[str, object]]:
    """Return the time of each step for a batch of crops, and of all together."""
    seen = (photo for photo in photos([shard]) if isinstance(photo, Photo))
    crops = np.stack([centred(photo, (SIDE, SIDE, 3)) for photo in islice(seen, CROPS)])
    codec, drawn = method.codec.held, method._own
    clock = Clock()
    for _ in range(rounds + 1):
        clock.start()
        codes = codec.encode(crops)
        clock.stop("encode")
        codes = drawn.release(codes, codec.statistics, bits=SecureBits())
        clock.stop("draw")
        codec.decode(codes)
        clock.stop("decode")
        method.release(crops, bits=SecureBits())
        clock.stop("all three")
    return clock.rows("batch", len(crops), "crops")


def made_photo(path: Path) -> None:
    """Write a JPEG with portraits of four people on a photo without faces."""
    canvas = Image.fromarray(data.coffee()).resize((4000, 3000), Image.Resampling.BICUBIC)
    people = sorted(SHARED.glob("lfw10_128/*"))[::40]
    for number, side in enumerate(SIDES):
        person = Image.open(sorted(people[number].iterdir())[0]).convert("RGB")
        canvas.paste(person.resize((side, side), Image.Resampling.BICUBIC), (60 + 970 * number, 900))
    canvas.save(path, "jpeg", quality=92)


def stages(method: Latent, source: Path, out: Path, rounds: int) -> list[dict[str, object]]:
    """Return the time of every stage for one photo, and of all in one call as users make it."""
    finder, clock = Faces(margin=0), Clock()
    for _ in range(rounds + 1):
        clock.start()
        photo = read(source)
        clock.stop("read")
        faces: list[Region] = finder(photo)
        clock.stop("find faces")
        heads = Heads(photo, faces, method)
        clock.stop("place")
        crops = np.stack([one.crop(photo) for one in heads.places])
        clock.stop("cut crops")
        released = method.release(crops, bits=SecureBits())
        clock.stop("encode, draw, decode")
        image = recombine(photo.image, heads.places, list(released))
        clock.stop("put back")
        contents = encode(image, "png")
        clock.stop("PNG")
        write_together([(out / "a.json", b"{}" * 1000), (out / "a.png", contents)], replace=True)
        clock.stop("write")
    if len(faces) != len(SIDES):
        raise RuntimeError(f"{len(faces)} faces were found, not {len(SIDES)}")
    _in_one_call(clock, method, source, out, rounds)
    return clock.rows("photo", 1, "photo")


def _in_one_call(clock: Clock, method: Latent, source: Path, out: Path, rounds: int) -> None:
    for _ in range(rounds + 1):
        clock.start()
        obfuscate(read(source), method).save(out / "b.png", replace=True)
        clock.stop("all, read to written")


def main() -> None:
    """Print and save the table with the load of the machine, which may be shared."""
    if not SHARED.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    quick = "quick" in sys.argv[1:]
    shards = sorted(SHARED.glob("utkface_128/*.tar"))[: 1 if quick else None]
    rounds = 2 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        rows = train(shards, work / "model.safetensors")
        method = Latent(**BUDGET, codec=work / "model.safetensors")
        rows += batch(method, shards[0], rounds)
        made_photo(work / "photo.jpg")
        rows += stages(method, work / "photo.jpg", work, rounds)
    report("face_road-quick" if quick else "face_road", rows, notes=(load_note(),))


if __name__ == "__main__":
    main()
