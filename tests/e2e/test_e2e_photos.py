"""As a new user would: folders of real photos, whole and boxes, and then `verify` on all of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.cli import run

COUNT = 200


@pytest.fixture(scope="module")
def photos(shared, tmp_path_factory):
    """200 real photos in the folders of their people."""
    source = shared / "lfw10_128"
    if not source.is_dir():
        pytest.skip("needs ../shared/data/lfw10_128, which is not part of the project")
    folder = tmp_path_factory.mktemp("photos")
    for path in sorted(source.glob("*/*.jpg"))[::21][:COUNT]:
        target = folder / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    return folder


WHOLE = pytest.param(["whole"], marks=pytest.mark.slow)


@pytest.mark.parametrize("regions", [WHOLE, ["20,24,64,72", "60,60,40,40"]], ids=["whole", "boxes"])
def test_two_hundred_real_photos(photos, tmp_path, capsys, regions):
    chosen = [word for spec in regions for word in ("--regions", spec)]
    settings = ["--method", "dp-pix", "--epsilon", "2", "--block", "16", "--neighbourhood", "256", *chosen]
    command = ["obfuscate", str(photos), "--out", str(tmp_path / "out"), *settings, "--json"]
    assert run(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["released"]) == COUNT
    for entry in report["released"]:
        assert (
            Path(entry["output"]).relative_to(tmp_path / "out").parent.name
            == Path(entry["input"]).parent.name
        )
    assert run(["verify", str(tmp_path / "out"), "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert len(verified) == COUNT
    assert all(entry["publishable"] for entry in verified)
    assert run(command) == 0
    assert len(json.loads(capsys.readouterr().out)["skipped"]) == COUNT


def test_boxes_change_their_surroundings_in_nothing(photos, tmp_path):
    name = next(photos.glob("*/*.jpg"))
    before = np.asarray(Image.open(name).convert("RGB"))
    arguments = ["--method", "dp-pix", "--epsilon", "1", "--block", "8", "--neighbourhood", "1"]
    assert (
        run(
            ["obfuscate", str(name), "--out", str(tmp_path / "a.png"), *arguments, "--regions", "32,32,32,32"]
        )
        == 0
    )
    after = np.asarray(Image.open(tmp_path / "a.png"))
    [x, y, w, h] = json.loads((tmp_path / "a.png.certificate.json").read_text(encoding="utf-8"))["regions"][
        0
    ]["box"]
    assert (x, y, w, h) <= (32, 32, 32, 32)
    assert (w, h) >= (32, 32)
    outside = np.ones(before.shape[:2], bool)
    outside[y : y + h, x : x + w] = False
    assert (before[outside] == after[outside]).all()
    assert (before[~outside] != after[~outside]).any()


def test_twelve_megapixels(photos, tmp_path):
    small = [np.asarray(Image.open(p).convert("RGB")) for p in sorted(photos.glob("*/*.jpg"))[:4]]
    tile = np.concatenate([np.concatenate(small[:2], axis=1), np.concatenate(small[2:], axis=1)])
    large = np.tile(tile, (12, 16, 1))[:3000, :4000]
    Image.fromarray(large).save(tmp_path / "large.jpg", quality=90)
    arguments = ["--method", "dp-pix", "--epsilon", "20", "--block", "16", "--neighbourhood", "256"]
    assert run(["obfuscate", str(tmp_path / "large.jpg"), "--out", str(tmp_path / "out"), *arguments]) == 0
    assert run(["verify", str(tmp_path / "out")]) == 0
    with Image.open(tmp_path / "out" / "large.jpg") as image:
        assert image.size == (4000, 3000)
