"""Data sets of the user's own: tiny trees of the papers' layouts, and every experiment that takes one."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_tables import read
from made_codes import chips, portrait
from PIL import Image
from test_reproduction import thinned

from dpveil_research import (
    croft_2022_faces,
    croft_pixels,
    croft_thesis_5,
    croft_thesis_6,
    faceidp,
    faceidp_faces,
    reilly_fan_2021,
)
from dpveil_research.__main__ import COMPUTED, DRAWN, GRIDS, ON_DATA, OWN, main
from dpveil_research.data import facts_of, levels, people_of
from dpveil_research.faces import read_people, sets_of
from dpveil_research.grid import measure

RAFD = ("angry", "contemptuous", "disgusted", "fearful", "happy", "neutral", "sad", "surprised")
KDEF = {"AF": "fearful", "AN": "angry", "DI": "disgusted", "HA": "happy", "NE": "neutral", "SA": "sad"}


def rafd(folder: Path, people: int = 8) -> Path:
    """Everybody's expressions from the front, and one from the side."""
    folder.mkdir()
    for person, (photo, look) in product(range(people), enumerate(RAFD)):
        gender = "male" if person % 2 else "female"
        for angle in ("090", "045") if look == "happy" else ("090",):
            name = f"Rafd{angle}_{person + 1:02}_Caucasian_{gender}_{look}_frontal.jpg"
            Image.fromarray(portrait(person, photo, 64)).save(folder / name)
    return folder


def kdef(folder: Path, people: int = 4) -> Path:
    for person, session, (photo, code), side in product(
        range(people), "AB", enumerate(KDEF), ("S", "HL", "FR")
    ):
        name = f"{session}{'MF'[person % 2]}{person + 1:02}"
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(portrait(person, photo, 64)).save(folder / name / f"{name}{code}{side}.JPG")
    return folder


def scrub(folder: Path, people: int = 6, photos: int = 5) -> Path:
    """FaceScrub and PubFig: a folder for each person, photos of any size."""
    for person, photo in product(range(people), range(photos)):
        (folder / f"Person_{person}").mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(portrait(person, photo, 64)).resize((60 + photo, 70))
        image.save(folder / f"Person_{person}" / f"{photo}.jpg")
    return folder


def casia(folder: Path, people: int = 2, photos: int = 3) -> Path:
    """Eyes that dpveil draws, in CASIA's folders."""
    for eye, items in enumerate(people_of(Path("drawn-eyes"))[: 2 * people]):
        for number, item in enumerate(items[:photos]):
            place = folder / f"{eye // 2 + 1:03}" / "LR"[eye % 2]
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(levels(item, "L")).save(place / f"S{number}.bmp")
    return folder


@pytest.mark.parametrize(("made", "people", "each"), [(rafd, 8, 8), (kdef, 4, 12)])
def test_names_tell_expression_and_gender_and_frontal_photos_are_taken(
    made: Any, people: int, each: int, tmp_path: Path
) -> None:
    found = people_of(made(tmp_path / "set"))
    assert [len(own) for own in found] == [each] * people
    for own in found:
        facts = [facts_of(one.name) for one in own]
        assert {one["view"] for one in facts} == {"frontal"}
        assert len({one["gender"] for one in facts}) == 1
        assert {one["expression"] for one in facts} == set(RAFD if made is rafd else KDEF.values())
    assert facts_of("Person_1/happy.jpg") == facts_of("AF01/AF01V.JPG") == {}


TINY = croft_2022_faces.Plan(people=4, known=1, pairs=1, epsilons=(1000,), groups=(2,), splits=1)
THESIS = replace(croft_thesis_6.PLAN, people=8, photos=3, known=2, draws=1, epsilons=(1000,), groups=(2,))


def few(name: str) -> Any:
    """A grid with one contrast and the ends of its two series."""
    grid = thinned(GRIDS[name])
    one = grid.contrasts[-1]
    kept = [x for x in grid.settings if x.sweep == one[0] and x.series in one[1:]]
    return replace(grid, settings=tuple(kept), figures=lambda rows, about: {}, contrasts=(one,))


def pixels(of: croft_pixels.Comparison) -> Any:
    return partial(croft_pixels.make, replace(of, epsilons=("1000000",), blocks=(16,)))


def slowly(*run: Any) -> Any:
    return pytest.param(*run, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "tree", "table", "run"),
    [
        ("croft-2022-faces", rafd, ON_DATA, partial(croft_2022_faces.make, plan=TINY)),
        ("croft-2022", scrub, ON_DATA, partial(measure, few("croft-2022"))),
        ("reilly-fan-2021-iris", casia, DRAWN, partial(measure, few("reilly-fan-2021-iris"), Path())),
        slowly("croft-2022-faces", kdef, ON_DATA, partial(croft_2022_faces.make, plan=TINY)),
        slowly("croft-thesis-6", scrub, ON_DATA, partial(croft_thesis_6.make, plan=THESIS)),
        slowly("croft-2022-risk", scrub, ON_DATA, pixels(croft_pixels.PAPER)),
        slowly("croft-thesis-6-pixels", scrub, ON_DATA, pixels(croft_pixels.THESIS)),
    ],
)
def test_an_experiment_takes_a_tree_of_its_papers_layout(
    name: str, tree: Any, table: dict[str, Any], run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpveil_research.faces.embedder", lambda: chips)
    monkeypatch.setitem(table, name, run)
    own, count = tree(tmp_path / "own"), "4" if tree is not scrub else "6"
    assert main([name, "--own", str(own), "--out", str(tmp_path / "out"), "--count", count]) == 0
    rows = read((tmp_path / "out" / name / "results.csv").read_bytes())
    assert rows
    assert {row[n] for row in rows for n in ("people",) if n in row} <= {"2", "4", "6"}


def test_faceidp_takes_a_tree_of_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    for module in (faceidp, faceidp_faces):
        monkeypatch.setattr(module, "embedder", lambda: None)
        monkeypatch.setattr(module, "trained", lambda kind, crops, *rest: seen.update(learned=crops))
    rows = {"differences": [{"sweep": "codes", "x": "1", "series": "original", "difference": "0"}]}
    monkeypatch.setattr(faceidp, "measure", lambda codec, faces, *rest: seen.update(faces=faces) or rows)
    monkeypatch.setattr(faceidp, "figures", lambda tables, about: {})
    monkeypatch.setattr(faceidp_faces, "files", lambda codec, crops, *rest: seen.update(shown=crops) or {})
    own = scrub(tmp_path / "own")
    for name in ("faceidp", "faceidp-faces"):
        assert main([name, "--own", str(own), "--out", str(tmp_path / "out"), *["--count", "2"]]) == 0
    assert set(seen["faces"].people) == {"Person_1", "Person_3", "Person_5"}
    assert len(seen["faces"].people) == len(seen["learned"]) == 15
    assert len(seen["shown"]) == 3


def test_k_same_takes_a_tree_in_place_of_both_sets(tmp_path: Path) -> None:
    (own,) = sets_of((), kdef(tmp_path / "KDEF"))
    found = read_people(own, tmp_path, 3, 3)
    assert (found.name, found.people, found.crops.shape[:2]) == ("KDEF", ("F02", "F04", "M01"), (3, 3))


def table_of(path: Path, rows: list[tuple[object, object]], names: tuple[str, str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def test_a_census_file_takes_the_place_of_the_survey(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(croft_thesis_5, "EPSILONS", ("1",))
    monkeypatch.setattr(croft_thesis_5, "SERIES", {n: s[:1] for n, s in croft_thesis_5.SERIES.items()})
    monkeypatch.setattr(croft_thesis_5, "CONTRASTS", dict.fromkeys(croft_thesis_5.SERIES, ()))
    monkeypatch.setattr(croft_thesis_5, "differences", lambda those: [{"none": ""}])
    rows = [(1 + i % 7, int(i % 3 == 0)) for i in range(35)]
    own = table_of(tmp_path / "census.csv", rows, ("family_size", "degree"))
    sizes, degrees = croft_thesis_5.census(own)
    assert sizes.tolist() == [np.mean([a for a, _ in rows[10 * g : 10 * g + 10]]) for g in range(3)]
    assert degrees.tolist() == [sum(b for _, b in rows[10 * g : 10 * g + 10]) for g in range(3)]
    assert main(["croft-thesis-5", "--own", str(own), "--out", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out" / "croft-thesis-5").iterdir()}
    assert names == {"results.csv", "differences.csv", "figure-5-13.png", "figure-5-14.png"}


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([(1, 0)] * 30, ("size", "degree")),
        ([(8, 0)] * 30, ("family_size", "degree")),
        ([(1, 2)] * 30, ("family_size", "degree")),
        ([("many", 0)] * 30, ("family_size", "degree")),
        ([(1, 0)] * 19, ("family_size", "degree")),
    ],
)
def test_another_file_is_refused(rows: Any, names: Any, tmp_path: Path) -> None:
    own = table_of(tmp_path / "census.csv", rows, names)
    assert main(["croft-thesis-5", "--own", str(own), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_what_takes_no_own_data_set_refuses_it_before_it_works(tmp_path: Path) -> None:
    for name, own in (("naive-bayes", tmp_path), ("errata-e1", tmp_path), ("faceidp", tmp_path / "none")):
        assert main([name, "--own", str(own), "--out", str(tmp_path / "out")]) == 2
    out = ["--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["croft-2022-faces", "--count", "12", *out]) == 2
    assert set(OWN) <= {*ON_DATA, *DRAWN, *COMPUTED}
    assert not (tmp_path / "out").exists()
    assert reilly_fan_2021.IRIS.name in DRAWN
