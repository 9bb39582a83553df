"""The architecture: no import cycles, every package in a layer, and a page that draws both from the code."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
architecture = pytest.importorskip("make_architecture")

PASSED = [
    "io.reading.read",
    "release.plan.plan",
    "catalogue.build",
    "regions.spec.search",
    "accounting.compose.compose",
    "release.plan.Plan.release",
    "noise.laplace.discrete_laplace",
    "release.saving.Release.save",
    "io.writing.write_together",
]


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


def test_the_page_shows_packages_and_calls():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for part in ("pictures/architecture.svg", *(f"{{{{ {name} }}}}" for name in architecture.PARTS)):
        assert part in page
    drawing, table = architecture.pictures()["architecture.svg"].decode(), architecture.packages_table()
    for layer in architecture.layers():
        for package in layer:
            assert f">{package}</text>" in drawing
            assert f"| `{package}` |" in table


def test_the_calls_for_a_photo_are_recorded_in_order():
    calls = architecture.recorded_calls()
    names = [f"{call.module.removeprefix('dpveil.')}.{call.name}" for call in calls]
    assert [name for name in names if name in PASSED] == PASSED
    assert list(dict.fromkeys(call.stage for call in calls)) == ["read", "plan", "release", "save"]
    assert not [call for call in calls if call.stage == "plan" and call.name == "discrete_laplace"]
    assert sys.getprofile() is None
