"""Processes of their own: limits, deaths with their causes, interruptions, and answers that are none."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpveil import processes
from dpveil.processes import LENGTHS, MOST_JSON, PASSED_ON, Answering, Channel, Child, Ended, Pool, answer

HERE = "test_processes:serve"


# What the children of these tests do


def serve(channel: Channel) -> None:
    answer(channel, prepared)


def prepared(given: Any, *arrays: np.ndarray) -> Answering:
    if given == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)

    def does(asked: str, *more: np.ndarray) -> tuple[Any, ...]:
        if asked == "hang":
            signal.setitimer(signal.ITIMER_REAL, 0)
            time.sleep(600)
        if asked == "alarm":
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            time.sleep(600)
        if asked == "memory":
            return "filled", np.ones(1 << 31, np.uint8)
        if asked == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if asked == "exit":
            os._exit(3)
        if asked == "raise":
            raise KeyError("secret")
        if asked == "number":
            return (float("nan"),)
        if asked == "object":
            return 1, np.array([object()])
        if asked in ("print", "junk"):
            os.write(1, b"no message")
            print("no message")
        if asked == "environment":
            return (sorted(os.environ),)
        return [os.getpid(), given, sum(int(one.sum()) for one in arrays)], *more

    return does


def junk(channel: Channel, contents: str) -> None:
    channel.receive()
    channel.writes.write(bytes.fromhex(contents))
    channel.writes.flush()
    time.sleep(1)


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parent)])
    monkeypatch.setattr(processes, "subprocess", subprocess)  # no forks of one process: see `forked_children`


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(HERE, ("first", np.arange(4)), memory=1 << 30, seconds=20)
    yield made
    made.end()


def test_questions_get_answers_and_children_wait_for_more(pool: Pool) -> None:
    given = [np.arange(6, dtype=kind).reshape(2, 3) for kind in processes.TYPES if kind != "|b1"]
    given += [np.array(2.5), np.zeros((0, 3), np.uint8), np.array([True, False])]
    told, arrays = pool.ask("say", *given, b"bytes")
    assert told[1:] == ["first", 6]
    for one, other in zip([*given, np.frombuffer(b"bytes", np.uint8)], arrays, strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert pool.ask("print")[0] == told
    other = pickle.loads(pickle.dumps(pool))  # noqa: S301
    assert other.ask("say")[0][1:] == told[1:]
    other.end()
    [(_, child)] = pool._idle
    pool._idle[:] = [(-1, child)]  # as after a fork: they are another's
    assert pool.ask("say")[0][0] != told[0]
    child.end()


@pytest.mark.parametrize(
    ("asked", "why", "detail"),
    [
        ("memory", "memory", "Error"),
        ("die", "signal", "SIGSEGV"),
        ("exit", "crash", "exit 3"),
        ("alarm", "time", "SIGALRM"),
        ("raise", "crash", "KeyError"),
        ("number", "crash", "ValueError"),
        ("object", "crash", "ValueError"),
    ],
)
def test_what_ended_a_child_is_told_and_the_next_question_is_answered(
    pool: Pool, asked: str, why: str, detail: str
) -> None:
    with pytest.raises(Ended) as caught:
        pool.ask(asked)
    assert caught.value.why == why
    assert detail in caught.value.detail
    assert "secret" not in str(caught.value)
    assert pool.deaths == 1
    assert pool.ask("say")[0][1] == "first"


def test_a_child_that_hangs_is_ended_in_time() -> None:
    started = time.monotonic()
    with pytest.raises(Ended, match="time"):
        Pool(HERE, memory=1 << 30, seconds=0.5).ask("hang")
    assert time.monotonic() - started < 5


def test_one_that_dies_before_any_question_or_cannot_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Ended, match="SIGSEGV"):
        Pool(HERE, ("dies",), memory=1 << 30, seconds=9).ask("say")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Ended, match="start No such file"):
        Pool(HERE, memory=1 << 30, seconds=9).ask("say")


def message(head: object, contents: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), len(contents)) + text + contents


DEEP = b"[" * 20_000
JUNK = {
    "nothing": b"",
    "words": b"no message at all, whatever one may think of it",
    "too long": LENGTHS.pack(1 << 30, 0),
    "too large": LENGTHS.pack(2, 1 << 40) + b"[]",
    "deep": LENGTHS.pack(len(DEEP), 0) + DEEP,
    "no pair": message({}),
    "an object": message([{"told": 1}, [["|O", [1]]]], bytes(8)),
    "an impossible shape": message([{"told": 1}, [["|u1", [-1]]]]),
    "overflow": message([{"told": 1}, [["<f8", [1 << 32, 1 << 32]]]]),
    "too few numbers": message([{"told": 1}, [["|u1", [9]]]], bytes(8)),
    "too many numbers": message([{"told": 1}, []], bytes(8)),
    "not finite": message([{"told": float("inf")}, []]),
    "nothing told": message([{"said": 1}, []]),
    "a pickle": pickle.dumps(print),
}


@pytest.mark.parametrize("name", JUNK)
def test_no_answer_of_a_child_is_trusted(name: str) -> None:
    child = Child("test_processes:junk", JUNK[name].hex(), memory=1 << 30)
    with pytest.raises(Ended):
        child.ask("say", seconds=5, most=1 << 20)
    assert child.process.returncode is not None


def test_an_answer_has_no_more_bytes_than_are_expected(pool: Pool) -> None:
    assert pool.ask("say", np.zeros(9), most=72)[1]
    with pytest.raises(Ended, match="answer"):
        pool.ask("say", np.zeros(9), most=71)


def test_an_interruption_ends_the_child(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool.ask("say")
    [(_, child)] = pool._idle

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(child.channel, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.ask("say")
    assert child.process.returncode is not None
    assert pool._idle == []


def test_confined_children_get_no_secrets(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DPVEIL_PASSPHRASE", "AWS_SECRET_ACCESS_KEY", "DPVEIL_DATABASE"):
        monkeypatch.setenv(name, "secret")
    names = set(pool.ask("environment")[0])
    assert "PATH" in names
    assert not {name for name in names if "DPVEIL" in name or "AWS" in name} - PASSED_ON


def test_children_end_when_nobody_asks_any_more(pool: Pool) -> None:
    pool.ask("say")
    [(_, child)] = pool._idle
    child.stop()
    assert child.process.returncode == 0
    other = Child(HERE, memory=1 << 30)
    other.channel.writes.close()  # as when the parent is gone
    assert other.process.wait(20) == 0
    other.end()


def test_a_channel_ends_with_its_stream() -> None:
    stream = BytesIO()
    Channel(stream, stream).send(1, np.arange(3))
    for size in range(len(stream.getvalue())):
        cut = BytesIO(stream.getvalue()[:size])
        try:
            assert Channel(cut, cut).receive() is None
        except ValueError:
            assert size >= LENGTHS.size


@pytest.mark.parametrize("lengths", [(MOST_JSON + 1, 0), (0, 10)])
def test_a_channel_reads_no_message_that_is_too_large(lengths: tuple[int, int]) -> None:
    stream = BytesIO(LENGTHS.pack(*lengths) + bytes(sum(lengths)))
    with pytest.raises(ValueError, match="larger"):
        Channel(stream, stream).receive(9)
    assert stream.tell() == LENGTHS.size
