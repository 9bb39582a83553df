"""`dpveil serve` in processes of its own: killed, stopped, reached from elsewhere, and started unsafely."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import service_client
from kill_service import CLIENTS, EACH, kills
from service_client import photo, release, server, upload, workers

from dpveil.cli import run
from dpveil.ledger import Ledger, Limit
from dpveil.processes import ONE_THREAD, PASSED_ON


def ledger(folder: Path, epsilon: int) -> str:
    url = f"sqlite:///{folder}/budget.db"
    with Ledger(url, create=True) as made:
        made.set_limit("album", Limit(kind="pure", epsilon=epsilon))
    return url


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_signal_stops_it_with_what_was_begun(tmp_path: Path, signals: list[signal.Signals]) -> None:
    """Also an impatient Ctrl-C, which comes once nothing is listened to any more."""
    with server("--ledger", ledger(tmp_path, 10), fake=True) as (process, client):
        files = upload(b"x", release(subject="album", draw="doze"))
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(client.post("/v1/releases", files=files)))
        thread.start()
        while "dpveil_busy 1.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        time.sleep(0.1)
        for one in signals:
            process.send_signal(one)
            with suppress(OSError):
                while socket.create_connection(("127.0.0.1", client.base_url.port or 0)).close() is None:
                    time.sleep(0.01)
        thread.join()
        *logged, last = [line.decode() for line in process.stderr]  # type: ignore[union-attr]
        assert process.wait(60) == 0
    assert answers[0].status_code == 201
    assert last.startswith("dpveil has stopped; ")
    lines = [json.loads(line) for line in logged]
    assert {line["event"] for line in lines} == {"answered"}
    text = json.dumps(lines)
    for private in ("127.0.0.1", "album", "secret name", answers[0].json()["id"]):
        assert private not in text


def test_nothing_is_written_to_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process may write a file: an upload of 3 MB is released all the same."""

    def no_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))

    monkeypatch.setenv("DPVEIL_PLAIN", "1")  # compiled code would be cached in files
    with server(preexec_fn=no_files) as (process, client):
        contents = photo(1000, 1000)
        assert len(contents) > 3_000_000
        made = client.post("/v1/releases", files=upload(contents))
        assert made.status_code == 201, made.text
        assert len(client.get(made.json()["image_url"]).content) > 2_000_000
        assert "dpveil_upload_bytes 0.0" in client.get("/metrics").text
        limits = Path(f"/proc/{workers(process)[0]}/limits").read_text(encoding="utf-8")
        assert "Max core file size        0 " in limits
        bounded = next(line for line in limits.splitlines() if line.startswith("Max address space"))
        assert bounded.split()[3] == str(4 << 30)


def test_workers_inherit_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSWORD", "DPVEIL_KEY_PASSPHRASE", "DATABASE_URL", "LD_PRELOADED"):
        monkeypatch.setenv(name, "a secret")
    with server(fake=True) as (process, client):
        assert client.get("/readyz").status_code == 200
        environment = Path(f"/proc/{workers(process)[0]}/environ").read_bytes()
    given = dict(line.decode().split("=", 1) for line in environment.rstrip(b"\0").split(b"\0"))
    assert b"a secret" not in environment
    assert given["OMP_NUM_THREADS"] == "1"
    assert given["PATH"] == os.environ["PATH"]
    assert given.keys() <= PASSED_ON | ONE_THREAD.keys() | {"PYTHONPATH"}


def other_secret(key: str) -> str:
    """Return a key of the same number with another secret."""
    return key[:-1] + ("B" if key[-1] == "A" else "A")


def test_keys_are_needed_where_they_are_given(tmp_path: Path, capsys: Any) -> None:
    keys = tmp_path / "keys.json"
    secrets = []
    for name, subject, rate in (("shop", "album", "60"), ("slow", "other", "2")):
        assert run(["api-key", "new", name, "--keys", str(keys), "--subject", subject, "--rate", rate]) == 0
        secrets.append(capsys.readouterr().out.strip())
    shop, slow = ({"Authorization": f"Bearer {key}"} for key in secrets)
    arguments = ("--host", "0.0.0.0", "--hostname", "photos.example", "--keys", str(keys))  # noqa: S104
    with server(*arguments, "--ledger", ledger(tmp_path, 100), fake=True) as (_, client):
        files = upload(b"x", release())
        for header, words in (
            ({}, "an API key is needed here"),
            ({"Authorization": "Basic x"}, "an API key is needed here"),
            ({"Authorization": "Bearer"}, "an API key is needed here"),
            ({"Authorization": f"Bearer {secrets[0][:-1]}"}, "this is no API key"),
            (
                {"Authorization": f"Bearer {other_secret(secrets[0])}"},
                "this API key is not known here, or no longer",
            ),
        ):
            refused = client.post("/v1/releases", files=files, headers=header)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert refused.json()["title"] == words
            assert "ask whoever runs this service for a key" in refused.json()["hint"]
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz", headers={"Host": "photos.example"}).status_code == 200
        made = client.post("/v1/releases", files=files, headers=shop)
        assert made.status_code == 201, made.text
        assert client.get(made.json()["image_url"], headers=slow).status_code == 404
        assert client.get(made.json()["image_url"], headers=shop).status_code == 200
        for foreign in ("other", "albums", "alb"):
            other = client.post("/v1/releases", files=upload(b"x", release(subject=foreign)), headers=shop)
            assert (other.status_code, other.json()["type"]) == (403, "urn:dpveil:error:Forbidden")
        answers = [client.get("/v1/methods", headers=slow) for _ in range(2)]
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert run(["api-key", "remove", "shop", "--keys", str(keys)]) == 0
        assert client.get("/v1/methods", headers=shop).status_code == 401
        keys.write_text("{", encoding="utf-8")
        assert client.get("/v1/methods", headers=slow).status_code == 503


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--host", "0.0.0.0"], 2, "is for this machine alone: give --keys"),  # noqa: S104
        (["--host", "::", "--keys", "KEYS"], 2, "is for this machine alone: give --ledger"),
        (["--host", "0.0.0.0", "--keys", "KEYS", "--ledger", "EMPTY"], 2, "alone: give --ledger"),  # noqa: S104
        (["--host", "0.0.0.0", "--keys", "KEYS", "--ledger", "URL"], 2, "name them by --hostname"),  # noqa: S104
        (["--keys", "missing.json"], 2, "there is no file of keys missing.json"),
        (["--keys", "folder"], 2, "folder cannot be read (Is a directory): make one with dpveil api-key new"),
        (["--results", "folder"], 4, "the results folder cannot be kept: Is a directory"),
        (["--sign", "keys.json"], 2, "--sign keys.json is not a private key"),
        (["--keys", "odd.json"], 2, "is no file of keys"),
        (["--ledger", "sqlite:///missing.db"], 4, "missing.db"),
        (["--ledger", "URL", "--results", "budget.db"], 4, "the results budget.db cannot be kept"),
        (["--results", "odd.json"], 4, "the results odd.json cannot be kept"),
        (["--results", "nowhere/results.db"], 4, "No such file or directory"),
        (["--port", "70000"], 2, "--port"),
        (["--host", "256.1.1.1"], 2, "alone"),
    ],
)
def test_what_is_not_safe_is_not_started(
    arguments: list[str], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger(tmp_path, 1)
    with Ledger("sqlite:///empty.db", create=True):
        pass
    assert run(["api-key", "new", "shop", "--keys", "keys.json", "--subject", "album"]) == 0
    Path("odd.json").write_text('{"schema": "dpveil.keys/1", "keys": [{}]}', encoding="utf-8")
    Path("odd.json").chmod(0o600)
    Path("folder").mkdir()
    capsys.readouterr()
    real = {"KEYS": "keys.json", "URL": "sqlite:///budget.db", "EMPTY": "sqlite:///empty.db"}
    assert run(["serve", *(real.get(word, word) for word in arguments)]) == code
    told = capsys.readouterr().err.removeprefix("starting the service, which takes a few seconds\n")
    assert words in told
    assert told.count("\n") == 1


def test_a_port_that_is_taken_ends_the_start(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil.service.workers.TARGET", service_client.FAKE)
    host = "localhost"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--host", host, "--port", str(port)]) == 4
    _, line = capsys.readouterr().err.splitlines()  # after that it starts
    assert f"port {port} " in line
    assert "--port" in line


def test_passwords_of_ledgers_are_not_shown() -> None:
    from dpveil.cli.ledger import place_of

    assert place_of("postgresql://clerk:secret@db.example/budgets") == "postgresql://db.example/budgets"
    assert place_of("SQLite:///budget.db") == "SQLite:///budget.db"


# Kills of workers and server while clients retry by key: `kill_service.py` makes more.


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_services_make_one_release_for_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(service_client, "REAL", "noting_worker:serve")
    campaign, figures = kills(rounds, f"sqlite:///{tmp_path}/budget.db", tmp_path, seed=5)
    assert not campaign.findings, "\n".join(campaign.findings)
    assert figures["keys"] == figures["files"] == rounds * CLIENTS * EACH
    assert rounds < 10 or campaign.answers["RemoteProtocolError"] + campaign.answers["ReadError"] > 0


# The Dockerfile, where no Docker is at hand: what it copies is there, and what it runs is what we have.


ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_its_steps_make_a_service_that_runs_read_only_and_not_as_root() -> None:
    overlays = Path("/proc/filesystems")
    if os.geteuid() or not overlays.exists() or "\toverlay\n" not in overlays.read_text(encoding="utf-8"):
        pytest.skip("needs root and overlay file systems")
    command = [sys.executable, str(Path(__file__).parent / "run_dockerfile.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert done.stdout.endswith("built, run and asked\n")
