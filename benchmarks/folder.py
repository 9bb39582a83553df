"""Folder throughput and leaks beside deface 1.5, on one synthetic folder in one run, the tools in turns.

`deface` runs in its own environment, .venv-deface, which is created in the first run and needs a package
index; without it those rows are left out. It runs with its defaults (blur, full size) and its declared
requirements: without onnxruntime, the network runs in OpenCV 5.

A face counts as left in the clear if an output exists and the middle quarter of the face differs, on average,
by less than `CLEAR` grey levels from the input recompressed with the output's own JPEG tables: a tool that
finds nothing gives 0 there.

A face counts as named if an attacker with all originals names it: the middle of the face in the output, 24 ×
24 grey pixels, correlates most with that of its own original ("named from originals"), or with that of its
own output in a second run of the same tool ("named by running it again", which names every deterministic
method). Photos that are not written name nobody.
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
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, JpegImagePlugin

from folder_photos import MARKS, Place, make
from timing import load, report

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / ".venv-deface"
METHOD = {"epsilon": 5, "block": 16, "neighbourhood": 256}
ROUNDS = 3
CLEAR = 2
SEEN = 24


def command_lines(photos: Path, work: Path, places: dict[str, list[Place]]) -> list[dict[str, object]]:
    """Run the commands of both tools on the folder; return speed, misses and leaks."""
    own = [str(Path(sysconfig.get_path("scripts")) / "dpveil"), "obfuscate"]
    options = [part for name, value in METHOD.items() for part in (f"--{name}", str(value))]
    options = ["--regions", "faces", "--detector", "centerface", "--method", "dp-pix", *options]
    one = work / "one"
    one.mkdir()
    shutil.copy(sorted(photos.iterdir())[-1], one)
    names = ["dpveil", *(["deface 1.5", "deface 1.5 --keep-metadata"] if _deface() else [])]
    seconds: dict[tuple[str, Path], list[float]] = {}
    for turn in range(ROUNDS):
        for name in names:
            for source in (one, photos):
                out = work / f"{name.split('--')[-1]}-{source.name}-{turn}"
                if name == "dpveil":
                    call = [*own, str(source), "--out", str(out), *options]
                else:  # it writes beside its inputs
                    shutil.copytree(source, out)
                    call = [str(_deface()), str(out), *(["--keep-metadata"] if "keep" in name else [])]
                seconds.setdefault((name, source), []).append(_seconds(call))
    rows = []
    for name in names:
        one_, all_ = (statistics.median(seconds[name, source]) for source in (one, photos))
        outs = [work / f"{name.split('--')[-1]}-{photos.name}-{turn}" for turn in (0, 1)]
        rows.append({"tool": name, **_speed(len(places), one_, all_), **_leaks(photos, outs, places)})
    return rows


def _speed(count: int, one: float, all_: float) -> dict[str, object]:
    return {
        "photos": count,
        "seconds": round(all_, 2),
        "photos/s": round(count / all_, 2),
        "start + 1 photo, s": round(one, 2),
        "photos/s after the start": round((count - 1) / (all_ - one), 2),
    }


def _leaks(photos: Path, outs: list[Path], places: dict[str, list[Place]]) -> dict[str, object]:
    out, again = outs
    found = {photo: _output(out, photo) for photo in sorted(places)}
    written = {photo: path for photo, path in found.items() if path is not None}
    clear = {
        photo: sum(_in_the_clear(photos / photo, path, place) for place in places[photo])
        for photo, path in written.items()
    }
    contents = [path.read_bytes() for path in out.rglob("*") if path.name not in places and path.is_file()]
    survive = [mark for mark, text in MARKS.items() if any(text in content for content in contents)]
    return {
        "written": len(written),
        "refused": len(places) - len(written),
        "faces": sum(map(len, places.values())),
        "faces in the clear": sum(clear.values()),
        "photos with a face, no box": sum(
            bool(places[photo]) and clear.get(photo, len(places[photo])) == len(places[photo])
            for photo in places
        ),
        "of them written": sum(bool(places[p]) and n == len(places[p]) for p, n in clear.items()),
        "written unprotected": sum(_same(photos / photo, path) for photo, path in written.items()),
        "named from originals": _named({photo: photos / photo for photo in places}, written, places),
        "named by running it again": _named({p: _output(again, p) for p in written}, written, places),
        "metadata that survive": ", ".join(survive) or "none",
        "certificates": len(list(out.rglob("*.certificate.json"))),
    }


def _output(out: Path, photo: str) -> Path | None:
    """Return a tool's output for a photo: NAME.png of dpveil, NAME_anonymized.jpg of deface."""
    stem = Path(photo).stem
    return next((out / n for n in (f"{stem}.png", f"{stem}_anonymized.jpg") if (out / n).exists()), None)


def _levels(path: Path | BytesIO) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"), np.int16)


def _change(before: Path, after: Path) -> np.ndarray:
    """Return the distance of each pixel from the input, recompressed as the output was."""
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


def _named(known: dict[str, Path], written: dict[str, Path], places: dict[str, list[Place]]) -> int:
    """Return how many faces that were written correlate most with the same face among those known."""
    faces = [(photo, place) for photo in sorted(known) for place in places[photo]]
    gallery = np.stack([_seen(known[photo], place) for photo, place in faces])
    seen = [_seen(written[photo], place) if photo in written else None for photo, place in faces]
    return sum(s is not None and int(np.argmax(gallery @ s)) == number for number, s in enumerate(seen))


def _seen(path: Path, place: Place) -> np.ndarray:
    """Return the middle of a face in grey, 24 × 24, with mean 0 and norm 1."""
    x, y, side = place
    quarter = side // 4
    middle = (
        Image.open(path).convert("L").crop((x + quarter, y + quarter, x + side - quarter, y + side - quarter))
    )
    levels = np.asarray(middle.resize((SEEN, SEEN)), np.float64).ravel()
    levels -= levels.mean()
    return levels / (np.linalg.norm(levels) or 1)


def _same(before: Path, after: Path) -> bool:
    return bool(_change(before, after).max() < CLEAR)


def _seconds(call: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{call[0]} ended with {done.returncode}: {done.stderr[-400:]}")
    return seconds


@cache
def _deface() -> Path | None:
    """Return the program in its own environment, installed if necessary; None if it cannot be."""
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
    """Print and save the table with the load of the machine, which may be shared."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        rows = command_lines(work / "photos", work, make(work / "photos"))
    report("folder", [row | {"load": load()} for row in rows])


if __name__ == "__main__":
    main()
