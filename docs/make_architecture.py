"""The page on the architecture: layers from pyproject.toml, imports from the code, calls from a release.

Nothing is written by hand: packages are those of src/, their descriptions are their docstrings, and the calls
are recorded while a photo is read, planned, released and saved.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import numpy as np

import dpveil

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dpveil"
DATA = ("core", "errors")  # packages of plain data that all others use; calls into them are not recorded
BAND, LEFT, TOP, STEP = 46, 290, 40, 24
INK, PALE, LINE, FILL = "#263238", "#eceff1", "#90a4ae", "#00695c"


@dataclass(frozen=True)
class Call:
    """A call from one package into another: stage, module, function, and the first sentence of its
    docstring.
    """

    stage: str
    module: str
    name: str
    words: str

    @property
    def package(self) -> str:
        return self.module.split(".")[1]


def layers() -> list[list[str]]:
    """Return the packages of every layer, the highest first, as `make lint` enforces them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = [one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    named = [[package.strip().strip("()") for package in layer.split("|")] for layer in contract["layers"]]
    ours = [[package for package in layer if package.startswith("dpveil.")] for layer in named]
    inside = [[package.removeprefix("dpveil.") for package in layer] for layer in ours]
    return [layer for layer in inside if layer]


def files(package: str) -> list[Path]:
    package = SOURCE / package
    return sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]


def graph() -> grimp.ImportGraph:
    """Return the import graph at run time, without imports for type checkers only.

    For packages with lazy attributes, the imports that they declare for type checkers count.
    """
    running = grimp.build_graph("dpveil", exclude_type_checking_imports=True, cache_dir=None)
    told = grimp.build_graph("dpveil", cache_dir=None)
    for path in SOURCE.rglob("__init__.py"):
        if "lazy(" in path.read_text(encoding="utf-8"):
            package = ".".join(("dpveil", *path.parent.relative_to(SOURCE).parts))
            for name in told.find_modules_directly_imported_by(package):
                running.add_import(importer=package, imported=name)
    return running


def cycle(imports: grimp.ImportGraph) -> list[str]:
    """Return an import cycle, in which each module is imported by the next; empty if there is none."""
    needs = {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def recorded_calls() -> list[Call]:
    """Return the calls between packages during a release.

    Each function is listed once, at its first call; properties and private functions are left out.
    """
    calls: dict[tuple[str, str], Call] = {}
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "photo.png", Path(name) / "private.png"
        picture = np.arange(48 * 64 * 3, dtype=np.int64).reshape(48, 64, 3) % 251
        dpveil.obfuscate(picture.astype(np.uint8), "dp-pix", epsilon=1).save(source)
        held: dict[str, Any] = {}
        settings = {"epsilon": 20, "block": 16, "neighbourhood": 16, "regions": "8,8,40,32"}
        stages: dict[str, Callable[[], Any]] = {
            "read": lambda: dpveil.read(source),
            "plan": lambda: _quoted(dpveil.plan(held["read"], "dp-pix", **settings)),
            "release": lambda: held["plan"].release(),
            "save": lambda: held["release"].save(target),
        }
        for stage, run in stages.items():
            sys.setprofile(_watch(stage, calls))
            try:
                held[stage] = run()
            finally:
                sys.setprofile(None)
    return list(calls.values())


def _quoted(plan: dpveil.Plan) -> dpveil.Plan:
    _ = plan.total, plan.strength, plan.warnings
    return plan


def _watch(stage: str, calls: dict[tuple[str, str], Call]) -> Callable[[FrameType, str, Any], None]:
    def watch(frame: FrameType, event: str, _: object) -> None:
        module, name = _ours(frame), frame.f_code.co_qualname
        if event != "call" or module is None or any(part[0] in "_<" for part in name.split(".")):
            return
        caller = frame.f_back
        while caller is not None and _ours(caller) is None:
            caller = caller.f_back
        package, before = module.split(".")[1], (_ours(caller) or ".") if caller else "."
        if package not in DATA and package != before.split(".")[1] and (module, name) not in calls:
            words = _words(module, name)
            if words:
                calls[module, name] = Call(stage, module, name, words)

    return watch


def _ours(frame: FrameType) -> str | None:
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.startswith("dpveil.") else None


def _words(module: str, name: str) -> str:
    """Return the first sentence of a function's docstring; empty for a property."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, property) or not (callable(found) or isinstance(found, classmethod | staticmethod)):
        return ""
    return sentence(inspect.getdoc(found) or "")


def sentence(words: str) -> str:
    first = " ".join(words.partition("\n\n")[0].split())
    for end in (". ", ": ", "; "):
        first = first.partition(end)[0]
    return first.rstrip(".:;")


def packages_table() -> str:
    imports, at = graph(), {package: number for number, layer in enumerate(layers()) for package in layer}
    rows = ["| layer | package | contents | modules | lines | imports |", "|---|---|---|---|---|---|"]
    for package, number in at.items():
        paths = files(package)
        texts = [path.read_text(encoding="utf-8") for path in paths]
        home = SOURCE / package / "__init__.py" if (SOURCE / package).is_dir() else paths[0]
        words = (ast.get_docstring(ast.parse(home.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
        words = " ".join(words.split()).replace("|", "\\|")
        used = {
            name.split(".")[1]
            for module in imports.modules
            if module.split(".")[1:2] == [package]
            for name in imports.find_modules_directly_imported_by(module)
            if "." in name
        } - {package}
        below = ", ".join(f"`{name}`" for name in sorted(used, key=lambda name: at.get(name, 99)))
        lines = sum(text.count("\n") for text in texts)
        rows.append(f"| {number + 1} | `{package}` | {words} | {len(paths)} | {lines} | {below} |")
    return "\n".join(rows)


def calls_table() -> str:
    rows = ["| | stage | function | what it does |", "|---|---|---|---|"]
    for number, call in enumerate(recorded_calls(), 1):
        words = call.words.replace("|", "\\|")
        rows.append(f"| {number} | {call.stage} | {_breakable(call)} | {words} |")
    return "\n".join(rows)


def _breakable(call: Call) -> str:
    """Return the function's full name, with line breaks allowed after dots and underscores only."""
    name = escape(f"{call.module.removeprefix('dpveil.')}.{call.name}")
    return f'<code class="name">{name.replace(".", ".<wbr>").replace("_", "_<wbr>")}</code>'


def drawing() -> str:
    floors, calls = layers(), recorded_calls()
    at = {package: number for number, layer in enumerate(floors) for package in layer}
    width, height = LEFT + STEP * (len(calls) + 4), TOP + BAND * len(floors) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, layer in enumerate(floors):
        parts += _floor(TOP + number * BAND, layer, width)
    stages = list(dict.fromkeys(call.stage for call in calls))
    places = [
        (LEFT + STEP * (n + stages.index(call.stage)), TOP + at[call.package] * BAND + BAND / 2 - 3)
        for n, call in enumerate(calls)
    ]
    parts += _stages(calls, places, height)
    path = " ".join(f"{x},{y}" for x, y in places)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{FILL}" stroke-width="1.5"/>')
    for number, (call, (x, y)) in enumerate(zip(calls, places, strict=True), 1):
        title = escape(f"{call.module}.{call.name}")
        parts.append(f'<g><title>{title}</title><circle cx="{x}" cy="{y}" r="9" fill="{FILL}"/>')
        parts.append(
            f'<text x="{x}" y="{y + 3}" font-size="9" fill="white" text-anchor="middle">{number}</text></g>'
        )
    return "\n".join([*parts, "</svg>\n"])


def _floor(top: int, layer: list[str], width: int) -> list[str]:
    parts = [f'<rect x="0" y="{top}" width="{width}" height="{BAND - 6}" fill="{PALE}"/>']
    left = 8
    for package in layer:
        wide = 8 * len(package) + 16
        parts.append(
            f'<rect x="{left}" y="{top + 7}" width="{wide}" height="26" rx="4" fill="white" stroke="{LINE}"/>'
        )
        parts.append(
            f'<text x="{left + 8}" y="{top + 24}" font-size="13" fill="{INK}">{escape(package)}</text>'
        )
        left += wide + 8
    return parts


def _stages(calls: list[Call], places: list[tuple[float, float]], height: int) -> list[str]:
    """Return the names of the stages above their calls, with a line before each."""
    parts, seen = [], ""
    for call, (x, _) in zip(calls, places, strict=True):
        if call.stage != seen:
            line = x - STEP / 2
            parts.append(
                f'<line x1="{line}" y1="14" x2="{line}" y2="{height}" stroke="{LINE}" stroke-dasharray="3"/>'
            )
            parts.append(f'<text x="{line + 4}" y="30" font-size="13" fill="{INK}">{call.stage}</text>')
            seen = call.stage
    return parts


PARTS = {"packages": packages_table, "calls": calls_table}


def pictures() -> dict[str, bytes]:
    return {"architecture.svg": drawing().encode("utf-8")}
