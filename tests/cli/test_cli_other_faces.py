"""`dpveil obfuscate --method latent`: photos in, other faces out, and what is refused in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from skimage import data

from dpveil.assets import Card, save
from dpveil.cli import run
from dpveil_train import train_pca

pytest.importorskip("dlib")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small codec of smooth random pictures."""
    coarse = np.random.default_rng(5).uniform(0, 255, (60, 4, 4, 3))
    crops = np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2).astype(np.uint8)
    card = Card("pca", data="made", terms="none", seed=1)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save(train_pca(lambda: iter([crops]), card=card, seed=1, length=8), path)
    return path


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, model: Path) -> Any:
    """A command line in a folder with `astronaut.png`, `model.safetensors` and nothing else."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(model, "model.safetensors")
    Image.fromarray(data.astronaut()).save("astronaut.png")

    def said(*arguments: str) -> tuple[int, Any, str]:
        code = run(["obfuscate", *arguments, "--method", "latent", "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out), captured.err

    return said


GOOD = ("--epsilon", "50", "--codec", "model.safetensors")


def test_a_photo_is_released_with_another_face_and_verifies(call: Any, capsys: Any) -> None:
    code, document, err = call("astronaut.png", "--out", "out.png", *GOOD)
    assert code == 0
    assert [entry["output"] for entry in document["released"]] == ["out.png"]
    assert "PRACTICALLY NO PROMISE" in err
    certificate = json.loads(Path("out.png.certificate.json").read_text(encoding="utf-8"))
    assert certificate["request"] == ["faces margin=0"]
    assert certificate["guarantees"][0]["relation"] == {"name": "latent-cell"}
    assert certificate["parameters"]["codec"].startswith("pca 8 sha256:")
    Path("model.safetensors").unlink()
    assert run(["verify", "out.png"]) == 0
    assert "consistent" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--epsilon", "50", "--codec", "gone.safetensors"), 4, "no codec gone.safetensors"),
        (("--epsilon", "50", "--codec", "cut.safetensors"), 4, "damaged"),
        (("--codec", "model.safetensors"), 2, "epsilon"),
        ((*GOOD, "--guarantee", "metric", "--metric", "miles"), 2, "miles"),
        ((*GOOD, "--rho", "1"), 2, "rho"),
        ((*GOOD, "--regions", "faces", "--margin", "0.5"), 2, "margin"),
        ((*GOOD, "--regions", "400,400,80,90", "--placing", "landmarks"), 1, "landmarks"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    call: Any, arguments: tuple[str, ...], code: int, words: str
) -> None:
    whole = Path("model.safetensors").read_bytes()
    Path("cut.safetensors").write_bytes(whole[: len(whole) // 2])
    Path("altered.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    got, document, err = call("astronaut.png", "--out", "out.png", *arguments)
    text = json.dumps(document) + err
    assert got == code
    assert words in text
    assert "Traceback" not in text
    assert not Path("out.png").exists()
    assert not Path("out.png.certificate.json").exists()


def test_what_does_not_fit_the_model_is_refused_before_a_photo_is_read(call: Any) -> None:
    code, document, _ = call(
        "nowhere.png", "--out", "o.png", "--codec", "model.safetensors", "--epsilon", "1e-9",
        "--mechanism", "pca-basis", "--metric", "leading-mean",
    )  # fmt: skip
    assert code == 2
    assert "affords no component" in document["error"]
