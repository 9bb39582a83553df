"""Time of clips beside deface 1.5: whole commands in turns, on clips of two faces.

From start to the last write, less a run on one second of such a clip: `ms/frame` is that of the frames after
it, and `cpu ms/frame` the processor time of all threads and children, ffmpeg's among them; medians of three
turns. `deface's time / own` above 1 means that dpveil is faster. deface is installed as it is by
`pip install deface`, so its network runs in OpenCV; with onnxruntime it was slower here. Needs
../shared/data/lfw10_250 and the extra `video`: `python benchmarks/video_speed.py [SECONDS]`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from folder import _deface
from timing import load_note, report
from video_composites import HD, PEOPLE, VGA, Clip, Shot, swing, write

ROUNDS = 3
DPVEIL = (sys.executable, "-m", "dpveil", "obfuscate", "--quiet", "--json")
PIXELS = ("--regions", "faces", "--method")
METHODS = {
    "dpveil, fill": (*PIXELS, "fill"),
    "dpveil, dp-pix once": (*PIXELS, "dp-pix", "--epsilon", "4", "--block", "16", "--neighbourhood", "16"),
    "dpveil, faces of nobody": ("--method", "attributes"),
}
DEFACE = "deface 1.5"


def two(name: str, size: tuple[int, int], fps: int, seconds: float) -> Clip:
    """Return a clip with two faces that swing to and fro, 0.2 of its height large."""
    (wide, high), tall = size, size[1] / 5
    heads = (
        swing((0.3 * wide, 0.45 * high), (0.12 * wide, 0.04 * high), 0.3, tall, roll=12),
        swing((0.7 * wide, 0.55 * high), (0.08 * wide, 0.06 * high), 0.2, tall, squeeze=0.8),
    )
    return Clip(name, size, fps, (Shot(seconds, heads),))


def run(call: list[str]) -> tuple[float, float, int]:
    """Return seconds on the wall, processor seconds and peak bytes of a command and its children."""
    start = time.perf_counter()
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = process.stderr.read() if process.stderr else b""
    _, status, spent = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(call)} failed: {said.decode()[-600:]}")
    return time.perf_counter() - start, spent.ru_utime + spent.ru_stime, spent.ru_maxrss * 1024


def command(tool: str, clip: Path, out: Path) -> list[str]:
    """Return the command of a tool."""
    if tool == DEFACE:
        return [str(_deface()), str(clip), "--output", str(out)]
    return [*DPVEIL, str(clip), "--out", str(out), "--force", *METHODS[tool]]


def tools() -> list[str]:
    """Return the tools that are installed."""
    return [*METHODS, *([DEFACE] if _deface() else [])]


def speed(seconds: int) -> None:
    """Print and save frames per second of every tool, in turns."""
    rows: list[dict[str, object]] = []
    for size, fps in ((VGA, 25), (HD, 30)):
        with tempfile.TemporaryDirectory() as folder:
            long, short, out = (Path(folder) / name for name in ("long.mp4", "short.mp4", "out.mp4"))
            clip = two("long", size, fps, seconds)
            write(clip, long)
            write(two("short", size, fps, 1), short)
            spent: dict[str, list[tuple[float, float]]] = {}
            for _ in range(ROUNDS):
                for tool in tools():
                    whole, start = (run(command(tool, path, out))[:2] for path in (long, short))
                    spent.setdefault(tool, []).append((whole[0] - start[0], whole[1] - start[1]))
        frames = clip.frames - fps
        each = {
            tool: [statistics.median(parts) / frames * 1000 for parts in zip(*turns, strict=True)]
            for tool, turns in spent.items()
        }
        for tool, (wall, cpu) in each.items():
            peer = each.get(DEFACE, [float("nan")] * 2)
            rows.append(
                {
                    "tool": tool,
                    "size": f"{size[0]} × {size[1]}",
                    "frames": frames,
                    "frames/s": round(1000 / wall, 1),
                    "ms/frame": round(wall, 1),
                    "cpu ms/frame": round(cpu, 1),
                    "deface's time / own": round(peer[0] / wall, 2),
                    "of processors": round(peer[1] / cpu, 2),
                }
            )
    report("video_speed", rows, notes=(load_note(),))


if __name__ == "__main__":
    if PEOPLE.is_dir():
        speed(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    else:
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
