"""Documents and hidden folders that come from anyone: refused before they cost time or other files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from documents_made import tiff

from dpveil.batch import document, verify_inside
from dpveil.batch.inside import Shard
from dpveil.batch.pages import Scan, pages_of, read_page
from dpveil.cli import run
from dpveil.io.pdf_written import pieces
from dpveil.io.refused import Refused
from dpveil.release import documents
from dpveil.release.documents import DocumentCertificate, Page, parse_document

OUT = Path("out/private.pdf")
BESIDE = Path("out/private.pdf.certificate.json")
RELEASE = ["obfuscate", "scan.tif", "--out", str(OUT), "--regions", "2,2,4,4", "--method", "fill"]
STAGE = Path("out/.dpveil-shards")


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


def test_a_document_to_be_replaced_is_not_read_if_its_size_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(RELEASE) == 0
    monkeypatch.setattr(document, "digest", lambda file: pytest.fail("it is read"))
    good = stated()
    far = replace(good, pages=(wide(good.pages[0], 1 << 20, 1 << 40), *good.pages[1:]))
    for lie in (replace(good, size=1 << 42), fitting(far)):
        BESIDE.write_text(lie.to_text())
        os.truncate(OUT, lie.size)
        assert run(RELEASE) == 4
        assert "is no PDF of releases: it holds more than the pictures" in capsys.readouterr().err


def test_certificates_that_were_edited_are_told_in_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RELEASE) == 0
    BESIDE.write_text(BESIDE.read_text() + "\n")
    assert run(["verify", str(OUT)]) == 1
    assert "the PDF has a certificate that was edited: its text" in capsys.readouterr().out
    assert run(RELEASE) == 4
    assert "it has a certificate that was edited: its text" in capsys.readouterr().err
    BESIDE.write_text("{}")
    assert run(["verify", str(OUT)]) == 1
    assert "the PDF has a certificate that is malformed" in capsys.readouterr().out


def test_what_pages_promise_together_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(RELEASE) == 0
    shares, share = list[object](), documents._share
    monkeypatch.setattr(documents, "_share", lambda page: shares.append(page) or share(page))
    assert len(list(verify_inside(OUT))) == 3
    assert len(shares) == 3


def test_a_page_of_a_file_that_has_changed_since_is_not_read() -> None:
    path = Path("scan.tif")
    stamp, members = pages_of(path, Scan())
    first, *_ = members
    assert read_page(path, stamp, first, 200, "it", 10_000).image[0, 0, 0] == 50
    path.write_bytes(tiff([60, 100, 150]) + b"more")
    with pytest.raises(Refused, match="has changed"):
        read_page(path, stamp, first, 200, "it", 10_000)


@pytest.mark.parametrize("inner", [False, True])
def test_a_link_in_place_of_the_hidden_folder_is_not_followed(
    inner: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files there would be written, and others removed."""
    link = Shard(Path("scan.tif"), (0, 0), OUT, OUT.parent).folder if inner else STAGE
    precious = Path("precious").absolute()
    precious.mkdir()
    (precious / ".dpveil-0123456789abcdef.tmp").write_bytes(b"mine")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(precious)
    assert run(RELEASE) == 4
    assert "is a symbolic link" in capsys.readouterr().err
    assert [path.name for path in precious.iterdir()] == [".dpveil-0123456789abcdef.tmp"]
    assert not OUT.exists()
