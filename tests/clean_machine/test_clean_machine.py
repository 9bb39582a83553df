"""Commands as they run elsewhere: without a home, read-only, in ASCII, in a container, on a new database."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from packaging.requirements import Requirement
from PIL import Image
from run_dockerfile import steps

ROOT = Path(__file__).parents[2]
DPVEIL = str(Path(sys.executable).with_name("dpveil"))
BARE = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
"""An environment without a home, a locale and folders for caches."""
PIXELS = ("--method", "dp-pix", "--epsilon", "2", "--block", "8", "--regions", "whole")
NOBODY = pwd.getpwnam("nobody").pw_uid
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user and mounts")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can write to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def run(*words: str, folder: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, cwd=folder, check=False, capture_output=True, **{"env": BARE, **more})


def as_user(number: int) -> tuple[str, ...]:
    """Return the words before a command that another user runs, who can write nowhere.

    It may read everything, as this Python may be in the home of root.
    """
    may = "+dac_read_search"
    return (
        *("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"),
        *(f"--inh-caps={may}", f"--ambient-caps={may}"),
    )


def portrait(path: Path) -> None:
    from skimage import data

    Image.fromarray(data.astronaut()[:300, 80:380]).save(path)


def small(path: Path) -> Path:
    Image.fromarray(np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)).save(path)
    return path


@needs_root
def test_a_user_without_a_home_releases_a_portrait(folder: Path) -> None:
    portrait(folder / "a.png")
    done = run(*as_user(NOBODY), DPVEIL, "obfuscate", "a.png", "--out", "b.png", folder=folder)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} == {"a.png", "b.png", "b.png.certificate.json"}


@needs_root
def test_nothing_is_paid_for_what_cannot_be_written(folder: Path) -> None:
    small(folder / "a.png")
    (folder / "closed").mkdir(mode=0o755)
    ledger = ("--ledger", f"sqlite:///{folder}/budget.db")
    nobody = as_user(NOBODY)
    assert (
        run(*nobody, DPVEIL, "ledger", "limit", "a", "--epsilon", "3", *ledger, folder=folder).returncode == 0
    )
    paid = (*PIXELS, *ledger, "--subject", "a")
    done = run(*nobody, DPVEIL, "obfuscate", "a.png", "--out", "closed/b.png", *paid, folder=folder)
    assert done.returncode == 4, done.stderr
    shown = run(*nobody, DPVEIL, "ledger", "show", "a", "--json", *ledger, folder=folder)
    assert json.loads(shown.stdout)["left"] == {"epsilon": 3}


@needs_root
def test_a_read_only_installation_releases_a_portrait(folder: Path) -> None:
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


@needs_root
def test_the_containers_default_command_serves_a_client_that_keeps_its_connection(folder: Path) -> None:
    told = dict(steps((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1])
    words = json.loads(told["ENTRYPOINT"]) + json.loads(told["CMD"])
    words = [word.replace("/data", str(folder)) for word in words]
    pairs = (pair.partition("=")[::2] for pair in shlex.split(told["ENV"]))
    given = {name: value.replace("/tmp", str(folder)) for name, value in pairs if name != "PATH"}  # noqa: S108
    command = [*as_user(int(told["USER"])), *words, "--port", "0"]
    with subprocess.Popen(command, env=BARE | given, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        said = ""
        while (port := re.search(r"http://127\.0\.0\.1:([0-9]+)$", said)) is None:
            line = service.stderr.readline()
            assert line, said
            said += line
        try:
            check = json.loads(told["HEALTHCHECK"].partition("CMD ")[2])
            healthy = [word.replace(f":{told['EXPOSE']}/", f":{port[1]}/") for word in check]
            assert run(*healthy, folder=folder).returncode == 0
            with httpx.Client(base_url=f"http://127.0.0.1:{port[1]}", timeout=60) as client:
                contents = small(folder / "a.png").read_bytes()
                settings = {"method": "dp-pix", "epsilon": 2, "block": 8, "regions": "whole"}
                sent = {"photo": contents, "settings": (None, json.dumps(settings))}
                answers = [client.post("/v1/releases", files=sent) for _ in range(2)]
                streams = {id(answer.extensions["network_stream"]) for answer in answers}
        finally:
            service.terminate()
            service.communicate()
    assert ({answer.status_code for answer in answers}, len(streams)) == ({201}, 1)
    assert service.returncode == 0


def test_a_service_whose_workers_cannot_start_ends_with_the_reason(folder: Path) -> None:
    (folder / "numba.py").write_text("raise OSError('libllvmlite.so is damaged')")
    command = (DPVEIL, "serve", "--port", "0")
    done = run(*command, folder=folder, env={**BARE, "PYTHONPATH": str(folder)}, timeout=300)
    assert done.returncode == 4
    assert "libllvmlite.so is damaged" in done.stderr.decode().splitlines()[-1]


def test_what_install_faces_brings_fits_together() -> None:
    for distribution in distributions():
        for needed in map(Requirement, distribution.requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert needed.specifier.contains(version(needed.name), prereleases=True), distribution.name
