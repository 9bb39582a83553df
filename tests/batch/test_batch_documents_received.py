"""Documents and hidden folders that come from anyone: refused before they cost time or other files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from documents_made import tiff

from dpveil.batch import document, verify_inside
from dpveil.batch.inside import Scan, pages_of, read_page
from dpveil.cli import run
from dpveil.io.pdf_written import pieces
from dpveil.io.refused import Refused
from dpveil.release.documents import DocumentCertificate, Page, parse_document

OUT = Path("out/private.pdf")
BESIDE = Path("out/private.pdf.certificate.json")
RELEASE = ["obfuscate", "scan.tif", "--out", str(OUT), "--regions", "2,2,4,4", "--method", "fill"]


@pytest.fixture(autouse=True)
def scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TIFF of three pages in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("scan.tif").write_bytes(tiff([50, 100, 150]))
    OUT.parent.mkdir()


def stated() -> DocumentCertificate:
    return parse_document(BESIDE.read_text())


def fitting(lie: DocumentCertificate) -> DocumentCertificate:
    """Return a certificate that states the size that follows from its pages."""
    sheets = [page.sheet for page in lie.pages]
    size = sum(map(len, pieces(sheets, lie.dpi))) + sum(sheet.size for sheet in sheets)
    return replace(lie, size=size)


def problems(**asked: int) -> list[str]:
    return [problem for found in verify_inside(OUT, **asked) for problem in found.problems]  # type: ignore[arg-type]


def wide(page: Page, side: int, size: int) -> Page:
    """Return a page of which another number of pixels and of bytes is stated."""
    output = page.certificate.output
    assert output is not None
    larger = replace(output, width=side, height=side)
    return replace(page, size=size, certificate=replace(page.certificate, output=larger))


def test_a_document_of_another_size_than_its_pages_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of four terabytes takes no space, and its certificate may state all of it."""
    assert run(RELEASE) == 0
    good = stated()

    def read(file: object) -> bytes:
        raise AssertionError("it is read")

    monkeypatch.setattr(document, "digest", read)
    first, *others = good.pages
    large = 1 << 42
    far = fitting(replace(good, pages=(wide(first, 1 << 20, large), *others)))
    lies = [
        (replace(good, size=large), {}, "holds more"),
        (far, {}, "limit of 100,000,000"),
        (good, {"max_pixels": 255}, "limit of 255"),
    ]
    for lie, asked, told in lies:
        os.truncate(OUT, lie.size)
        BESIDE.write_text(lie.to_text())
        [problem] = problems(**asked)
        assert told in problem
    os.truncate(OUT, good.size - 1)
    [problem] = problems()
    assert "was changed after its release" in problem


def test_a_page_of_a_file_that_has_changed_since_is_not_read() -> None:
    path = Path("scan.tif")
    stamp, members = pages_of(path, Scan())
    first, *_ = members
    assert read_page(path, stamp, first, 200, "it", 10_000).image[0, 0, 0] == 50
    path.write_bytes(tiff([60, 100, 150]) + b"more")
    with pytest.raises(Refused, match="has changed"):
        read_page(path, stamp, first, 200, "it", 10_000)
