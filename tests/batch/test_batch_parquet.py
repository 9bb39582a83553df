"""Runs over Parquet files: releases and payments as for folders, and nothing in a file is trusted."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shards_made import counts, picture, released
from workers_made import Everything

import dpveil
from dpveil.batch.released_pdf import verify_inside
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.cli import run
from dpveil.cli.run_report import exit_code
from dpveil.core.envelope import MOST_BYTES
from dpveil.errors import OutputError
from dpveil.io.parquet import Rows, _schema
from dpveil.ledger import Ledger
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

pytestmark = pytest.mark.usefixtures("elsewhere")

arrow = pytest.importorskip("pyarrow", reason="needs the extra data")
parquet = pytest.importorskip("pyarrow.parquet")
TIMES = Path("times")


def write(images: list[bytes | None], path: str = "a.parquet", **how: Any) -> None:
    """Write images as `datasets` does, with labels."""
    cells = [None if image is None else {"bytes": image, "path": "../x.jpg"} for image in images]
    kind = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    columns = {"label": arrow.array(["Ann"] * len(images)), "image": arrow.array(cells, kind)}
    parquet.write_table(arrow.table(columns), path, **how)


def held(path: str = "out/a.parquet") -> list[dict[str, Any]]:
    return parquet.read_table(path).to_pylist()  # type: ignore[no-any-return]


def pictures(count: int) -> list[bytes | None]:
    return [picture(8 + number) for number in range(count)]


def bitmap(level: int) -> bytes:
    """Return a photo whose size does not depend on what is in it."""
    made = io.BytesIO()
    Image.new("RGB", (8, 8), (level, level, level)).save(made, "bmp")
    return made.getvalue()


def reasons(report: Any) -> str:
    return " ".join(str(entry.to_json()) for entry in report.failed)


def test_a_file_of_releases_holds_them_with_their_certificates_and_rows(ledger: Ledger) -> None:
    write(pictures(5), row_group_size=2)
    first = released("a.parquet", seed=5)
    assert counts(first) == (5, 0, 0)
    assert str(first.entries[4].source) == "a.parquet/000000004.png"
    made = held()
    assert [set(row) for row in made] == [{"image", "certificate", "row"}] * 5
    assert [row["row"] for row in made] == [0, 1, 2, 3, 4]
    assert [Image.open(io.BytesIO(row["image"]["bytes"])).width for row in made] == [8, 9, 10, 11, 12]
    assert "Ann" not in str(made)
    assert b'"_type": "Image"' in parquet.read_schema("out/a.parquet").metadata[b"huggingface"]
    for row in made:
        Path(row["image"]["path"]).write_bytes(row["image"]["bytes"])
        Path(f"{row['image']['path']}.certificate.json").write_text(row["certificate"])
    assert {dpveil.verify(f"00000000{n}.png").status for n in range(5)} == {"consistent"}
    before = Path("out/a.parquet").stat()
    assert counts(released("a.parquet", seed=5)) == (0, 5, 0)
    assert Path("out/a.parquet").stat().st_ino == before.st_ino
    assert [path.name for path in Path("out").iterdir()] == ["a.parquet"]
    assert counts(released("a.parquet", "by-two", seed=5, jobs=2)) == (5, 0, 0)
    assert held("by-two/a.parquet") == made
    assert counts(released("a.parquet", "one.parquet")) == (5, 0, 0)


def test_a_rerun_pays_for_what_is_missing_alone(ledger: Ledger) -> None:
    """One photo has nobody in it at first; then a row is added."""
    write(pictures(4))
    first = released("a.parquet", ledger=ledger, regions=[Everything(TIMES, empty=9)])
    assert (counts(first), len(first.no_region), ledger.check().debits) == ((3, 0, 0), 1, 3)
    assert [row["row"] for row in held()] == [0, 2, 3]
    assert counts(released("a.parquet", ledger=ledger)) == (1, 3, 0)
    assert (ledger.check().debits, [row["row"] for row in held()]) == (4, [0, 1, 2, 3])
    write([*pictures(4), picture(15)])
    assert counts(released("a.parquet", ledger=ledger)) == (1, 4, 0)
    assert (ledger.check().debits, len(held())) == (5, 5)


def test_rows_of_one_size_that_changed_places_are_refused() -> None:
    """No time is stated for a row, so that only what is in it tells it from another of its size."""
    write([bitmap(10), bitmap(240)])
    assert counts(released("a.parquet")) == (2, 0, 0)
    before = held()
    write([bitmap(240), bitmap(10)])
    report = released("a.parquet")
    assert counts(report) == (0, 0, 2)
    assert "a.parquet/000000000.png before it changed" in reasons(report)
    assert held() == before
    write([bitmap(10)])
    assert counts(released("a.parquet")) == (0, 1, 0)
    assert held() == before


def test_one_bad_row_is_one_failure() -> None:
    write([picture(), None, b"", b"no photo", bytes(65 << 20), picture(9)])
    report = released("a.parquet")
    assert (counts(report), exit_code(report)) == ((2, 0, 4), 1)
    assert [row["row"] for row in held()] == [0, 5]
    assert "unexpected" not in reasons(report)
    assert "a.parquet/000000001.png has no bytes of an image" in reasons(report)


def test_columns_are_found_by_what_they_hold() -> None:
    text, binary = arrow.array(["a"]), arrow.array([picture()], arrow.large_binary())
    for columns, found in (
        ({"photo": binary, "label": text}, (1, 0, 0)),
        ({"image": binary, "mask": binary}, (1, 0, 0)),
        ({"photo": binary, "mask": binary}, (0, 0, 1)),
        ({"label": text}, (0, 0, 1)),
        ({"image": arrow.array([picture()], arrow.binary_view()), "label": text}, (1, 0, 0)),
        ({"image": arrow.array([picture()], arrow.binary()).dictionary_encode()}, (0, 0, 1)),
        ({"image": text, "jpg": arrow.array([{"bytes": picture(), "path": None}])}, (1, 0, 0)),
    ):
        parquet.write_table(arrow.table(columns), "a.parquet")
        report = released("a.parquet", force=True)
        assert counts(report) == found
        assert not found[2] or "column" in reasons(report)


@pytest.mark.parametrize("damage", ["text", "cut", "middle", "footer"])
def test_damage_is_one_failure(damage: str) -> None:
    write(pictures(40), row_group_size=20, compression="none")
    whole = bytearray(Path("a.parquet").read_bytes())
    if damage == "middle":
        half = len(whole) // 2
        whole[half : half + 2000] = bytes(2000)
    if damage == "footer":
        whole[-60:-30] = b"\xff" * 30
    cut = {"text": b"text", "cut": bytes(whole[:-20])}.get(damage, bytes(whole))
    Path("a.parquet").write_bytes(cut)
    report = released("a.parquet")
    assert len(report.failed) >= 1
    assert "unexpected" not in reasons(report)
    assert damage == "middle" or counts(report) == (0, 0, 1)


def test_a_file_that_changes_under_a_run_is_paid_for_no_more(ledger: Ledger) -> None:
    write(pictures(3))
    tasks = plan_tasks([Path("a.parquet")], Path("out"))
    write([picture(level=1), *pictures(3)[1:]], "b.parquet")
    Path("b.parquet").replace("a.parquet")
    given = RunSettings(
        method=DPPix(epsilon=1, block=4, neighbourhood=4),
        regions=[parse("whole")],
        ledger=ledger,
        subject="album",
    )
    report = release_all(tasks, given)
    assert (counts(report), ledger.check().debits) == ((0, 0, 3), 0)
    assert "changed since" in reasons(report)


def test_a_small_file_of_many_large_rows_takes_the_memory_of_one() -> None:
    """A dictionary holds one image of 4 MB for 100 rows. Pages that hold them all are refused."""
    write([bytes(1 << 22)] * 100, compression="zstd", dictionary_pagesize_limit=1 << 26)
    assert Path("a.parquet").stat().st_size < 1 << 20
    before, most = arrow.total_allocated_bytes(), 0
    with Path("a.parquet").open("rb") as file:
        rows = Rows(file)
        for row in range(100):
            assert len(rows.at(row) or b"") == 1 << 22
            most = max(most, arrow.total_allocated_bytes() - before)
    assert most < 1 << 26


def test_what_is_no_file_of_releases_is_not_replaced() -> None:
    write(pictures(2))
    released("a.parquet")
    good = parquet.read_table("out/a.parquet")
    twice = arrow.concat_tables([good, good])
    bare = [{**row, "certificate": None} for row in good.to_pylist()]
    long = [{**row, "certificate": "x" * (MOST_BYTES + 1)} for row in good.to_pylist()]
    forged = [arrow.Table.from_pylist(rows, good.schema) for rows in (bare, long)]
    for other in (twice, *forged, good.append_column("more", good["row"]), None):
        if other is None:
            Path("out/a.parquet").write_bytes(b"PAR1 and more")
        else:
            parquet.write_table(other, "out/a.parquet")
        before = Path("out/a.parquet").read_bytes()
        with pytest.raises(OutputError, match="no Parquet file of releases"):
            released("a.parquet")
        assert Path("out/a.parquet").read_bytes() == before
        assert [path.name for path in Path("out").iterdir()] == ["a.parquet"]
    assert counts(released("a.parquet", force=True)) == (2, 0, 0)
    assert len(held()) == 2


def test_without_its_reader_a_file_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    write(pictures(1))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (only,) = verify_inside(Path("a.parquet"))
    assert (only.status, only.sound) == ("unchecked", False)


def results(path: str = "out/a.parquet") -> dict[str, str]:
    """Return the first problem of all that is in a file, or its status."""
    found = verify_inside(Path(path))
    return {str(each.path)[len(path) :].strip("/"): next(iter(each.problems), each.status) for each in found}


def test_releases_in_a_file_verify_as_files_do(capsys: pytest.CaptureFixture[str]) -> None:
    write(pictures(3))
    released("a.parquet")
    assert results() == {f"00000000{row}.png": "consistent" for row in range(3)}
    assert run(["verify", "out"]) == 0
    assert capsys.readouterr().out.startswith("unmodified    out/a.parquet  3 releases: ε = 1 ")
    two = parquet.read_table("out/a.parquet").select(["image", "certificate"]).slice(1)
    parquet.write_table(two.replace_schema_metadata(), "b.parquet")
    assert "has the path '000000001.png'" in results("b.parquet")["000000000.png"]
    rows = [{**row, "image": {**row["image"], "path": None}} for row in held()]
    parquet.write_table(arrow.Table.from_pylist(rows, _schema()).drop_columns("row"), "b.parquet")
    assert set(results("b.parquet").values()) == {"consistent"}


def test_whatever_is_wrong_in_a_file_fails(capsys: pytest.CaptureFixture[str]) -> None:
    write(pictures(6))
    released("a.parquet")
    rows = held()
    rows[0]["certificate"] = None
    rows[1]["image"] = None
    rows[2]["image"]["bytes"] = picture(10, level=3)
    rows[3]["row"] = 5
    rows[3]["image"]["path"] = None
    rows[4]["row"] = None
    parquet.write_table(arrow.Table.from_pylist(rows, _schema()), "out/a.parquet")
    found = results()
    assert found.pop("000000005.png") == "it has the name of another before it"
    assert [*found.values()] == [
        "it has no certificate",
        "the image is missing",
        "the image was changed: its SHA-256 is not the one in the certificate",
        "it is a row of the number None",
    ]
    assert run(["verify", "out/a.parquet"]) == 1
    assert "Traceback" not in capsys.readouterr().err
