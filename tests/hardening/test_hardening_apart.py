"""Networks that run in a process of their own: whatever that does, this one goes on with the same results."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzz_opencv import outcome

from dpveil.assets import apart, opencv_child
from dpveil.assets.apart import Apart
from dpveil.core.environment import PASSED_ON
from dpveil.errors import ModelError
from tiny_onnx import yunet

IMAGE = np.zeros((64, 64, 3), np.uint8)
IMAGE[40:48, 32:40, 2] = 204
SETTINGS = np.array([0.5, 0.3])
DEADLY = 148
"""The index of a file with which OpenCV 4.13 ends the process that reads it."""


def test_it_gives_what_this_process_would_and_outlives_its_child() -> None:
    network = Apart("yunet", yunet())
    here = opencv_child.detect(np.frombuffer(yunet(), np.uint8), IMAGE, SETTINGS)
    assert len(here) == 1
    assert (network(IMAGE, SETTINGS) == here).all()
    [(_, child)] = network._idle
    assert (pickle.loads(pickle.dumps(network)).contents, child.poll()) == (yunet(), None)  # noqa: S301
    network(IMAGE, SETTINGS)
    assert [one for _, one in network._idle] == [child]
    child.kill()
    with pytest.raises(ModelError, match="ends the process"):
        network(IMAGE, SETTINGS)
    assert network._idle == []
    assert (network(IMAGE, SETTINGS) == here).all()
    [(_, child)] = network._idle
    network._idle[:] = [(-1, child)]  # as after a fork: it is its parent's
    assert (network(IMAGE, SETTINGS) == here).all()
    [(_, other)] = network._idle
    assert other is not child
    del network
    assert other.returncode is not None
    apart._end(child)


def test_a_file_that_ends_its_reader_is_refused(tmp_path: Path) -> None:
    """In one line, and this process goes on; the fuzzer counts how often it happens."""
    assert outcome(DEADLY, tmp_path / "net.onnx").startswith("refused")


@pytest.mark.parametrize(
    "does",
    [
        "print('no message')",
        "print('[[\"|u1\", [9, 9]]]\\nfew')",
        "print('[[\"<f8\", [1000000, 1000000]]]')",
        "print('[[\"|O\", [1]]]')",
        "print('[]')",
        "print('{}')",
        "import time; time.sleep(600)",
    ],
)
def test_no_answer_of_a_child_is_trusted(monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    def started(job: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", does], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    monkeypatch.setattr(apart, "_started", started)
    monkeypatch.setattr(apart, "LONGEST", 0.3 if "sleep" in does else 60)
    with pytest.raises(ModelError, match="ends the process"):
        Apart("yunet", yunet())(IMAGE, SETTINGS)


def test_a_process_that_cannot_be_started_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ModelError, match="needs a process of its own: No such file"):
        Apart("yunet", yunet())(IMAGE, SETTINGS)


def test_outputs_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the one that makes them, and by the one that gets them, which reads none of them."""
    stream = io.BytesIO(b'[["|u1", [9]], ["|u1", [9]]]\n' + bytes(18))
    with pytest.raises(ValueError, match="no message"):
        opencv_child.read(stream, 17)
    assert len(stream.read()) == 18
    asked, answers = io.BytesIO(), io.BytesIO()
    for message in ([np.frombuffer(yunet(), np.uint8)], [np.array(1.0), IMAGE, SETTINGS]):
        opencv_child.write(asked, message)
    asked.seek(0)
    network = Apart("yunet", yunet())
    monkeypatch.setattr(opencv_child, "MOST_FOUND", 15 * 8 - 1)
    with pytest.raises(ModelError, match="ends the process"):
        network(IMAGE, SETTINGS)
    opencv_child.serve("yunet", asked, answers)
    assert answers.getvalue() == b"null\n"


def test_the_process_gets_no_secrets_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}

    def started(*_: object, env: dict[str, str], **__: object) -> None:
        given.update(env)
        raise OSError

    for name in ("DPVEIL_PASSPHRASE", "AWS_SECRET_ACCESS_KEY", "DPVEIL_DATABASE"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setattr(subprocess, "Popen", started)
    with pytest.raises(ModelError):
        Apart("yunet", yunet())(IMAGE, SETTINGS)
    assert "PATH" in given
    assert given.keys() <= PASSED_ON | {"PYTHONPATH"}


def test_an_interruption_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Apart("yunet", yunet())
    network(IMAGE, SETTINGS)
    [(_, child)] = network._idle

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(opencv_child, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        network(IMAGE, SETTINGS)
    assert child.returncode is not None
    assert network._idle == []


def test_a_child_answers_until_nothing_is_asked() -> None:
    asked, answers = io.BytesIO(), io.BytesIO()
    opencv_child.write(asked, [np.frombuffer(yunet(), np.uint8)])
    for image in (IMAGE, np.zeros((0, 64, 3), np.uint8), 0 * IMAGE):
        opencv_child.write(asked, [np.array(1.0), image, SETTINGS])
    asked.seek(0)
    opencv_child.serve("yunet", asked, answers)
    answers.seek(0)
    found = [opencv_child.read(answers) for _ in range(3)]
    assert [None if one is None else one[0].shape for one in found] == [(1, 15), None, (0, 15)]
    with pytest.raises(EOFError):
        opencv_child.read(answers)
