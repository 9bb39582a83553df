"""Commands as they run elsewhere: without a home, read-only, in ASCII, in a container, on a new database."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
DPVEIL = str(Path(sys.executable).with_name("dpveil"))
BARE = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
"""An environment without a home, a locale and folders for caches."""
PIXELS = ("--method", "dp-pix", "--epsilon", "2", "--block", "8", "--regions", "whole")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user and mounts")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can write to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def run(*words: str, folder: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, cwd=folder, check=False, capture_output=True, **{"env": BARE, **more})


def as_nobody() -> tuple[str, ...]:
    """Return the words before a command that is run by a user without a home, who can write nowhere.

    It may read everything, as this Python may be in the home of root.
    """
    user = pwd.getpwnam("nobody")
    may = "+dac_read_search"
    return (
        *("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"),
        *(f"--inh-caps={may}", f"--ambient-caps={may}"),
    )


def portrait(path: Path) -> Path:
    from skimage import data

    Image.fromarray(data.astronaut()[:300, 80:380]).save(path)
    path.chmod(0o644)
    return path


def small(path: Path) -> Path:
    Image.fromarray(np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)).save(path)
    path.chmod(0o644)
    return path


@needs_root
def test_a_user_without_a_home_releases_a_portrait(folder: Path) -> None:
    done = run(
        *as_nobody(), DPVEIL, "obfuscate", str(portrait(folder / "a.png")), "--out", "b.png", folder=folder
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} == {"a.png", "b.png", "b.png.certificate.json"}


@needs_root
def test_a_read_only_installation_releases_a_portrait(folder: Path) -> None:
    """By root, who can write everywhere else; `/` has no home to fall back to."""
    portrait(folder / "a.png")
    places = [shlex.quote(place) for place in {str(ROOT), sys.prefix}]
    sealed = " && ".join(
        f"mount --bind {place} {place} && mount -o remount,bind,ro {place}" for place in places
    )
    command = f"{sealed} && exec {shlex.quote(DPVEIL)} obfuscate a.png --out b.png"
    done = run("unshare", "--mount", "sh", "-c", command, folder=folder, env={**BARE, "HOME": "/proc"})
    assert done.returncode == 0, done.stderr
    assert (folder / "b.png").is_file()


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]
)
def test_paths_with_blanks_and_accents_in_a_locale_of_ascii(folder: Path, locale: Mapping[str, str]) -> None:
    place, bare = folder / "Fotos der Möwe", {**BARE, **locale, "HOME": str(folder)}
    place.mkdir()
    small(place / "erste Möwe.png")
    done = run(DPVEIL, "obfuscate", str(place), "--out", "frei gegeben", *PIXELS, folder=folder, env=bare)
    assert done.returncode == 0, done.stderr
    released = folder / "frei gegeben" / "erste Möwe.png"
    found = run(DPVEIL, "verify", str(released), "--json", folder=folder, env=bare)
    assert found.returncode == 0, found.stderr
    json.loads(found.stdout)


def test_a_limit_on_a_new_postgresql_database_is_set_at_once(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for a folder of the desktop when it is imported
        pgserver = pytest.importorskip("pgserver", reason="needs x86_64 Linux")
    with pgserver.get_server(folder / "data") as server:
        server.psql("CREATE DATABASE fresh")
        ledger = ("--ledger", server.get_uri(database="fresh"))
        done = run(DPVEIL, "ledger", "limit", "album-7", "--epsilon", "3", *ledger, folder=folder)
        assert done.returncode == 0, done.stderr
        paid = run(DPVEIL, "ledger", "show", "album-7", "--json", *ledger, folder=folder)
    assert json.loads(paid.stdout)["left"] == {"epsilon": 3}
