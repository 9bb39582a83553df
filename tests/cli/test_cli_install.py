"""`dpveil install faces`: what is asked of pip, and what pip says, with packages that are made here."""

import hashlib
import io
import subprocess
import sys
import zipfile

import pytest

from dpveil.assets import trained_files
from dpveil.cli import install

NAME, VERSION = "dpveil-test-network", "1.2"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return a folder that is the whole package index, with one package in it that requires another one."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    target = tmp_path / "installed"
    monkeypatch.setattr(install, "PIP", (*install.PIP, "--target", str(target)))
    monkeypatch.syspath_prepend(target)
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    monkeypatch.delenv("PIP_BUILD_CONSTRAINT", raising=False)
    stem, about = NAME.replace("-", "_"), f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"
    with zipfile.ZipFile(folder / f"{stem}-{VERSION}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{stem}/network.onnx", "a network")
        wheel.writestr(f"{stem}-{VERSION}.dist-info/METADATA", f"{about}Requires-Dist: opencv-python\n")
        wheel.writestr(
            f"{stem}-{VERSION}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{stem}-{VERSION}.dist-info/RECORD", "")
    return folder


def listed(monkeypatch, sha256):
    text = f"{NAME}=={VERSION} --hash=sha256:{sha256}\n"
    monkeypatch.setattr(install, "packages", lambda: [install.Package(NAME, VERSION, "a network", text)])


def digest(index):
    return hashlib.sha256(next(index.iterdir()).read_bytes()).hexdigest()


def test_it_says_what_it_installs_and_installs_that_alone(shell, index, monkeypatch):
    listed(monkeypatch, digest(index))
    code, out, err = shell("install", "faces", "--yes")
    assert (code, "still missing" in err) == (0, False)
    assert out.splitlines() == [
        f"From the package index, with pip, into {sys.prefix}:",
        f"  {NAME} {VERSION}: a network",
        "Each is checked by its hash, and comes without the packages that it asks for itself.",
        install.BUILT,
        f"installed {NAME}",
    ]
    assert (index.parent / "installed" / NAME.replace("-", "_") / "network.onnx").read_text() == "a network"


def test_of_one_package_only_the_network_is_unpacked(shell, index, monkeypatch, tmp_path):
    network = tmp_path / "share" / "network.onnx"
    monkeypatch.setattr(install, "UNPACKED", NAME)
    monkeypatch.setattr(trained_files, "CENTERFACE", network)
    monkeypatch.setattr(trained_files, "CENTERFACE_SHA256", hashlib.sha256(b"a network").hexdigest())
    listed(monkeypatch, digest(index))
    assert shell("install", "faces", "--yes")[0] == 0
    assert [path.name for path in network.parent.iterdir()] == ["network.onnx"]
    assert not (tmp_path / "installed").exists()
    network.write_text("another one")
    assert not install.packages()[0].is_installed
    assert shell("install", "faces", "--yes")[0] == 0
    assert network.read_text() == "a network"


def test_another_file_than_the_listed_one_is_refused(shell, index, monkeypatch):
    listed(monkeypatch, "0" * 64)
    code, _, err = shell("install", "faces", "--yes")
    assert (code, err.count("\n")) == (1, 1)
    assert "DO NOT MATCH THE HASHES" in err
    assert not (index.parent / "installed").exists()


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [("n\n", 1, "nothing was installed"), ("\n", 1, "nothing was installed"), ("", 2, "add --yes")],
)
def test_without_a_yes_pip_is_not_called(shell, monkeypatch, answer, code, words):
    listed(monkeypatch, "0" * 64)
    monkeypatch.setattr(subprocess, "run", pytest.fail)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    got, _, err = shell("install", "faces")
    assert (got, words in err) == (code, True)


def test_what_is_there_is_left_alone_and_missing_files_are_named(shell, monkeypatch):
    monkeypatch.setattr(install.Package, "is_installed", True)
    monkeypatch.setattr(subprocess, "run", pytest.fail)
    monkeypatch.setattr(trained_files, "PACKAGE", "no_such_package_at_all")
    code, out, err = shell("install", "faces")
    assert (code, out) == (0, "everything that finds faces is installed\n")
    assert "still missing: the default gallery of faces is not installed: pip install packages" in err
