"""Peak memory and time of long clips beside deface 1.5: of a tenth of so many minutes, and of all of them.

Clips of two faces, 640 × 480 pixels at 25 frames a second; the peak is that of the largest process, as the
system counts it. Needs ../shared/data/lfw10_250 and the extra `video`:
`python benchmarks/video_memory.py [MINUTES]`, 10 by default.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from timing import load_note, report
from video_composites import PEOPLE, VGA, write
from video_speed import command, run, tools, two


def memory(minutes: float) -> None:
    """Print and save the table."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        clip, out = Path(folder) / "clip.mp4", Path(folder) / "out.mp4"
        for part in (minutes / 10, minutes):
            write(two("long", VGA, 25, 60 * part), clip)
            for tool in tools():
                wall, cpu, most = run(command(tool, clip, out))
                megabytes, seconds = round(most / 1e6), round(wall)
                rows.append(
                    {"tool": tool, "minutes": part, "peak MB": megabytes, "s": seconds, "cpu s": round(cpu)}
                )
    report("video_memory" if minutes >= 10 else "video_memory-quick", rows, notes=(load_note(),))


if __name__ == "__main__":
    if PEOPLE.is_dir():
        memory(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
    else:
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
