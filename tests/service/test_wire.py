"""Messages of workers as the server reads them: in whatever pieces they arrive, and however they end."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dpveil.service import wire
from dpveil.service.wire import LENGTHS, SMALL, Answers, packed


@pytest.fixture
def pipe() -> Iterator[tuple[Answers, int]]:
    read, write = os.pipe()
    answers = Answers(read)
    yield answers, write
    answers.close()
    answers.close()
    with suppress(OSError):
        os.close(write)


def heard(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def runs() -> Any:
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(runs())


OPEN = Path("/proc/self/fd")
CONTENTS = os.urandom(3 * SMALL + 5)


@pytest.mark.parametrize("pieces", [1, 7, 4096, 1 << 24])
def test_messages_arrive_in_any_pieces(pipe: tuple[Answers, int], pieces: int) -> None:
    """Messages follow each other without a gap, small ones and one that no pipe holds."""
    answers, write = pipe
    contents = [b"", b"x" * 10, CONTENTS if pieces > 7 else CONTENTS[:500]]
    sent = b"".join(b"".join(packed({"n": number, "é": "\n"}, each)) for number, each in enumerate(contents))

    def writes() -> None:
        for start in range(0, len(sent), pieces):
            rest = sent[start : start + pieces]
            while rest:
                rest = rest[os.write(write, rest) :]

    thread = threading.Thread(target=writes)

    async def hears() -> list[Any]:
        thread.start()
        return [await answers.receive(len(CONTENTS), 20) for _ in contents]

    assert heard(hears) == [({"n": number, "é": "\n"}, each) for number, each in enumerate(contents)]
    thread.join()


def test_a_message_that_is_there_is_read_at_one_go(
    pipe: tuple[Answers, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, write = pipe
    os.write(write, b"".join(packed({}, b"c" * 9)))

    async def never(self: Answers, pipe: int, end: float) -> None:
        raise AssertionError

    monkeypatch.setattr(Answers, "_arrived", never)
    assert heard(lambda: answers.receive(9, 20)) == ({}, b"c" * 9)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", EOFError),
        (LENGTHS.pack(2, 5) + b"{}abcd", EOFError),
        (LENGTHS.pack(2, 11) + b"{}", ValueError),
        (LENGTHS.pack(wire.MOST_JSON + 1, 0), ValueError),
        (LENGTHS.pack(2, 0) + b"[]", ValueError),
        (LENGTHS.pack(1, 0) + b"{", ValueError),
        (LENGTHS.pack(1, 0) + b"\xff", ValueError),
        (LENGTHS.pack(9, 0) + b'{"a":NaN}', ValueError),
        (LENGTHS.pack(11, 0) + b'{"a":1e999}', ValueError),
        (LENGTHS.pack(100_000, 0) + b"[" * 100_000, ValueError),
    ],
)
def test_what_is_no_message_is_refused(
    pipe: tuple[Answers, int], sent: bytes, error: type[Exception]
) -> None:
    answers, write = pipe
    thread = threading.Thread(target=lambda: (os.write(write, sent), os.close(write)))
    thread.start()
    with pytest.raises(error):
        heard(lambda: answers.receive(10, 20))
    thread.join()


def test_json_is_short_enough_to_be_parsed_at_once() -> None:
    assert wire.MOST_JSON <= 1 << 20


def test_whether_there_is_anything_to_hear(pipe: tuple[Answers, int]) -> None:
    answers, write = pipe
    assert answers.silent
    assert answers.silent
    os.write(write, b"x")
    assert not answers.silent
    assert answers.silent
    os.close(write)
    assert not answers.silent
    answers.close()
    assert not answers.silent


def test_what_a_worker_only_announces_takes_no_memory(
    pipe: tuple[Answers, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, write = pipe
    os.write(write, LENGTHS.pack(2, 1 << 32) + b"{}")
    asked: list[int] = []
    read = os.read

    def counted(pipe: int, size: int) -> bytes:
        asked.append(size)
        return read(pipe, size)

    monkeypatch.setattr(wire.os, "read", counted)

    async def hears() -> None:
        with pytest.raises(TimeoutError):
            await answers.receive(1 << 33, 0.05)

    heard(hears)
    assert max(asked) == SMALL


def test_who_waits_when_it_is_closed_hears_of_the_end(pipe: tuple[Answers, int]) -> None:
    """And a number that the system gives to another file is not read."""
    answers, _ = pipe

    async def hears() -> int:
        before = len([*OPEN.iterdir()])
        waits = asyncio.ensure_future(answers.receive(10, 20))
        await asyncio.sleep(0.01)
        answers.close()
        again, other = os.pipe()
        os.write(other, LENGTHS.pack(2, 0) + b"{}")
        with pytest.raises(EOFError):
            await waits
        with pytest.raises(EOFError):
            await answers.receive(10, 20)
        os.close(again)
        os.close(other)
        return len([*OPEN.iterdir()]) - before

    assert heard(hears) == -1


def test_one_who_gives_up_leaves_nothing_behind(pipe: tuple[Answers, int]) -> None:
    answers, write = pipe

    async def hears() -> Any:
        for seconds, outer in ((0.01, 20), (20, 0.01), (0, 20)):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(outer):
                    await answers.receive(10, seconds)
            assert not asyncio.get_running_loop().remove_reader(answers._pipe)  # type: ignore[arg-type]
        os.write(write, b"".join(packed({"a": 1})))
        return await answers.receive(10, 20)

    assert heard(hears) == ({"a": 1}, b"")
