"""The house: no circle among imports, every room in a layer, and a page that draws both from the code."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
house = pytest.importorskip("make_house")

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


def test_no_modules_import_each_other_in_a_circle():
    imports = house.graph()
    assert house.circle(imports) == []
    imports.add_import(importer="dpveil.assets.store", imported="dpveil.codecs.kind")
    assert {"dpveil.assets.store", "dpveil.codecs.kind"} <= {*house.circle(imports)}


def test_what_a_lazy_package_loads_counts_as_imported():
    imports = house.graph().find_modules_directly_imported_by("dpveil.mechanisms.pixel")
    assert "dpveil.mechanisms.pixel.dp_pix" in imports


def test_every_room_is_in_one_layer():
    rooms = [room for layer in house.layers() for room in layer]
    source = ROOT / "src" / "dpveil"
    found = {
        path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(rooms) == sorted(found - {"__init__", "__main__"})


def test_the_page_shows_rooms_and_way_as_they_are():
    page = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    for part in ("pictures/house.svg", *(f"{{{{ {name} }}}}" for name in house.PARTS)):
        assert part in page
    drawing, table = house.pictures()["house.svg"].decode(), house.rooms_table()
    for layer in house.layers():
        for room in layer:
            assert f">{room}</text>" in drawing
            assert f"| `{room}` |" in table


def test_the_way_of_a_photo_is_recorded_in_order():
    stops = house.way()
    names = [f"{stop.module.removeprefix('dpveil.')}.{stop.name}" for stop in stops]
    assert [name for name in names if name in PASSED] == PASSED
    assert list(dict.fromkeys(stop.stage for stop in stops)) == ["read", "plan", "release", "save"]
    assert not [stop for stop in stops if stop.stage == "plan" and stop.name == "discrete_laplace"]
    assert sys.getprofile() is None
