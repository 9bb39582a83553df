"""Keys on the command line: made, shown, signed with before any photo is read, and trusted."""

import json

import numpy as np
import pytest
from PIL import Image

from chains import chain
from dpveil.cli import key as cli_key
from dpveil.core.certificate import Certificate
from dpveil.release.keys import SigningKey
from dpveil.release.saving import read_certificate

NOISE = ("--method", "dp-pix", "--epsilon", "1", "--block", "8")


@pytest.fixture
def folder(tmp_path, shell, monkeypatch):
    """Two photos and two keys, in the current folder."""
    monkeypatch.delenv(cli_key.PASSPHRASE, raising=False)
    for name in ("a", "b"):
        Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(tmp_path / f"{name}.png")
    for name in ("ann.key", "bob.key"):
        assert shell("key", "new", name)[0] == 0
    return tmp_path


def obfuscate(shell, *more, out="out.png"):
    return shell("obfuscate", "a.png", "--out", out, *NOISE, *more)


def test_a_new_key_is_written_for_its_owner_and_shown(folder, shell):
    code, answer, err = shell("key", "new", "new.key")
    made = SigningKey.read(folder / "new.key").public.fingerprint
    assert (code, err) == (0, "")
    assert answer == f"private      new.key\npublic       new.key.pub\nfingerprint  {made}\n"
    assert (folder / "new.key").stat().st_mode & 0o777 == 0o600
    for name in ("new.key", "new.key.pub"):
        shown = shell("key", "show", name)[1]
        assert shown == f"fingerprint  {made}\n{(folder / 'new.key.pub').read_text(encoding='utf-8')}"
        assert json.loads(shell("key", "show", name, "--json")[1])["fingerprint"] == made
    told = json.loads(shell("key", "new", "more.key", "--json")[1])
    assert (told["private"], told["public"]) == ("more.key", "more.key.pub")
    secret = (folder / "new.key").read_text(encoding="utf-8").splitlines()[1]
    assert secret not in answer + shell("key", "show", "new.key")[1]


def test_a_key_is_checked_before_any_photo_is_read(folder, shell, monkeypatch):
    """Not even the names of the inputs are looked at."""
    monkeypatch.setattr("dpveil.batch.remote_output.plan_tasks", None)
    (folder / "ann.key").chmod(0o644)
    code, _, err = obfuscate(shell, "--sign", "ann.key")
    assert (code, err) == (2, "dpveil: --sign ann.key may be read by other users: chmod 600 ann.key\n")
    assert not (folder / "out.png").exists()


def test_signed_and_verified(folder, shell):
    assert obfuscate(shell, "--sign", "ann.key")[0] == 0
    ann = SigningKey.read(folder / "ann.key").public.fingerprint
    bob = SigningKey.read(folder / "bob.key").public.fingerprint
    code, answer, err = shell("verify", "out.png")
    assert code == 0
    assert f"signed by {ann}, which nobody vouched for" in answer
    assert "signer not checked" in err
    code, answer, err = shell("verify", "out.png", "--trust", "ann.key.pub")
    assert (code, f"signed by ann.key ({ann})" in answer) == (0, True)
    assert f"trusted: ann.key ({ann})" in err
    code, answer, _ = shell("verify", "out.png", "--trust", "bob.key.pub")
    told = f"UNTRUSTED     out.png  it is signed by {ann}, which is not a trusted key\n"
    assert (code, answer) == (1, told)
    code, answer, err = shell(
        "verify", "out.png", "--trust", "bob.key.pub", "--trust", "ann.key.pub", "--json"
    )
    entry = json.loads(answer)["verified"][0]
    assert (code, entry["signed_by"], entry["trusted_as"]) == (0, ann, "ann.key")
    code, answer, _ = shell("verify", "out.png", "--trust", "bob.key.pub", "--json")
    entry = json.loads(answer)["failed"][0]
    assert (code, entry["status"], entry["publishable"]) == (1, "untrusted", False)
    assert ann in entry["error"]
    assert entry["hint"]
    assert f"trusted: bob.key ({bob})" in json.loads(answer)["note"]


def test_a_rerun_skips_what_its_own_key_signed(folder, shell):
    assert obfuscate(shell, "--sign", "ann.key")[0] == 0
    first = (folder / "out.png").read_bytes()
    for same in (("--sign", "ann.key"), ()):
        code, _, err = obfuscate(shell, *same)
        assert (code, err.startswith("skipped ")) == (0, True)
    code, _, err = obfuscate(shell, "--sign", "bob.key")
    said = "out.png is a release with these settings, and not one that this key signed: leave out --sign"
    assert (code, said in err) == (1, True)
    assert (folder / "out.png").read_bytes() == first
    assert obfuscate(shell, out="plain.png")[0] == 0
    code, _, err = obfuscate(shell, "--sign", "ann.key", out="plain.png")
    assert (code, "not one that this key signed" in err) == (1, True)
    assert obfuscate(shell, "--sign", "bob.key", "--force")[0] == 0
    bob = SigningKey.read(folder / "bob.key").public
    assert read_certificate(folder / "out.png", Certificate).signature.public_key == bob.data.hex()


def test_encrypted_keys_take_their_passphrase_from_the_environment_or_the_terminal(
    folder, shell, monkeypatch
):
    monkeypatch.setenv(cli_key.PASSPHRASE, "open")
    assert shell("key", "new", "locked.key", "--encrypt")[0] == 0
    assert "ENCRYPTED" in (folder / "locked.key").read_text(encoding="utf-8")
    assert obfuscate(shell, "--sign", "locked.key")[0] == 0
    monkeypatch.setenv(cli_key.PASSPHRASE, "wrong")
    assert "does not open with this passphrase" in obfuscate(shell, "--sign", "locked.key")[2]
    monkeypatch.delenv(cli_key.PASSPHRASE)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert shell("key", "show", "locked.key")[0] == 2
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    typed = iter(["open", "one", "two", ""])
    monkeypatch.setattr(cli_key.getpass, "getpass", lambda words: next(typed))
    assert shell("key", "show", "locked.key")[0] == 0
    assert "the two passphrases differ" in shell("key", "new", "c.key", "--encrypt")[2]
    assert "the passphrase is empty" in shell("key", "new", "c.key", "--encrypt")[2]
    assert not (folder / "c.key").exists()


# C2PA manifests on the command line: asked for in one go with the key, checked before any photo is
# read.


MARK = ("--c2pa", "signer.pem", "--c2pa-key", "signer.key.pem")
CHAIN = chain()


@pytest.fixture
def marked(tmp_path):
    pytest.importorskip("c2pa")
    CHAIN.write(tmp_path)
    Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(tmp_path / "a.png")
    return tmp_path


def test_both_halves_are_needed(marked, shell):
    for given, missing in (("--c2pa", "--c2pa-key"), ("--c2pa-key", "--c2pa")):
        code, _, err = obfuscate(shell, given, "signer.pem")
        said = f"dpveil: {given} is given without {missing}: give a certificate and its key\n"
        assert (code, err) == (2, said)


def test_a_rerun_keeps_what_is_marked_and_refuses_what_is_not(marked, shell):
    assert obfuscate(shell, *MARK)[0] == 0
    assert obfuscate(shell, *MARK)[2].startswith("skipped ")
    assert obfuscate(shell)[2].startswith("skipped ")
    assert shell("verify", "out.png")[0] == 0
    assert obfuscate(shell, out="plain.png")[0] == 0
    code, _, err = obfuscate(shell, *MARK, out="plain.png")
    said = "plain.png is a release with these settings, and has no C2PA manifest: leave out --c2pa to keep it"
    assert (code, said in err) == (1, True)


@pytest.mark.parametrize("out", ["out.bmp", "out.tiff"])
def test_formats_are_checked_before_anything_is_drawn(marked, shell, monkeypatch, out):
    monkeypatch.setattr("dpveil.batch.run.release_all", None)
    code, _, err = obfuscate(shell, *MARK, out=out)
    assert (code, err.endswith("file gets no C2PA manifest: write png, jpeg or webp\n")) == (4, True)


def test_certificates_are_checked_before_any_photo_is_read(marked, shell, monkeypatch):
    monkeypatch.setattr("dpveil.batch.remote_output.plan_tasks", None)
    chain(years=0).write(marked)
    code, _, err = obfuscate(shell, *MARK)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("dpveil: --c2pa signer.pem cannot sign with --c2pa-key: ")


def test_a_copy_is_refused_by_itself_and_does_not_end_the_run(marked, shell):
    """No face is found in either photo, and both may be copied."""
    Image.fromarray(np.full((16, 16, 3), 60, np.uint8)).save(marked / "b.png")
    photos = ("a.png", "b.png", "--out", "outs", "--regions", "faces", "--if-none", "copy")
    code, _, err = shell("obfuscate", *photos, *NOISE, *MARK)
    assert code == 1
    reason = "an unprotected copy gets no C2PA manifest: nothing in it is made: leave --c2pa out"
    assert f"a.png, b.png: {reason}" in err
    assert list((marked / "outs").iterdir()) == []
