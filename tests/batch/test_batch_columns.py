"""What of samples in shards and Parquet files is kept by name, and that nothing else goes along."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shards_made import counts, held, picture, released, shard

from dpveil.batch.released_pdf import verify_inside
from dpveil.cli import run
from dpveil.errors import OutputError, UsageError

pytestmark = pytest.mark.usefixtures("elsewhere")

arrow = pytest.importorskip("pyarrow", reason="needs the extra data")
parquet = pytest.importorskip("pyarrow.parquet")
KEPT = ("cls", "txt")
SECRET = "Ann"  # noqa: S105  what is in no column that is kept


def write(kind: str, rows: int = 2) -> str:
    """Write samples of a picture with a text, a class, and what nobody asks for."""
    path = f"a.{kind}"
    if kind == "tar":
        members: list[tuple[str, Any]] = []
        for n in range(rows):
            members += [(f"b/{n}.txt", b"text %d" % n), (f"b/{n}.jpg", picture(8 + n))]
            members += [(f"b/{n}.json", SECRET.encode()), (f"b/{n}.cls", b"%d" % n)]
        shard(path, members)
        return path
    columns = {
        "txt": [f"text {n}" for n in range(rows)],
        "cls": arrow.array([*range(rows)], arrow.int8()),
        "image": [{"bytes": picture(8 + n), "path": f"{SECRET}.jpg"} for n in range(rows)],
        "json": [SECRET] * rows,
    }
    parquet.write_table(arrow.table(columns), path, row_group_size=1)
    return path


def samples(path: str) -> list[tuple[str, int]]:
    """Return text and class of every sample of releases, of which nothing else may be there."""
    if path.endswith(".parquet"):
        table = parquet.read_table(path)
        assert {*table.column_names} == {"image", "certificate", "row", "txt", "cls"}
        assert table.schema.field("cls").type == arrow.int8()
        return [(row["txt"], row["cls"]) for row in table.to_pylist()]
    members = held(path)
    names = sorted(name.removesuffix(".txt") for name in members if name.endswith(".txt"))
    ends = (".jpg", ".jpg.certificate.json", ".txt", ".cls")
    assert {*members} == {f"{name}{end}" for name in names for end in ends}
    return [(members[f"{name}.txt"].decode(), int(members[f"{name}.cls"])) for name in names]


def statuses(path: str) -> list[str]:
    return [found.status for found in verify_inside(Path(path))]


@pytest.mark.parametrize("kind", ["tar", "parquet"])
def test_named_columns_go_along_are_stated_and_verified(kind: str) -> None:
    path, out = write(kind), f"out/a.{kind}"
    assert counts(released(path, columns=KEPT)) == (2, 0, 0)
    assert samples(out) == [("text 0", 0), ("text 1", 1)]
    assert SECRET.encode() not in Path(out).read_bytes()
    found = list(verify_inside(Path(out)))
    assert [each.status for each in found] == ["consistent"] * 2
    assert all(each.certificate and each.certificate.columns == KEPT for each in found)
    assert counts(released(path, columns=KEPT)) == (0, 2, 0)
    write(kind, rows=3)
    assert counts(released(path, columns=KEPT)) == (1, 2, 0)
    assert samples(out) == [(f"text {n}", n) for n in range(3)]
    with pytest.raises(OutputError, match="other columns"):  # they would lie beside what they do not state
        released(path)
    assert samples(out) == [(f"text {n}", n) for n in range(3)]
    assert counts(released(path, columns=KEPT, force=True)) == (3, 0, 0)
    write(kind, rows=2)
    assert counts(released(path, columns=KEPT)) == (0, 2, 0)


def test_what_certificates_do_not_state_is_refused() -> None:
    for columns in ((), ("cls",)):
        out = f"by-{len(columns)}"
        assert counts(released(write("tar"), out, columns=columns)) == (2, 0, 0)
        assert counts(released(write("parquet"), out, columns=columns)) == (2, 0, 0)
        members = held(f"{out}/a.tar")
        shard(f"{out}/a.tar", [*members.items(), ("b/1.txt", b"more")])
        assert statuses(f"{out}/a.tar") == ["consistent", "consistent", "missing"]
        shard(f"{out}/a.tar", [*members.items(), ("b/2.cls", b"of no release")])
        assert statuses(f"{out}/a.tar") == ["consistent", "consistent", "missing"]
        table = parquet.read_table(f"{out}/a.parquet")
        parquet.write_table(table.append_column("txt", arrow.array(["a", "b"])), f"{out}/a.parquet")
        assert statuses(f"{out}/a.parquet") == ["inconsistent"] * 2


def test_columns_that_are_not_there_or_not_to_be_kept_are_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for kind in ("tar", "parquet"):
        with pytest.raises(UsageError, match="label"):
            released(write(kind), columns=("label", "txt"))
    Path("a.jpg").write_bytes(picture())
    fill = ["--out", "by-name", "--method", "fill", "--regions", "whole", "--keep-columns"]
    for wrong in ("jpg", "seg.PNG", "image", "certificate", "row", "jpg.certificate.json", "b/txt"):
        assert run(["obfuscate", "a.tar", *fill, wrong]) == 2, wrong
    assert run(["obfuscate", "a.jpg", *fill, "txt"]) == 2
    assert not Path("by-name").exists()
    capsys.readouterr()
    assert run(["obfuscate", "a.tar", "a.parquet", *fill, "txt,cls", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["released"]) == 4


@pytest.mark.parametrize("column", ["photo", "pictures"])
def test_pictures_are_no_columns_whatever_they_are_called(column: str) -> None:
    shard("a.tar", [("0.jpg", picture(8)), (f"0.{column}", picture(9)), ("0.txt", b"text")])
    one = {"bytes": picture(8), "path": "a.jpg"}
    kinds = {"photo": [picture(8)], "pictures": arrow.array([[picture(9)]], arrow.list_(arrow.binary()))}
    parquet.write_table(arrow.table({"image": [one], **kinds}), "a.parquet")
    parquet.write_table(arrow.table({"photo": [picture(8)], "pictures": [one]}), "b.parquet")
    for path in ("a.tar", "a.parquet", "b.parquet"):
        with pytest.raises(UsageError, match=column):
            released(path, columns=(column,))


def test_types_of_columns_stay_and_their_metadata_do_not() -> None:
    label = arrow.field("label", arrow.string(), metadata={"owner": SECRET})
    boxes = arrow.field(
        "boxes", arrow.list_(arrow.field("item", arrow.float32(), metadata={"owner": SECRET}))
    )
    schema = arrow.schema([arrow.field("image", arrow.binary()), label, boxes], metadata={"owner": SECRET})
    rows = [{"image": picture(8 + n), "label": f"l{n}", "boxes": [n, 0.5]} for n in range(3)]
    parquet.write_table(arrow.Table.from_pylist(rows, schema), "a.parquet")
    assert counts(released("a.parquet", columns=("boxes", "label"))) == (3, 0, 0)
    assert SECRET.encode() not in Path("out/a.parquet").read_bytes()
    made = parquet.read_table("out/a.parquet")
    assert made.schema.field("boxes").type == arrow.list_(arrow.float32())
    assert [(row["label"], row["boxes"]) for row in made.to_pylist()] == [
        (f"l{n}", [n, 0.5]) for n in range(3)
    ]


def test_the_library_datasets_reads_them(elsewhere: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra data")
    released(write("parquet"), columns=KEPT)
    table = parquet.read_table("out/a.parquet")
    read = datasets.Dataset(datasets.table.InMemoryTable(table))
    assert [row["txt"] for row in read] == ["text 0", "text 1"]
    assert read[1]["image"].size == (9, 8)
