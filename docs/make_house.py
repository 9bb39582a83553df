"""The page on the code itself: its layers, and the modules that one photo passes, both read from the code."""

from __future__ import annotations

import ast
import inspect
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import dpveil
from dpveil.io import encode

ROOT = Path(__file__).parent.parent
SOURCES = (ROOT / "src", *sorted(ROOT.glob("packages/*/src")))
EVERYWHERE = ("dpveil.core.", "dpveil.errors", "dpveil.catalogue")


def layers() -> str:
    """Return the layers of the import contract as a table, the uppermost first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    lines = ["| layer | what it is |", "|---|---|"]
    for row in rows:
        names = [name.strip() for name in row.split("|")]
        lines.append(
            f"| {'<br>'.join(f'`{name}`' for name in names)} | {'<br>'.join(map(_summary, names))} |"
        )
    return "\n".join(lines)


def way() -> str:
    """Return which modules one photo passes for the first time in each step, in the order of their calls."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "photo.png"), Path(folder, "private.png")
        source.write_bytes(encode(np.full((48, 64, 3), 128, np.uint8), "png"))
        kept: dict[str, Any] = {}
        steps: dict[str, Callable[[], Any]] = {
            'photo = dpveil.read("photo.png")': lambda: dpveil.read(source),
            'plan = dpveil.plan(photo, "dp-pix", …)': lambda: dpveil.plan(
                kept["photo"], "dp-pix", epsilon=1, block=16, neighbourhood=16, regions="8,8,32,32"
            ),
            "release = plan.release()": lambda: kept["plan"].release(),
            'release.save("private.png")': lambda: kept["release"].save(target),
            'dpveil.verify("private.png")': lambda: dpveil.verify(target),
        }
        for words, step in steps.items():  # once before, so that no import is taken for a step
            kept[words.split(" ")[0]] = step()
        target.unlink()
        target.with_name(f"{target.name}.certificate.json").unlink()
        seen: set[str] = set()
        lines = ["| step | modules, in the order in which they are called |", "|---|---|"]
        for words, step in steps.items():
            kept[words.split(" ")[0]], passed = _traced(step)
            new = [name for name in passed if name not in seen and not name.startswith(EVERYWHERE)]
            seen.update(new)
            lines.append(f"| `{words}` | {', '.join(f'`{name[7:]}`' for name in new)} |")
    return "\n".join(lines)


def _traced(step: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return what a step returns, and the modules of dpveil whose functions it calls, in order."""
    passed: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("dpveil.") and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            passed.setdefault(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return step(), list(passed)
    finally:
        sys.setprofile(before)


def _summary(name: str) -> str:
    """Return the first sentence of a module's docstring."""
    paths = [source.joinpath(*name.split(".")) for source in SOURCES]
    files = [file for path in paths for file in (path / "__init__.py", path.with_suffix(".py"))]
    file = next(file for file in files if file.is_file())
    words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return words.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
