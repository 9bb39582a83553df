"""Packages with entry points, put into a folder as pip would, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dpveil.core.registry import Table


def install(
    folder: Path, name: str, groups: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]
) -> None:
    """Put a package into a folder: its modules, what it is called, and its entry points by group."""
    about = folder / f"{name.replace('-', '_')}-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n", encoding="utf-8")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")


def again(table: Table) -> Table:
    """Return the table as a new process has it, which has not looked for plug-ins yet."""
    return Table(table.role, table.rows, group=table.group, base=table.base)
