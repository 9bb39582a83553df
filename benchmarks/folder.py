"""Folder throughput beside detection alone and deface 1.5, on one made folder in one run; and what leaks.

`deface` runs in its own environment, .venv-deface, which is made at the first run and needs a package index;
without it those rows are left out. Its defaults are used (blur, full size), and so are those of its
requirements: the network runs in OpenCV 5, for onnxruntime is not among them.

A face counts as left in the clear when an output exists and the middle quarter of the face lies, on average,
under `CLEAR` grey levels from the input that was compressed again with the output's own JPEG tables: a tool
that finds nothing gives 0 there. The stages are timed on the photos that are released.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, JpegImagePlugin

from dpveil import read
from dpveil.cli.batch import Choices, release_all
from dpveil.cli.inputs import Task
from dpveil.io import encode, write_together
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SecureBits
from dpveil.pipeline import obfuscate
from dpveil.regions import Faces
from folder_photos import MARKS, Place, make
from timing import report

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / ".venv-deface"
METHOD = {"epsilon": 5, "block": 16, "neighbourhood": 256}
ROUNDS = 3
CLEAR = 2


def stages(photos: list[Path], out: Path) -> list[dict[str, object]]:
    """Return the time of each stage over the photos: in every round all stages take turns at each photo."""
    method, finder = DPPix(**METHOD), Faces(detector="centerface")
    choices = Choices(method, [finder], None, None, 100_000_000, force=True)
    names = ("decode", "detect", "draw", "encode", "write", "obfuscate, read to written")
    rounds = []
    for _ in range(ROUNDS + 1):
        spent = dict.fromkeys(names, 0.0)
        for path in photos:
            clock = _Clock(spent)
            photo = read(path)
            clock.stop("decode")
            regions = finder(photo)
            clock.stop("detect")
            boxes = [(r.box.x, r.box.y, r.box.w, r.box.h) for r in regions]
            release = obfuscate(photo, method, regions=boxes, bits=SecureBits())
            clock.stop("draw")
            contents = encode(release.image, "png")
            clock.stop("encode")
            write_together([(out / "a.json", b"{}" * 1000), (out / "a.png", contents)], replace=True)
            clock.stop("write")
            done = release_all([Task(path, out / "b.png", "b.png")], choices)
            clock.stop("obfuscate, read to written")
            if len(done.released) != 1:
                raise RuntimeError(f"{path.name} was not released: {done.failed or done.no_region}")
        rounds.append(spent)
    # The first round warms up; each stage has its own median.
    seconds = {name: statistics.median(spent[name] for spent in rounds[1:]) for name in names}
    alone, both = seconds["detect"], seconds["decode"] + seconds["detect"]
    return [
        {
            "what": name,
            "photos": len(photos),
            "photos/s": round(len(photos) / spent, 2),
            "ms/photo": round(spent / len(photos) * 1e3, 1),
            "× detection": round(spent / alone, 2),
            "× decode + detection": round(spent / both, 2),
        }
        for name, spent in {**seconds, "decode + detect": both}.items()
    ]


class _Clock:
    def __init__(self, spent: dict[str, float]) -> None:
        self.spent, self.start = spent, time.perf_counter()

    def stop(self, name: str) -> None:
        now = time.perf_counter()
        self.spent[name] += now - self.start
        self.start = now


def command_lines(photos: Path, work: Path, places: dict[str, list[Place]]) -> list[dict[str, object]]:
    """Return what both tools, started as users start them, do with the folder: speed, misses and leaks."""
    own = [str(Path(sysconfig.get_path("scripts")) / "dpveil"), "obfuscate"]
    options = [part for name, value in METHOD.items() for part in (f"--{name}", str(value))]
    options = ["--regions", "faces", "--detector", "centerface", "--method", "dp-pix", *options]
    one = work / "one"
    one.mkdir()
    shutil.copy(sorted(photos.iterdir())[-1], one)
    rows, deface = [], _deface()
    for name in ("dpveil", "deface 1.5", "deface 1.5 --keep-metadata"):
        if name != "dpveil" and deface is None:
            continue
        seconds: dict[Path, list[float]] = {one: [], photos: []}
        for turn in range(3 if name in ("dpveil", "deface 1.5") else 1):
            for source, spent in seconds.items():
                out = work / f"{name.split('--')[-1]}-{source.name}-{turn}"
                if name == "dpveil":
                    call = [*own, str(source), "--out", str(out), *options]
                else:  # it writes beside its inputs
                    shutil.copytree(source, out)
                    call = [str(deface), str(out), *(["--keep-metadata"] if "keep" in name else [])]
                spent.append(_seconds(call))
        rows.append(_row(name, photos, out, places, *map(statistics.median, seconds.values())))
    return rows


def _row(
    name: str, photos: Path, out: Path, places: dict[str, list[Place]], one: float, all_: float
) -> dict[str, object]:
    found = {photo: _output(out, photo) for photo in sorted(places)}
    written = {photo: path for photo, path in found.items() if path is not None}
    clear = {
        photo: sum(_in_the_clear(photos / photo, path, place) for place in places[photo])
        for photo, path in written.items()
    }
    contents = [path.read_bytes() for path in out.rglob("*") if path.name not in places and path.is_file()]
    survive = [mark for mark, text in MARKS.items() if any(text in content for content in contents)]
    count = len(places)
    return {
        "tool": name,
        "photos": count,
        "seconds": round(all_, 2),
        "photos/s": round(count / all_, 2),
        "start + 1 photo, s": round(one, 2),
        "photos/s after the start": round((count - 1) / (all_ - one), 2),
        "written": len(written),
        "refused": count - len(written),
        "faces": sum(map(len, places.values())),
        "faces in the clear": sum(clear.values()),
        "photos with a face, no box": sum(
            bool(places[photo]) and clear.get(photo, len(places[photo])) == len(places[photo])
            for photo in places
        ),
        "of them written": sum(bool(places[p]) and n == len(places[p]) for p, n in clear.items()),
        "written unprotected": sum(_same(photos / photo, path) for photo, path in written.items()),
        "metadata that survive": ", ".join(survive) or "none",
        "certificates": len(list(out.rglob("*.certificate.json"))),
    }


def _output(out: Path, photo: str) -> Path | None:
    """Return what a tool wrote for a photo: dpveil NAME.png, deface NAME_anonymized.jpg."""
    stem = Path(photo).stem
    return next((out / n for n in (f"{stem}.png", f"{stem}_anonymized.jpg") if (out / n).exists()), None)


def _levels(path: Path | BytesIO) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"), np.int16)


def _change(before: Path, after: Path) -> np.ndarray:
    """Return how far each pixel lies from the input, compressed again as the output was."""
    output = Image.open(after)
    if not isinstance(output, JpegImagePlugin.JpegImageFile):
        return np.abs(_levels(before) - _levels(after)).mean(axis=2)
    again = BytesIO()
    sampling = JpegImagePlugin.get_sampling(output)
    image = Image.open(before).convert("RGB")
    image.save(again, "jpeg", qtables=output.quantization, subsampling=sampling)
    return np.abs(_levels(again) - _levels(after)).mean(axis=2)


def _in_the_clear(before: Path, after: Path, place: Place) -> bool:
    x, y, side = place
    middle = np.s_[y + side // 4 : y + side - side // 4, x + side // 4 : x + side - side // 4]
    return bool(_change(before, after)[middle].mean() < CLEAR)


def _same(before: Path, after: Path) -> bool:
    return bool(_change(before, after).max() < CLEAR)


def _seconds(call: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{call[0]} ended with {done.returncode}: {done.stderr[-400:]}")
    return seconds


def _deface() -> Path | None:
    """Return the program in an environment of its own, made if need be; None if it cannot be."""
    folder = "Scripts" if os.name == "nt" else "bin"
    program = ENVIRONMENT / folder / "deface"
    if not program.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        install = [str(ENVIRONMENT / folder / "python"), "-m", "pip", "install", "-q", "deface==1.5.0"]
        if subprocess.run(install, check=False).returncode != 0:
            print("deface cannot be installed: its rows are left out", file=sys.stderr)
            return None
    return program


def main() -> None:
    """Print and keep both tables, and the load of the machine, which may be shared."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        places = make(work / "photos")
        tools = command_lines(work / "photos", work, places)
        faces = [work / "photos" / name for name in sorted(places) if name.endswith("-faces.jpg")]
        rows = stages(faces, work)
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    report("folder-stages", [row | {"load": load} for row in rows])
    report("folder", [row | {"load": load} for row in tools])


if __name__ == "__main__":
    main()
