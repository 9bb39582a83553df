"""The command line in fresh processes: start-up, one photo from cold, stages, folders, memory.

Targets (issue 13): one dp-pix release of one photo takes 0.5 s as a whole process, one photo with faces 1.0
s, also by attributes. `s` is wall time; `cpu s` is processor time, which other work on the machine disturbs
less. The stages are timed in one more process that runs the same steps. Peak is the resident memory of the
process. `--regions faces` is skipped without a detector, and the folder without ../shared/data.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from skimage import data

from timing import report

DPVEIL = Path(sys.executable).with_name("dpveil")
SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
BUDGET = ["--method", "dp-pix", "--epsilon", "20", "--block", "16", "--neighbourhood", "256"]
STAGES = """
import json, sys, time
began = time.time()
clock = [time.perf_counter()]
def lap(): clock.append(time.perf_counter())
import dpveil, dpveil.batch, dpveil.cli
lap()
source, target, spec = sys.argv[1:]
photo = dpveil.read(source)
lap()
plan = dpveil.plan(photo, "dp-pix", regions=spec, epsilon=20, block=16, neighbourhood=256)
lap()
release = plan.release()
lap()
release.save(target, replace=True)
lap()
laps = [b - a for a, b in zip(clock, clock[1:])]
names = ("imports", "read", "plan", "draw", "write")
print(json.dumps({"began": began, **dict(zip(names, laps))}))
"""


def child(command: list[str]) -> tuple[float, float, float, str]:
    """Run one process; return its wall time, processor time and peak MiB, and what it printed."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if process.returncode:
            raise RuntimeError(f"{command}: {err.read()}")
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read()


def whole(command: list[str], repeats: int) -> dict[str, object]:
    """Return the median times and peak memory of a command."""
    child(command)
    runs = [child(command) for _ in range(repeats)]
    return {
        "s": round(statistics.median(run[0] for run in runs), 3),
        "cpu s": round(statistics.median(run[1] for run in runs), 3),
        "peak MiB": round(statistics.median(run[2] for run in runs)),
    }


def stages(photo: Path, spec: str, folder: Path, repeats: int) -> dict[str, object]:
    """Return the median milliseconds of every stage of one cold release."""
    runs: list[dict[str, float]] = []
    for _ in range(repeats + 1):
        start = time.time()
        *_, printed = child([sys.executable, "-c", STAGES, str(photo), str(folder / "out.png"), spec])
        laps = json.loads(printed)
        runs.append({"interpreter": laps.pop("began") - start, **laps})
    return {name: round(1e3 * statistics.median(run[name] for run in runs[1:])) for name in runs[0]}


def photos(folder: Path) -> dict[str, Path]:
    """Return a 720p and a 12-megapixel photo with one face, as JPEG files."""
    portrait = Image.fromarray(data.astronaut())
    made = {}
    for name, size in (("720p", (1280, 720)), ("12 MP", (4000, 3000))):
        canvas = Image.fromarray(data.coffee()).resize(size, Image.Resampling.BICUBIC)
        side = size[1] * 4 // 5
        canvas.paste(portrait.resize((side, side), Image.Resampling.BICUBIC), (side // 4, side // 8))
        made[name] = folder / f"{name.replace(' ', '')}.jpg"
        canvas.save(made[name], quality=90)
    return made


def can_find_faces(photo: Path, folder: Path) -> bool:
    """Return whether a detector is installed and finds the face in the photo."""
    command = [DPVEIL, "obfuscate", photo, "--out", folder / "try.png", *BUDGET, "--regions", "faces"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def folder_row(folder: Path) -> dict[str, object] | None:
    """Return the throughput over 200 photos of LFW, one process."""
    people = sorted((SHARED / "lfw10_128").glob("*/*.jpg"))[:200]
    if not people:
        print("the folder is skipped: no ../shared/data", file=sys.stderr)
        return None
    inside = folder / "lfw"
    inside.mkdir()
    for number, path in enumerate(people):
        (inside / f"{number:03}.jpg").write_bytes(path.read_bytes())
    command = [str(DPVEIL), "obfuscate", str(inside), "--out", str(folder / "out"), *BUDGET, "--force"]
    row = whole(command, 3)
    return {
        "what": f"{len(people)} photos of 128 × 128, whole",
        **row,
        "photos/s": round(len(people) / row["s"]),
    }


def main() -> None:
    """Print and save the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows: list[dict[str, object]] = [
            {"what": "python -c pass", **whole([sys.executable, "-c", "pass"], 9)},
            {"what": "dpveil --help", **whole([str(DPVEIL), "--help"], 9)},
        ]
        made = photos(folder)
        specs = ["whole", "faces"] if can_find_faces(made["720p"], folder) else ["whole"]
        for size, photo in made.items():
            repeats = 7 if size == "720p" else 3
            for spec in specs:
                command = [str(DPVEIL), "obfuscate", str(photo), "--out", str(folder / "cli.png")]
                timed = whole([*command, *BUDGET, "--regions", spec, "--force"], repeats)
                laps = {f"{n} ms": v for n, v in stages(photo, spec, folder, repeats).items()}
                rows.append({"what": f"one {size} photo, {spec}", **timed, **laps})
        if "faces" in specs:
            command = [
                str(DPVEIL),
                "obfuscate",
                str(made["720p"]),
                "--out",
                str(folder / "cli.png"),
                "--force",
            ]
            timed = whole([*command, "--method", "attributes", "--attributes", "gender=1,age=1"], 7)
            rows.append({"what": "one 720p photo, attributes", **timed})
            timed = whole([*command, "--method", "latent", "--codec", "gan", "--epsilon", "1"], 7)
            rows.append({"what": "one 720p photo, latent", **timed})
        more = folder_row(folder)
        rows += [more] if more else []
    columns = dict.fromkeys((name for row in rows for name in row), "")
    report("cli", [columns | row for row in rows])


if __name__ == "__main__":
    main()
