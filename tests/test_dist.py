"""What is handed out: the sdist and the wheel, each in an empty environment outside the project."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from skimage import data

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ dpveil (obfuscate (?:.|\\\n)*?)(?<!\\)\n", README, re.MULTILINE)
PIXELS = "obfuscate portrait.jpg --out noisy.png --method dp-pix --epsilon 2 --block 16 --neighbourhood 16"
INSTALL = re.search(r"^python3 -m pip install (.*)\ndpveil (install faces)$", README, re.MULTILINE)
"""What a reader of the README types: dpveil, then what finds faces."""
LEFT_OUT = ("packages/", "demo/", "site/", ".venv")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the sdist and the wheel of `make dist`."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["make", "--no-print-directory", "dist", f"DIST={folder}"], cwd=ROOT, check=True)
    [sdist], [wheel] = folder.glob("dpveil-*.tar.gz"), folder.glob("dpveil-*.whl")
    return {"sdist": sdist, "wheel": wheel}


def test_they_hold_what_belongs_to_them(built):
    """The wheel is the package and nothing else; the sdist leaves out what is on other terms."""
    package = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "dpveil").rglob("*.py")}
    data_files = {"dpveil/py.typed", "dpveil/core/certificate.schema.json"}
    data_files |= {"dpveil/assets/requirements-faces.txt"}
    inside = {name for name in zipfile.ZipFile(built["wheel"]).namelist() if ".dist-info/" not in name}
    assert package | data_files <= inside
    assert all(name.startswith("dpveil/") and "__pycache__" not in name for name in inside)
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "src/dpveil/__init__.py"} <= names
    assert not [name for name in names if name.startswith(LEFT_OUT)]


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_in_an_empty_environment_it_releases_verifies_explains_and_audits(built, kind, tmp_path):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
    env |= {f"PIP_{name}": str(ROOT / "constraints.txt") for name in ("CONSTRAINT", "BUILD_CONSTRAINT")}

    def run(*command):
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    venv.create(tmp_path / "env", with_pip=True)
    bin_ = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    install = [bin_ / "python", "-m", "pip", "install", "--quiet"]
    run(*install, str(built[kind]))
    home = run(bin_ / "python", "-c", "import dpveil; print(dpveil.__file__)")
    assert Path(home).is_relative_to(tmp_path / "env")
    Image.fromarray(data.astronaut()).save(tmp_path / "portrait.jpg")
    run(bin_ / "dpveil", *PIXELS.split(), "--regions", "whole")
    run(bin_ / "dpveil", "verify", "noisy.png")
    asked = ["--method", "dp-pix", "--epsilon", "1", "--block", "16", "--neighbourhood", "256"]
    told = run(bin_ / "dpveil", "explain", *asked, "--size", "128x128", "--json")
    assert json.loads(told)["guarantee"]["epsilon"] == 1
    run(*install, str(ROOT / "packages/dpveil-audit"))
    assert "dp-pix" in run(bin_ / "dpveil", "audit", "dp-pix")
    run(*install, "--no-deps", str(ROOT / "packages/dpveil-train"))  # torch is not needed to say what it does
    assert "stylegan" in run(bin_ / "dpveil", "train", "--help")
    if kind == "wheel":
        run(*install, INSTALL[1].strip("'").replace(".", str(built[kind]), 1))
        run(bin_ / "dpveil", *INSTALL[2].split(), "--yes")
        for command in COMMANDS:
            run(bin_ / "dpveil", *command.replace("\\\n", " ").split())
        run(bin_ / "dpveil", "verify", "private.jpg", "--at-least", "strong")
