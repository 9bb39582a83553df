"""Documents and hidden folders that come from anyone: refused before they cost time or other files."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents_made import tiff

from dpveil.batch.document import verify_inside
from dpveil.batch.inside import Scan, pages_of, read_page
from dpveil.io.refused import Refused

OUT = Path("out/private.pdf")


@pytest.fixture(autouse=True)
def scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TIFF of three pages in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("scan.tif").write_bytes(tiff([50, 100, 150]))
    OUT.parent.mkdir()


def problems(**asked: int) -> list[str]:
    return [problem for found in verify_inside(OUT, **asked) for problem in found.problems]  # type: ignore[arg-type]


def test_a_page_of_a_file_that_has_changed_since_is_not_read() -> None:
    path = Path("scan.tif")
    stamp, members = pages_of(path, Scan())
    first, *_ = members
    assert read_page(path, stamp, first, 200, "it", 10_000).image[0, 0, 0] == 50
    path.write_bytes(tiff([60, 100, 150]) + b"more")
    with pytest.raises(Refused, match="has changed"):
        read_page(path, stamp, first, 200, "it", 10_000)
