"""The architecture: no import cycles, every package in a layer, and a page that lists them from the code."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
architecture = pytest.importorskip("make_architecture")


def test_there_are_no_import_cycles():
    imports = architecture.graph()
    assert architecture.cycle(imports) == []
    imports.add_import(importer="dpveil.assets.trained_files", imported="dpveil.codecs.base")
    assert {"dpveil.assets.trained_files", "dpveil.codecs.base"} <= {*architecture.cycle(imports)}


def test_what_a_lazy_package_loads_counts_as_imported():
    imports = architecture.graph().find_modules_directly_imported_by("dpveil.mechanisms.pixel")
    assert "dpveil.mechanisms.pixel.dp_pix" in imports


def test_every_package_is_in_one_layer():
    packages = [package for layer in architecture.layers() for package in layer]
    source = ROOT / "src" / "dpveil"
    found = {
        path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(packages) == sorted(found - {"__init__", "__main__"})


def test_the_page_shows_every_package():
    page, table = (
        (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
        architecture.packages_table(),
    )
    assert "{{ packages }}" in page
    for layer in architecture.layers():
        for package in layer:
            assert f"| `{package}` |" in table
