"""Documents: pages as photos, a PDF of pictures and nothing else, and what anybody may put in its place."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents_made import MARKER, SIDES, WIDE, encrypted, marked, sized, tiff
from PIL import Image
from shards_made import counts

import dpveil
from dpveil.batch import released_pdf
from dpveil.batch.archive_inputs import ALL, PageSettings, is_document, pages_inside
from dpveil.batch.released_pdf import verify_inside
from dpveil.batch.report import Report
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.cli import run
from dpveil.cli.run_report import exit_code
from dpveil.core.envelope import canonical, checksum
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.errors import (
    CertificateError,
    DPVeilError,
    InvalidParameter,
    NoRegion,
    OutputError,
    PhotoError,
    UsageError,
)
from dpveil.io import document
from dpveil.io.unreadable import Refused
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPSVD, DPPix, Fill
from dpveil.processes import Ended
from dpveil.regions import Finder, parse
from dpveil.release.document_certificate import MOST_PAGES, parse_document
from dpveil.release.keys import SigningKey

pytestmark = pytest.mark.usefixtures("elsewhere")

OUT = Path("private.pdf")
BESIDE = Path("private.pdf.certificate.json")
STREAM = re.compile(rb"/Length ([0-9]+) >>\nstream\n")


@pytest.fixture
def scan() -> Path:
    """A TIFF of three pages."""
    Path("scan.tif").write_bytes(tiff([50, 100, 150]))
    return Path("scan.tif")


def released(source: Path, out: Path = OUT, scan: PageSettings = ALL, **changes: Any) -> Report:
    settings: dict[str, Any] = {"method": Fill(), "regions": [parse("2,2,4,4")], "max_pixels": 1_000_000}
    return release_all(plan_tasks([source], out, scan=scan), RunSettings(**settings | changes))


def statuses(**asked: Any) -> list[str]:
    return [found.status if found.sound else f"not {found.status}" for found in verify_inside(OUT, **asked)]


def unpacked(data: bytes) -> bytes:
    """Return everything in a PDF, and in its streams."""
    found = [data]
    for place in STREAM.finditer(data):
        body = data[place.end() : place.end() + int(place[1])]
        found.append(zlib.decompress(body) if body[:1] == b"x" else body)
    return b"\n".join(found)


def pictures(*pages: int) -> list[np.ndarray]:
    """Return the levels of released pages, by another reader than that of `verify`."""
    return [of(OUT).draw(page, 200, 10**6).image for page in pages]


def of(path: Path) -> document.Document:
    status = path.stat()
    return document.Document(path, (status.st_size, status.st_mtime_ns))


def test_what_is_shown_of_a_pdf_survives_and_nothing_else() -> None:
    Path("scan.pdf").write_bytes(marked(2))
    assert MARKER in unpacked(Path("scan.pdf").read_bytes())
    assert counts(released(Path("scan.pdf"), scan=PageSettings(dpi=200))) == (2, 0, 0)
    made = OUT.read_bytes()
    for trace in (
        MARKER,
        WIDE,
        b"FEFF",
        b"http",
        b"/JS",
        b"Metadata",
        b"/Font",
        b"/Info",
        b"/ID",
        b"Annot",
        b"Date",
    ):
        assert trace not in unpacked(made) + BESIDE.read_bytes().replace(b"\\u", b""), trace
    assert len(re.findall(rb"\nBT|/Type /(?!Catalog|Pages|Page |XObject)", made)) == 0
    [levels] = pictures(1)
    assert levels.shape == (SIDES[1] * 200 // 72, SIDES[0] * 200 // 72, 3)
    middle = round(22 * 200 / 72)
    seen = [tuple(levels[middle, round(x * 200 / 72)]) for x in (20, 50, 80, 110)]
    assert seen == [(255, 128, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]
    covered = levels[2:6, 2:6].reshape(-1, 3)
    assert len(np.unique(covered)) == 1
    assert covered[0, 0] != 255
    assert b"/MediaBox [0 0 144.00 72.00]" in made
    assert statuses(at_least="strong") == ["consistent"] * 2


def test_what_is_shown_of_a_tiff_survives_and_nothing_else(scan: Path) -> None:
    assert counts(released(scan)) == (3, 0, 0)
    assert MARKER not in unpacked(OUT.read_bytes()) + BESIDE.read_bytes()
    assert [int(page[9, 9, 0]) for page in pictures(0, 1, 2)] == [50, 100, 150]
    assert OUT.read_bytes().count(b"/DeviceGray") == 3
    scan.write_bytes(tiff([1, 2, 3, 4], kinds=(0, 1, 4, 2)))  # a thumbnail and a mask are no pages
    assert counts(released(scan, Path("kinds.pdf"))) == (2, 0, 0)


def test_a_document_is_all_of_its_pages_or_none() -> None:
    sides = iter((16, 4, 16))
    parts = [tiff([level], side) for level, side in zip((1, 2, 3), sides, strict=True)]
    Path("mixed.tif").write_bytes(_joined(parts))
    report = released(Path("mixed.tif"), regions=[parse("8,8,4,4")])
    assert (counts(report), exit_code(report)) == ((2, 0, 1), 1)
    assert not OUT.exists()
    assert not BESIDE.exists()
    assert "as mixed.tif/page-0002 was not released" in report.notes[0]
    waiting = [path.name for path in Path(".dpveil-shards").glob("*/*.png")]
    assert len(waiting) == 2
    other = PageSettings(dpi=100, pages=((1, 1), (3, 3)))
    changed = released(Path("mixed.tif"), scan=other, regions=[parse("8,8,4,4")])
    assert ["is a release of another photo, or of" in str(entry.failure) for entry in changed.failed] == [
        True,
        True,
    ]
    report = released(
        Path("mixed.tif"), scan=PageSettings(pages=((1, 1), (3, 3))), regions=[parse("8,8,4,4")]
    )
    assert counts(report) == (0, 2, 0)
    assert [page.number for page in parse_document(BESIDE.read_text()).pages] == [1, 3]
    assert not Path(".dpveil-shards").exists()


def _joined(parts: list[bytes]) -> bytes:
    """Return a TIFF of the first pages of others, whose directories have no fixed place."""
    from io import BytesIO

    from PIL import Image

    first, *others = (Image.open(BytesIO(part)) for part in parts)
    file = BytesIO()
    first.save(file, "TIFF", save_all=True, append_images=others)
    return file.getvalue()


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("archive", Limit("pure", epsilon=7))
        yield opened


def test_every_page_is_paid_once_and_a_document_promises_their_sum(scan: Path, ledger: Ledger) -> None:
    paying = {
        "method": DPPix(epsilon=2, block=8, neighbourhood=4),
        "regions": [parse("whole")],
        "ledger": ledger,
        "subject": "archive",
    }
    dry = released(scan, dry=True, **paying)
    assert len(dry.priced) == 3
    assert not OUT.exists()
    assert not Path(".dpveil-shards").exists()
    assert counts(released(scan, **paying)) == (3, 0, 0)
    stated = parse_document(BESIDE.read_text())
    assert stated.composition is not None
    assert (stated.composition.epsilon, stated.strength, stated.publishable) == (6, "weak", True)
    assert ledger.show("archive").spent.cost.epsilon == 6 * 10**6
    before = OUT.read_bytes()
    assert len(released(scan, **paying).skipped) == 3
    assert OUT.read_bytes() == before
    assert statuses(at_least="moderate") == ["consistent"] * 3 + ["not consistent"]
    assert statuses(at_least="weak") == ["consistent"] * 3
    other = released(scan, Path("other.pdf"), **paying)
    assert other.stopped == "all photos together cost more than is left"
    assert not Path("other.pdf").exists()
    assert run(["ledger", "check", str(OUT), "--ledger", "sqlite:///budget.db"]) == 0


def test_a_run_that_was_killed_before_the_document_was_written_pays_nothing_again(
    scan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def full(*given: Any, **more: Any) -> None:
        if given[1].name == BESIDE.name:
            raise OSError(28, "no space left")
        write(*given, **more)

    write = released_pdf.write
    monkeypatch.setattr(released_pdf, "write", full)
    report = released(scan)
    assert (report.stopped, OUT.exists(), BESIDE.exists()) == ("the output cannot be written", False, False)
    monkeypatch.setattr(released_pdf, "write", write)
    assert len(released(scan).skipped) == 3
    assert statuses() == ["consistent"] * 3
    OUT.unlink()
    with pytest.raises(DPVeilError, match="gone and its certificate is still there"):
        released(scan)


def test_a_document_is_never_mixed_with_another(scan: Path) -> None:
    assert counts(released(scan)) == (3, 0, 0)
    before = OUT.read_bytes()
    for asked, told in (
        (PageSettings(dpi=100), "200 pixels per inch"),
        (PageSettings(pages=((1, 2),)), "other pages"),
    ):
        with pytest.raises(OutputError, match=told):
            released(scan, scan=asked)
    report = released(scan, regions=[parse("whole")])
    assert [entry.status for entry in report.entries] == ["failed"] * 3
    scan.write_bytes(tiff([50, 100, 151]))
    assert "is a release of another photo, or of" in str(released(scan).failed[0].failure)
    assert OUT.read_bytes() == before
    assert counts(released(scan, scan=PageSettings(dpi=100), force=True)) == (3, 0, 0)
    assert b"[0 0 11.52 11.52]" in OUT.read_bytes()
    assert statuses() == ["consistent"] * 3
    OUT.write_bytes(b"%PDF-1.4 of somebody else")
    with pytest.raises(OutputError, match="exists, and is no PDF of releases"):
        released(scan)


def test_documents_become_pdfs_in_a_folder(scan: Path) -> None:
    Path("in/deep").mkdir(parents=True)
    Path("in/one.tif").write_bytes(tiff([7]))
    scan.rename("in/deep/scan.tif")
    assert not is_document(Path("in/one.tif"))
    report = released(Path("in"), Path("out"), scan=PageSettings(pages=((2, 3),)))
    made = {path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.suffix != ".json"}
    assert made == {"deep", "deep/scan.tif.pdf", "one.png"}
    assert report.released[0].to_json()["input"] in ("in/one.tif", "in/deep/scan.tif/page-0002")
    assert {found.status for found in dpveil.verify_each("out/deep/scan.tif.pdf")} == {"consistent"}
    assert len(released(Path("in"), Path("out"), scan=PageSettings(pages=((2, 3),))).skipped) == 3


def test_certificates_are_what_follows_from_their_pages(scan: Path) -> None:
    released(scan, method=DPPix(epsilon=1, block=8), regions=[parse("whole")])
    text = BESIDE.read_text()
    data = json.loads(text)
    changes: list[dict[str, Any]] = [
        {"composition": {**data["composition"], "epsilon": 1}},
        {"strength": "strong"},
        {"publishable": not data["publishable"]},
        {"schema": "dpveil.certificate/2"},
        {"kind": "photo"},
        {"pages": data["pages"][::-1]},
        {"pages": []},
        {"pages": [{**data["pages"][0], "page": True}]},
        {"pages": [{**data["pages"][0], "bytes": 2**60}]},
        {"output": {**data["output"], "dpi": 10**6}},
        {"output": {**data["output"], "dpi": 200.5}},
        {"output": 7},
        {"note": "more"},
        {"unit": "document"},
    ]
    for change in changes:
        changed = data | change
        with pytest.raises(CertificateError):
            parse_document(canonical(changed | {"checksum": checksum(changed)}))
    for other in ("", "[", "[]", "{}", text[:-2], text.replace("page", "Page"), "[" * 10**5, text + " "):
        with pytest.raises(CertificateError):
            parse_document(other)
    assert parse_document(text).to_text() == text
    released(scan, Path("seeded.pdf"), seed=1)
    seeded = parse_document(Path("seeded.pdf.certificate.json").read_text())
    assert (seeded.strength, seeded.publishable) == ("strong", False)


def test_pages_that_cost_nothing_add_nothing_to_a_metric_promise(scan: Path) -> None:
    """0-DP and a metric guarantee have no rule of their own, and their sum is the metric one."""
    parts = {"free.pdf": (Fill(), "2,2,4,4"), "metric.pdf": (DPSVD(epsilon=1, rank=2), "whole")}
    for name, (method, regions) in parts.items():
        released(scan, Path(name), method=method, regions=[parse(regions)])
    free, metric = (parse_document(Path(f"{name}.certificate.json").read_text()) for name in parts)
    both = replace(metric, pages=(free.pages[0], metric.pages[1]))
    alone = metric.pages[1].certificate.composition
    assert both.composition is not None
    assert alone is not None
    assert free.composition is not None
    assert str(both.composition) == str(alone)
    assert free.composition.free
    assert parse_document(both.to_text()) == both


def test_verify_tells_what_is_missing_and_what_is_altered(scan: Path) -> None:
    assert statuses() == ["not missing"]
    released(scan)
    data, text = OUT.read_bytes(), BESIDE.read_text()
    OUT.write_bytes(data[:-1] + b"\r")
    assert statuses() == ["not inconsistent"]
    OUT.unlink()
    assert statuses() == ["not inconsistent"]
    Path("elsewhere.pdf").write_bytes(data)
    OUT.symlink_to("elsewhere.pdf")
    assert statuses() == ["not inconsistent"]
    OUT.unlink()
    OUT.write_bytes(data)
    BESIDE.write_bytes(b"\xff")
    assert statuses() == ["not inconsistent"]
    BESIDE.unlink()
    assert statuses() == ["not missing"]
    BESIDE.write_text(text)
    assert statuses() == ["consistent"] * 3
    assert statuses(max_pixels=10) == ["not inconsistent"]
    assert run(["verify", str(BESIDE)]) == 0
    assert run(["verify", "."]) == 1  # the TIFF has no certificate


def test_a_signature_is_of_the_whole_document(scan: Path) -> None:
    key, other = SigningKey.generate(), SigningKey.generate()
    released(scan, sign=key)
    assert statuses(trust=key.public) == ["consistent"] * 3
    assert statuses(trust=other.public) == ["not consistent"] * 4
    stated = parse_document(BESIDE.read_text())
    assert stated.signature is not None
    BESIDE.write_text(replace(stated, tool="dpveil 0.0.9").to_text())
    assert statuses() == ["not inconsistent"]
    BESIDE.write_text(replace(stated, signature=None).to_text())
    assert statuses(trust=key.public)[-1] == "not consistent"
    BESIDE.write_text(replace(stated, tool="elsewhat 1", signature=None).to_text())
    assert statuses() == ["not inconsistent"]


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        (b"", "damaged"),
        (b"%PDF-1.7\nno objects", "damaged"),
        (encrypted(), "is encrypted: save a copy of it without a password"),
        (sized("1000000", "1000000"), "more than the limit"),
    ],
)
def test_hostile_pdfs_are_refused_in_one_line(contents: bytes, told: str) -> None:
    Path("scan.pdf").write_bytes(contents)
    report = released(Path("scan.pdf"))
    assert exit_code(report) == 4
    line = str(report.failed[0].failure and report.failed[0].failure.message)
    hint = str(report.failed[0].failure and report.failed[0].failure.hint)
    assert told in f"{line}: {hint}"
    assert "\n" not in line
    assert not OUT.exists()


def test_a_crash_of_the_reader_is_one_page_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("scan.pdf").write_bytes(sized("72", "72"))

    def crashing(*_: object, **__: object) -> None:
        raise Ended("signal", "SIGSEGV")

    monkeypatch.setattr(document.POOL, "ask", crashing)
    failure = released(Path("scan.pdf")).failed[0].failure
    assert failure is not None
    assert "ends the process that draws it" in failure.message


def test_without_the_extra_a_pdf_is_refused_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("scan.pdf").write_bytes(sized("72", "72"))
    monkeypatch.setattr(document, "find_spec", lambda _: None)
    failure = released(Path("scan.pdf")).failed[0].failure
    assert failure is not None
    assert "dpveil[documents]" in failure.hint


def test_calls_that_are_wrong_are_refused(scan: Path) -> None:
    for text in ("0", "3-1", "1-", "a", "1,,2", "-2", "1-99999999"):
        with pytest.raises(InvalidParameter, match="names no pages"):
            PageSettings.of(None, text)
    for dpi in (35, 1201):
        with pytest.raises(InvalidParameter, match="dpi"):
            PageSettings.of(dpi, None)
    for given, out in (("in.png", "a.pdf"), ("in.pdf", "a.png"), ("IN.PDF", "a.png")):
        with pytest.raises(UsageError, match="is the name of one"):
            plan_tasks([Path(given)], Path(out))
    with pytest.raises(UsageError, match="no format"):
        plan_tasks([Path("in.png")], Path("a.jpgg"))
    with pytest.raises(UsageError, match="keeps its names"):
        plan_tasks([scan], OUT, names="number")
    with pytest.raises(OutputError):
        plan_tasks([scan], Path("nowhere/private.pdf"))
    with pytest.raises(UsageError, match="one of the inputs"):
        plan_tasks([Path("a.pdf")], Path("a.pdf"))
    with pytest.raises(PhotoError, match="several pages"):
        dpveil.read(scan)
    assert run(["obfuscate", "scan.tif", "--out", "one.png", "--method", "fill", "--dpi", "100"]) == 2
    asked = ["obfuscate", "scan.tif", "--out", "one.pdf", "--method", "fill", "--regions", "1,1,3,3"]
    assert run([*asked, "--pages", "2-7", "--json"]) == 4
    assert run([*asked, "--pages", "2-3", "--json"]) == 0


class Light(Finder):
    """Finds the first pixel of a page that is light."""

    description = "lights"

    def __call__(self, photo: Photo) -> list[Region]:
        if photo.image.max() < 100:
            raise NoRegion("nothing light was found", hint="none")
        return [Region(Box(0, 0, 4, 4), origin=Origin("light", "lights", number=1, found=True))]


class Dark(Light):
    """Finds the first pixel of a page that is dark."""

    description = "shadows"

    def __call__(self, photo: Photo) -> list[Region]:
        if photo.image.min() > 120:
            raise NoRegion("nothing dark was found", hint="none")
        return [Region(Box(4, 4, 4, 4), origin=Origin("shadow", "shadows", number=1, found=True))]


def test_a_document_of_pages_that_pass_over_what_they_lack_is_publishable(
    scan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pages have levels 50, 100 and 150: dark, both, and light."""
    both = {"regions": [Light(), Dark()]}
    report = released(scan, **both, if_none="others")
    assert (counts(report), len(report.no_region)) == ((3, 0, 0), 0)
    assert "; page 1: nothing was found for lights: " in report.documents[0]
    assert "; page 3: nothing was found for shadows: " in report.documents[0]
    stated = parse_document(BESIDE.read_text())
    assert (stated.copies, stated.publishable, stated.strength) == ([], True, "strong")
    assert [page.certificate.passed_over for page in stated.pages] == [("lights",), (), ("shadows",)]
    assert statuses(at_least="strong") == ["consistent"] * 3
    assert run(["verify", str(OUT), "--at-least", "strong"]) == 0
    assert "that nothing" not in capsys.readouterr().err
    assert counts(released(scan, **both, if_none="others")) == (0, 3, 0), "a rerun skips what is finished"
    assert counts(released(scan, **both)) == (0, 3, 0), "which is what documents do by default"
    assert counts(released(scan, **both, if_none="copy"))[0] == 0


def test_pages_without_a_region_are_kept_beside_others(scan: Path, ledger: Ledger) -> None:
    """The pages have levels 50, 100 and 150: nothing is light on the first."""
    paying: dict[str, Any] = {
        "method": DPPix(epsilon=2, block=4, neighbourhood=4),
        "regions": [Light()],
        "ledger": ledger,
        "subject": "archive",
        "at_least": "weak",
    }
    out = "private.pdf"
    tasks = plan_tasks([scan], Path(out))
    assert [bool(entry.kept) for entry in released(scan, Path(out), dry=True, **paying).priced] == [1, 0, 0]
    assert not Path(out).exists()
    report = release_all(tasks, RunSettings(**paying), jobs=2)
    assert (counts(report), exit_code(report)) == ((3, 0, 0), 0)
    assert report.entries[0].to_json()["kept"] == "no lights: kept as it is"
    assert report.entries[0].warnings == ()
    assert ledger.show("archive").spent.cost.epsilon == 4 * 10**6
    assert not Path(".dpveil-shards").exists()
    assert counts(release_all(tasks, RunSettings(**paying))) == (0, 3, 0)
    stated = parse_document(BESIDE.read_text())
    assert stated.together.startswith("page 1: no lights, kept as it is; 2 other pages together: ")
    assert stated.composition is not None
    assert (stated.copies, stated.publishable, stated.composition.epsilon) == ([1], True, 4)
    assert stated.composition.scope.in_the_clear[1].startswith("page 1: no lights, kept as it is")
    assert statuses(at_least="weak") == ["consistent"] * 2
    assert int(pictures(0)[0][9, 9, 0]) == 50
    assert run(["verify", out]) == 0
    assert run(["ledger", "check", out, "--ledger", "sqlite:///budget.db"]) == 0


def test_a_document_without_any_region_is_refused_as_a_photo() -> None:
    Path("dark.tif").write_bytes(tiff([50, 60]))
    report = released(Path("dark.tif"), OUT, regions=[Light()])
    assert (len(report.no_region), exit_code(report)) == (2, 1)
    assert not [path for path in Path().rglob("*") if path.suffix in (".png", ".pdf")]
    assert counts(released(Path("dark.tif"), OUT, regions=[Light()], if_none="copy")) == (2, 0, 0)
    assert statuses() == ["not unprotected"] * 2
    whole = released(Path("dark.tif"), Path("whole.pdf"), regions=[Light()], if_none="whole")
    assert [entry.promise and entry.promise.kinds for entry in whole.released] == [("whole",)] * 2


def test_kept_pages_of_an_interrupted_run_are_no_pages_of_a_folder(
    scan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until another page is protected, nothing of a document has a name."""
    from dpveil.batch import shards

    with monkeypatch.context() as patched:
        patched.setattr(shards.Shards, "keep_pages", lambda *_: os._exit(9))
        for out in ("private.pdf", "pages"):
            pid = os.fork()
            if not pid:
                try:
                    released(scan, Path(out), regions=[Light()])
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
            assert not [*Path().glob("**/*.pdf")]
    for out in ("private.pdf", "pages"):
        report = released(scan, Path(out), regions=[Light()])
        assert len(report.released) + len(report.skipped) == 3
    assert not list(Path().rglob(".dpveil-shards"))


def test_what_lossy_pictures_of_a_page_may_show_is_stated() -> None:
    """A page is drawn, and the blocks of a JPEG within it hold traces of what is around them."""
    pages = []
    for secret in (1, 2):
        levels = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
        levels[21:43, 21:43] = np.random.default_rng(secret).integers(0, 256, (22, 22, 3))
        Image.fromarray(levels).save(f"{secret}.pdf", resolution=72)  # as a JPEG within the page
        out = Path(f"{secret}.out.pdf")
        released(Path(f"{secret}.pdf"), out, PageSettings.of(72, None), regions=[parse("21,21,22,22")])
        [found] = verify_inside(out)
        assert (found.status, found.publishable) == ("consistent", True)
        assert found.certificate is not None
        [region] = found.certificate.regions
        assert (region.origin.grown_to, region.origin.escapes) == ("PDF", True)
        assert (len(found.certificate.warnings), str(region.box)) == (1, "21,21,22,22")
        pages.append(list(pdf_pictures(out)))
    assert pages[0] != pages[1], "the picture around the box shows what is hidden"


@pytest.mark.parametrize("mode", ["1", "P"])
def test_pages_with_pictures_of_few_colours_are_not_publishable(mode: str) -> None:
    levels = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8))
    (levels.convert("1") if mode == "1" else levels.quantize(64)).save("few.pdf", resolution=72)
    released(Path("few.pdf"), OUT, PageSettings.of(72, None), regions=[parse("21,21,22,22")])
    [found] = verify_inside(OUT)
    assert found.certificate is not None
    assert (found.status, found.publishable) == ("consistent", False)
    assert found.certificate.regions[0].origin.grown_to == "palette"


def pdf_pictures(path: Path) -> Iterator[bytes]:
    for match in STREAM.finditer(path.read_bytes()):
        yield path.read_bytes()[match.end() :][: int(match[1])]


def test_a_page_of_a_file_that_has_changed_since_is_not_read(scan: Path) -> None:
    path = scan
    first, *_ = pages_inside(path, path, path.parent, PageSettings())
    assert first.read(10_000).image[0, 0, 0] == 50
    path.write_bytes(tiff([60, 100, 150]) + b"more")
    with pytest.raises(PhotoError, match="has changed"):
        first.read(10_000)


class Stays(Light):
    """Finds something on every page, and is to keep all of it on the dark one."""

    def __call__(self, photo: Photo) -> list[Region]:
        if photo.image.mean() < 60:
            error = NoRegion("all that was found is to stay as it is", hint="none")
            error.all_stay = True
            raise error
        return super().__call__(photo)


def test_a_page_on_which_all_stay_is_no_page_without_a_face(scan: Path) -> None:
    report = released(scan, regions=[Stays()])
    assert len(report.no_region) == 1
    assert not OUT.exists()


def test_a_dry_run_keeps_no_page(scan: Path) -> None:
    released(scan, Path("pages"), regions=[Light()], dry=True)
    assert not [*Path().rglob("*.png")]


def test_what_is_no_pdf_is_none_whatever_its_certificate_says(scan: Path) -> None:
    released(scan)
    text = b"no PDF\n" * 99
    OUT.write_bytes(text)
    stated = replace(
        parse_document(BESIDE.read_text()), sha256=hashlib.sha256(text).hexdigest(), size=len(text)
    )
    BESIDE.write_text(stated.to_text())
    assert {found.status for found in verify_inside(OUT)} == {"inconsistent"}


def test_as_many_pages_as_a_document_may_have_can_be_chosen() -> None:
    half = MOST_PAGES // 2
    asked = PageSettings(pages=((1, half), (2 * half, 3 * half - 1)))
    assert len(asked.page_numbers(3 * half)) == len(ALL.page_numbers(MOST_PAGES)) == MOST_PAGES
    with pytest.raises(Refused):
        ALL.page_numbers(MOST_PAGES + 1)
