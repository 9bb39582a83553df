"""The page on the house: layers from pyproject.toml, imports from the code, one photo's way from a run of it.

Nothing is written by hand: rooms are the packages of src/, what they hold is in their docstrings, and the way
is recorded while a photo is read, planned, released and saved.
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
DATA = ("core", "errors")
"""Rooms that hold data and are everywhere: the way does not stop there."""
BAND, LEFT, TOP, STEP = 46, 290, 40, 24
INK, PALE, LINE, FILL = "#263238", "#eceff1", "#90a4ae", "#00695c"


@dataclass(frozen=True)
class Stop:
    """Where the way enters a room: in which stage, the module, the function and what it says it does."""

    stage: str
    module: str
    name: str
    words: str

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


def layers() -> list[list[str]]:
    """Return the rooms of every layer, the highest first, as `make lint` holds the code to them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = [one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    named = [[room.strip().strip("()") for room in layer.split("|")] for layer in contract["layers"]]
    ours = [[room for room in layer if room.startswith("dpveil.")] for layer in named]
    inside = [[room.removeprefix("dpveil.") for room in layer] for layer in ours]
    return [layer for layer in inside if layer]


def files(room: str) -> list[Path]:
    """Return the modules of a room."""
    package = SOURCE / room
    return sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]


def graph() -> grimp.ImportGraph:
    """Return which module imports which once the program runs: what only type checkers read is left out.

    But a package that loads names when they are asked for tells type checkers of them, and counts with those.
    """
    running = grimp.build_graph("dpveil", exclude_type_checking_imports=True, cache_dir=None)
    told = grimp.build_graph("dpveil", cache_dir=None)
    for path in SOURCE.rglob("__init__.py"):
        if "lazy(" in path.read_text(encoding="utf-8"):
            package = ".".join(("dpveil", *path.parent.relative_to(SOURCE).parts))
            for name in told.find_modules_directly_imported_by(package):
                running.add_import(importer=package, imported=name)
    return running


def circle(imports: grimp.ImportGraph) -> list[str]:
    """Return modules of which each is imported by the next, the first by the last; none, if all is well."""
    needs = {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def way() -> list[Stop]:
    """Return where a photo passes on its way to a release: functions that a room calls in another.

    Each is listed once, where it is called first; properties and what is private to a module are not.
    """
    stops: dict[tuple[str, str], Stop] = {}
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
            sys.setprofile(_watch(stage, stops))
            try:
                held[stage] = run()
            finally:
                sys.setprofile(None)
    return list(stops.values())


def _quoted(plan: dpveil.Plan) -> dpveil.Plan:
    """Return the plan after what it costs was asked for."""
    _ = plan.total, plan.strength, plan.warnings
    return plan


def _watch(stage: str, stops: dict[tuple[str, str], Stop]) -> Callable[[FrameType, str, Any], None]:
    def watch(frame: FrameType, event: str, _: object) -> None:
        module, name = _ours(frame), frame.f_code.co_qualname
        if event != "call" or module is None or any(part[0] in "_<" for part in name.split(".")):
            return
        caller = frame.f_back
        while caller is not None and _ours(caller) is None:
            caller = caller.f_back
        room, before = module.split(".")[1], (_ours(caller) or ".") if caller else "."
        if room not in DATA and room != before.split(".")[1] and (module, name) not in stops:
            words = _words(module, name)
            if words:
                stops[module, name] = Stop(stage, module, name, words)

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
    """Return the first sentence of a docstring, in one line."""
    first = " ".join(words.partition("\n\n")[0].split())
    for end in (". ", ": ", "; "):
        first = first.partition(end)[0]
    return first.rstrip(".:;")


def rooms_table() -> str:
    """Return a table of the rooms: what they hold, how large they are, and which rooms they import."""
    imports, at = graph(), {room: number for number, layer in enumerate(layers()) for room in layer}
    rows = ["| layer | room | what it holds | modules | lines | imports |", "|---|---|---|---|---|---|"]
    for room, number in at.items():
        paths = files(room)
        texts = [path.read_text(encoding="utf-8") for path in paths]
        home = SOURCE / room / "__init__.py" if (SOURCE / room).is_dir() else paths[0]
        words = (ast.get_docstring(ast.parse(home.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
        words = " ".join(words.split()).replace("|", "\\|")
        used = {
            name.split(".")[1]
            for module in imports.modules
            if module.split(".")[1:2] == [room]
            for name in imports.find_modules_directly_imported_by(module)
            if "." in name
        } - {room}
        below = ", ".join(f"`{name}`" for name in sorted(used, key=lambda name: at.get(name, 99)))
        lines = sum(text.count("\n") for text in texts)
        rows.append(f"| {number + 1} | `{room}` | {words} | {len(paths)} | {lines:,} | {below} |")
    return "\n".join(rows)


def way_table() -> str:
    """Return a table of the stops on the way."""
    rows = ["| | stage | function | what it does |", "|---|---|---|---|"]
    for number, stop in enumerate(way(), 1):
        words = stop.words.replace("|", "\\|")
        rows.append(
            f"| {number} | {stop.stage} | `{stop.module.removeprefix('dpveil.')}.{stop.name}` | {words} |"
        )
    return "\n".join(rows)


def drawing() -> str:
    """Return the layers and the way through them as SVG."""
    floors, stops = layers(), way()
    at = {room: number for number, layer in enumerate(floors) for room in layer}
    width, height = LEFT + STEP * (len(stops) + 4), TOP + BAND * len(floors) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, layer in enumerate(floors):
        parts += _floor(TOP + number * BAND, layer, width)
    stages = list(dict.fromkeys(stop.stage for stop in stops))
    places = [
        (LEFT + STEP * (n + stages.index(stop.stage)), TOP + at[stop.room] * BAND + BAND / 2 - 3)
        for n, stop in enumerate(stops)
    ]
    parts += _stages(stops, places, height)
    path = " ".join(f"{x},{y}" for x, y in places)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{FILL}" stroke-width="1.5"/>')
    for number, (stop, (x, y)) in enumerate(zip(stops, places, strict=True), 1):
        title = escape(f"{stop.module}.{stop.name}")
        parts.append(f'<g><title>{title}</title><circle cx="{x}" cy="{y}" r="9" fill="{FILL}"/>')
        parts.append(
            f'<text x="{x}" y="{y + 3}" font-size="9" fill="white" text-anchor="middle">{number}</text></g>'
        )
    return "\n".join([*parts, "</svg>\n"])


def _floor(top: int, layer: list[str], width: int) -> list[str]:
    parts = [f'<rect x="0" y="{top}" width="{width}" height="{BAND - 6}" fill="{PALE}"/>']
    left = 8
    for room in layer:
        wide = 8 * len(room) + 16
        parts.append(
            f'<rect x="{left}" y="{top + 7}" width="{wide}" height="26" rx="4" fill="white" stroke="{LINE}"/>'
        )
        parts.append(f'<text x="{left + 8}" y="{top + 24}" font-size="13" fill="{INK}">{escape(room)}</text>')
        left += wide + 8
    return parts


def _stages(stops: list[Stop], places: list[tuple[float, float]], height: int) -> list[str]:
    """Return the names of the stages above their stops, with a line before each."""
    parts, seen = [], ""
    for stop, (x, _) in zip(stops, places, strict=True):
        if stop.stage != seen:
            line = x - STEP / 2
            parts.append(
                f'<line x1="{line}" y1="14" x2="{line}" y2="{height}" stroke="{LINE}" stroke-dasharray="3"/>'
            )
            parts.append(f'<text x="{line + 4}" y="30" font-size="13" fill="{INK}">{stop.stage}</text>')
            seen = stop.stage
    return parts


PARTS = {"rooms": rooms_table, "way": way_table}


def pictures() -> dict[str, bytes]:
    """Return the drawing for the page."""
    return {"house.svg": drawing().encode("utf-8")}
