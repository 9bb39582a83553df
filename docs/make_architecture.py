"""The table of packages: layers from pyproject.toml, imports from the code, descriptions from docstrings."""

from __future__ import annotations

import ast
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dpveil"


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


PARTS = {"packages": packages_table}
