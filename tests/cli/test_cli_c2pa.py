"""C2PA manifests on the command line: asked for in one go with the key, checked before any photo is read."""

import numpy as np
import pytest
from PIL import Image

from chains import chain

pytest.importorskip("c2pa")
NOISE = ("--method", "dp-pix", "--epsilon", "1", "--block", "8")
MARK = ("--c2pa", "signer.pem", "--c2pa-key", "signer.key.pem")
CHAIN = chain()


@pytest.fixture
def folder(tmp_path):
    CHAIN.write(tmp_path)
    Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(tmp_path / "a.png")
    return tmp_path


def obfuscate(shell, *more, out="out.png"):
    return shell("obfuscate", "a.png", "--out", out, *NOISE, *more)


def test_both_halves_are_needed(folder, shell):
    for given, missing in (("--c2pa", "--c2pa-key"), ("--c2pa-key", "--c2pa")):
        code, _, err = obfuscate(shell, given, "signer.pem")
        said = f"dpveil: {given} is given without {missing}: give a certificate and its key\n"
        assert (code, err) == (2, said)


def test_a_rerun_keeps_what_is_marked_and_refuses_what_is_not(folder, shell):
    assert obfuscate(shell, *MARK)[0] == 0
    assert "skipped 1" in obfuscate(shell, *MARK)[2]
    assert "skipped 1" in obfuscate(shell)[2]
    assert shell("verify", "out.png")[0] == 0
    assert obfuscate(shell, out="plain.png")[0] == 0
    code, _, err = obfuscate(shell, *MARK, out="plain.png")
    said = "plain.png is a release with these settings, and has no C2PA manifest: leave out --c2pa to keep it"
    assert (code, said in err) == (1, True)


@pytest.mark.parametrize("out", ["out.bmp", "out.tiff"])
def test_formats_are_checked_before_anything_is_drawn(folder, shell, monkeypatch, out):
    monkeypatch.setattr("dpveil.batch.releasing.release_all", None)
    code, _, err = obfuscate(shell, *MARK, out=out)
    assert (code, err.endswith("file gets no C2PA manifest: write png, jpeg or webp\n")) == (4, True)


def test_certificates_are_checked_before_any_photo_is_read(folder, shell, monkeypatch):
    monkeypatch.setattr("dpveil.batch.tasks.plan_tasks", None)
    chain(years=0).write(folder)
    code, _, err = obfuscate(shell, *MARK)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("dpveil: --c2pa signer.pem cannot sign with --c2pa-key: ")


def test_a_copy_is_refused_by_itself_and_does_not_end_the_run(folder, shell):
    """No face is found in either photo, and both may be copied."""
    Image.fromarray(np.full((16, 16, 3), 60, np.uint8)).save(folder / "b.png")
    photos = ("a.png", "b.png", "--out", "outs", "--regions", "faces", "--if-none", "copy")
    code, _, err = shell("obfuscate", *photos, *NOISE, *MARK)
    assert code == 1
    reason = "an unprotected copy gets no C2PA manifest: nothing in it is made: leave --c2pa out"
    assert all(f"{name}.png: {reason}" in err for name in "ab")
    assert list((folder / "outs").iterdir()) == []
