"""Parquet files that hide something beside their rows, or state less than they take."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest

from dpveil.batch import verify_inside
from dpveil.io import footer as bare
from dpveil.io import pages
from dpveil.io.parquet import Rows, _schema, any_rows, released_rows, write_parquet
from dpveil.io.refused import Refused
from dpveil.io.thrift import Compact, Short

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: make data-sets runs this")
parquet = pytest.importorskip("pyarrow.parquet")
ROW = {"image": {"bytes": b"abc", "path": "000000000.png"}, "certificate": "{}", "row": 0}
BARE: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_statistics": False}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(whole: bytes) -> Any:
    Path("x.parquet").write_bytes(whole)
    return Path("x.parquet").open("rb")


def made(rows: list[Any] | None = None, schema: Any = None, **how: Any) -> bytes:
    file = io.BytesIO()
    told = schema or _schema()
    parquet.write_table(arrow.Table.from_pylist([ROW] if rows is None else rows, told), file, **BARE | how)
    return file.getvalue()


def footer(whole: bytes) -> int:
    return len(whole) - 8 - int(struct.unpack("<I", whole[-8:-4])[0])


def problem(whole: bytes) -> str:
    with opened(whole) as file, pytest.raises(Refused) as caught:
        list(any_rows(file))
    return caught.value.problem


def test_what_is_written_holds_nothing_else() -> None:
    with Path("y.parquet").open("w+b") as file:
        write_parquet(file, [(n, f"{n:09}.png", b"x" * n, b"{}") for n in range(1, 200)])
    with Path("y.parquet").open("rb") as file:
        assert len([*any_rows(file)]) == 199
    with opened(made()) as file:
        assert [*any_rows(file)] == [(0, "000000000.png", b"abc", b"{}")]


def test_whatever_is_beside_the_rows_is_refused() -> None:
    whole = made()
    at = footer(whole)
    noted = _schema().with_metadata({"original": "secret"})
    for other, words in (
        (made(schema=noted), "has notes beside its columns"),
        (whole[:at] + b"secret" + whole[at:], "holds more than its rows"),
        (made(write_statistics=True), "says more than its rows"),
        (made(write_page_index=True), "says more than its rows"),
        (made(compression="zstd"), "does not have its values as they are"),
        (made(use_dictionary=True), "says more than its rows"),
    ):
        assert words in problem(other)


def test_no_part_that_is_stated_twice_stands_in_for_bytes_beside_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sum of all parts would fill the file."""
    whole, real = made(), bare.parts
    at, first = footer(whole), parquet.read_metadata(io.BytesIO(whole)).row_group(0).column(0)
    hidden = whole[:at] + b"s" * first.total_compressed_size + whole[at:]
    monkeypatch.setattr(bare, "parts", lambda *given: [*real(*given), first])
    assert "holds more than its rows" in problem(hidden)


def test_columns_of_another_file_are_refused(tmp_path: Path) -> None:
    whole = made()
    told = parquet.read_metadata(io.BytesIO(whole))
    told.set_file_path("originals.parquet")
    told.write_metadata_file(tmp_path / "m")
    with opened(whole[: footer(whole)] + (tmp_path / "m").read_bytes()[4:]) as file:
        for read in (lambda: [*any_rows(file)], lambda: released_rows(file, 9, 9), lambda: Rows(file)):
            with pytest.raises(Refused, match="in another file"):
                read()


def test_a_page_that_is_larger_than_the_file_states_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {**ROW, "image": {"bytes": bytes(1 << 22), "path": ""}}
    file = opened(made([row], compression="zstd"))
    monkeypatch.setattr(pages, "MOST_PAGES", 1 << 20)
    monkeypatch.setattr("dpveil.io.parquet.check_stated", lambda *_: None)  # as if little were stated
    rows = Rows(file)
    for read in (lambda: rows.at(0), lambda: released_rows(file, 9, 9), lambda: [*any_rows(file)]):
        with pytest.raises(Refused, match="decompresses to 4,194"):
            read()
    file.close()


def test_rows_are_counted_in_their_groups() -> None:
    whole = bytearray(made([{**ROW, "image": None, "row": None, "certificate": None}] * 130))
    at = whole.find(b"\x16\x84\x02", footer(bytes(whole)))  # 130 rows, by the file
    whole[at : at + 3] = b"\x16\x82\x01"
    file = opened(bytes(whole))
    for read in (lambda: [*any_rows(file)], lambda: released_rows(file, 9, 9), lambda: Rows(file)):
        with pytest.raises(Refused, match="another number of rows"):
            read()
    file.close()


def test_numbers_and_structs_are_bounded() -> None:
    for held in (b"\x15\x80\x00", b"\x15" + b"\xff" * 11, b"\x1c" * 99, b"\x05\x00\x00", b"\x1b\x00"):
        with pytest.raises(Refused):
            Compact(held).struct({1: Compact.number} if held[0] == 0x15 else {})
    for held in (b"", b"\x15", b"\x18\x09x", b"\x19\xfc\xff\xff\x03"):
        with pytest.raises(Short):
            Compact(held).struct({})


def test_without_its_reader_a_file_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(made())
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    (only,) = verify_inside(tmp_path / "a.parquet")
    assert (only.status, only.sound) == ("unchecked", False)
