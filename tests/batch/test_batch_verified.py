"""Shards in `verify`: each release by the checks of files, and nothing in a shard goes unseen."""

from __future__ import annotations

import json
import os
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shards_made import Given, held, link, picture, released, shard

from dpveil.batch.document import verify_inside
from dpveil.cli import run
from dpveil.core.envelope import MOST_BYTES
from dpveil.errors import UnknownName
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.release.keys import SigningKey

CERTIFICATE = ".certificate.json"
Members = dict[str, bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Members, SigningKey]]:
    """Return what is in a shard of three releases, and the key that signed them."""
    key = SigningKey.made()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("made"))
        patch.setenv("XDG_STATE_HOME", str(Path("state").absolute()))
        shard("in/a.tar", [(f"{number}.png", picture(8 + number)) for number in range(3)])
        released(sign=key)
        yield held(), key


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def good(whole: tuple[Members, SigningKey]) -> Members:
    return dict(whole[0])


def pack(contents: Members, *more: tuple[str, Any], path: str = "out/a.tar") -> None:
    given: Given = [*contents.items(), *more]
    shard(path, given)


def found(path: str = "out/a.tar", **how: Any) -> dict[str, tuple[str, str]]:
    """Return name, status and first problem of all that is in a shard."""
    results = list(verify_inside(Path(path), **how))
    assert all(each.inside == Path(path) for each in results)
    return {
        os.path.relpath(each.path, path): (each.status, next(iter(each.problems), "")) for each in results
    }


def cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["verify", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_releases_verify_as_files_do(good: Members, capsys: pytest.CaptureFixture[str]) -> None:
    pack(good)
    code, out, err = cli(capsys, "out")
    assert (code, out.count("\n"), out.split(":")[0]) == (0, 1, "consistent    out/a.tar  3 releases")
    assert "each 1-DP, m-pixels (m = 4)" in out
    assert err.startswith("consistent 3, publishable 3, failed 0; ")
    for name, contents in good.items():
        Path(name).write_bytes(contents)
    inside = json.loads(cli(capsys, "out/a.tar", "--json")[1])["verified"]
    files = json.loads(cli(capsys, "0.png", "1.png", "2.png", "--json")[1])["verified"]
    assert {each.pop("inside") for each in inside} == {"out/a.tar"}
    prefix = {name: f"out/a.tar/{files[0][name]}" for name in ("output", "certificate")}
    assert inside[0] == {**files[0], **prefix}
    assert [each["sha256"] for each in inside] == [each["sha256"] for each in files]


def test_trust_and_strength_are_asked_of_each(
    whole: tuple[Members, SigningKey],
    good: Members,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("state").absolute()))
    pack(good)
    own, foreign = (
        key.write(name) for key, name in ((whole[1], "own.key"), (SigningKey.made(), "foreign.key"))
    )
    assert cli(capsys, "out/a.tar", "--trust", str(own), "--at-least", "strong")[0] == 0
    code, out, _ = cli(capsys, "out/a.tar", "--trust", str(foreign))
    assert (code, out.count("UNTRUSTED     out/a.tar/")) == (1, 3)
    shard("a.tar", [("0.png", picture())])
    released("a.tar", "weak", method=DPPix(epsilon=8, block=4, neighbourhood=4))
    assert [cli(capsys, "weak", "--at-least", least)[0] for least in ("weak", "strong")] == [0, 1]
    assert cli(capsys, "weak", "--at-least", "strong")[1].startswith("TOO WEAK      weak/a.tar/0.png")


@pytest.mark.parametrize("name", ["1.png", f"1.png{CERTIFICATE}"])
def test_a_changed_byte_is_found(good: Members, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed = bytearray(good[name])
    changed[-100] ^= 1
    pack(good | {name: bytes(changed)})
    code, out, err = cli(capsys, "out")
    assert code == 1
    assert out.startswith("INCONSISTENT  out/a.tar/1.png  ")
    assert (name != "1.png") or "its SHA-256 is not the one in the certificate" in out
    assert "consistent    out/a.tar  2 releases" in out
    assert err.startswith("consistent 2, publishable 2, failed 1; ")


def test_whatever_has_no_certificate_fails(good: Members, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"3.png": picture(), "0.txt": b"Ann", ".4.png": picture(), "5.jpg.json": b"{}"}
    alone = {f"6.png{CERTIFICATE}": good[f"0.png{CERTIFICATE}"]}
    pack(good | more | alone)
    results = found()
    assert {name for name, each in results.items() if each[0] == "missing"} == set(more)
    assert results["6.png"] == ("inconsistent", "the image is missing")
    code, out, err = cli(capsys, "out")
    assert (code, out.count("MISSING")) == (1, 4)
    assert "no certificate 4, failed 1" in err
    assert "without a certificate: out/a.tar/3.png and 3 more: they may be originals" in err


def test_names_links_and_copies_are_refused(good: Members) -> None:
    pair = [("0.png", picture()), (f"0.png{CERTIFICATE}", good[f"0.png{CERTIFICATE}"])]
    outside = [("../x.png", picture()), ("/x.png", picture()), ("a\nb.png", picture())]
    links = [link("l.png", kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)]
    pipe = link("p/", tarfile.SYMTYPE)
    pack(good, *pair, *outside, *links[:1], *links[1:2], *links[2:], pipe)
    results = list(verify_inside(Path("out/a.tar")))
    bad = [(each.path.name, each.problems[0]) for each in results if each.status != "consistent"]
    assert sum(each.status == "consistent" for each in results) == 3
    assert [name for name, _ in bad] == [
        "0.png",
        f"0.png{CERTIFICATE}",
        "x.png",
        "x.png",
        *[bad[4][0]],
        *["l.png"] * 3,
        "p",
    ]
    assert [text for _, text in bad[:2]] == ["it has the name of another before it"] * 2
    assert all("leads elsewhere" in text for _, text in bad[2:4])
    assert "no plain name" in bad[4][1]
    assert "is a link, a device or sparse" in bad[5][1]


def test_damage_and_what_is_no_shard_are_one_line(good: Members, capsys: pytest.CaptureFixture[str]) -> None:
    pack(good)
    data = Path("out/a.tar").read_bytes()
    Path("cut.tar").write_bytes(data[: len(data) // 2])
    Path("text.tar").write_bytes(b"x" * 2000)
    Path("empty.tar").write_bytes(bytes(1024))
    Path("link.tar").symlink_to("out/a.tar")
    os.mkfifo("pipe.tar")
    for name in ("cut", "text", "empty", "link", "pipe", "gone"):
        code, out, err = cli(capsys, f"{name}.tar")
        assert (code, "Traceback" in err) == (1, False), name
        assert out.startswith(("INCONSISTENT", "MISSING")), (name, out)
    assert found("empty.tar") == {".": ("missing", "it holds no release")}
    assert found("cut.tar")["."][1].startswith("it ends early, and what follows in it was not verified")
    with pytest.raises(UnknownName, match="choose from"):
        list(verify_inside(Path("a.zip")))


def test_a_large_image_or_certificate_is_not_read(good: Members) -> None:
    large = {f"0.png{CERTIFICATE}": MOST_BYTES + 1, "1.png": 65 << 20}
    with Path("a.tar").open("wb") as file:  # of which most is no block on the disk
        for name, data in good.items():
            told = tarfile.TarInfo(name)
            told.size = large.get(name, len(data))
            file.write(told.tobuf(tarfile.USTAR_FORMAT) + (b"" if name in large else data))
            file.truncate(file.seek(-(-file.seek((told.size if name in large else 0), 1) // 512) * 512))
        file.truncate(file.seek(1024, 1))
    tracemalloc.start()
    results = found("a.tar", max_pixels=10_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each[0] for each in results.values()] == ["inconsistent"] * 2 + ["consistent"]
    assert "bytes, and at most" in results["0.png"][1]
    assert peak < 1 << 23


def test_a_ledger_looks_up_every_release_in_a_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], good: Members
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shard("in/a.tar", [("0.png", picture()), ("1.png", picture(9))])
    with Ledger("sqlite:///budget.db", create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=9))
        released(ledger=ledger)
    call = ["ledger", "check", "out", "--ledger", "sqlite:///budget.db"]
    assert run(call) == 0
    assert capsys.readouterr().out.splitlines()[1] == "out/a.tar  2 releases: paid by album"
    pack(good | {f"7{name}": data for name, data in held().items()} | {"8.png": picture()})
    assert run([*call, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["output"] for each in told["paid"]] == ["out/a.tar/70.png", "out/a.tar/71.png"]
    reasons = [each["error"] for each in told["failed"]]
    assert reasons == ["nobody paid for it from this ledger"] * 3 + ["it has no certificate"]
    assert run(["card", "out", "--out", "out/card.json"]) == 1
    assert "out/a.tar holds several releases in one file, which a card cannot list" in capsys.readouterr().err
