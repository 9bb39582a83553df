"""Tables of who is in which photo: each row is about one file that is there."""

from pathlib import Path

import pytest

from dpveil.cli.people import by_table
from dpveil.errors import DataError


def test_a_table_may_name_files_in_two_ways(tmp_path):
    table = tmp_path / "who.csv"
    table.write_text("person,file\nAda,a.png\nBob,./a.png\nBob,out/x/a.png\n,b.png\nEve,\n", encoding="utf-8")
    found = by_table(table, "person", ["a.png", "x/a.png", "b.png"], Path("out"))
    assert found == {"a.png": {"Ada", "Bob"}, "x/a.png": {"Bob"}}


def test_a_name_that_may_mean_two_files_is_refused(tmp_path):
    table = tmp_path / "who.csv"
    table.write_text("file,person\nb.png,Ada\nout/b.png,Ada\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"row 2 .* more than one file"):
        by_table(table, "person", ["b.png", "out/b.png"], Path("out"))


@pytest.mark.parametrize("name", ["c.png", "../a.png", "out/../a.png", "/etc/passwd", "A.png"])
def test_a_row_that_names_no_file_of_the_folder_is_refused(tmp_path, name):
    table = tmp_path / "who.csv"
    table.write_text(f"output,person\n{name},Ada\n", encoding="utf-8")
    with pytest.raises(DataError, match="row 1"):
        by_table(table, "person", ["a.png"], Path("out"))
