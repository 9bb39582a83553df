"""Processes of their own, with limits: what may crash, hang or take all memory does so there.

A `Child` runs one function of dpveil on a `Channel`; a `Pool` holds children that answer questions, each for
one thread at a time. Memory and time are limited; a child ends with all that it started where a question
is interrupted, and `Ended` says what ended it; whoever asked knows of which item.

No kept library does this: the executors of concurrent.futures and of loky break as a whole when a process
dies, without telling on which item, limit nothing, and unpickle what comes back, which runs code of the
sender's choice; multiprocessing also imports the user's main program again, which a script without a guard
does not survive. Here messages are JSON and arrays of numbers: the worst that a child taken over by a file
can do is to answer with wrong ones, which is what decoding that file means anyway.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import math
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, Final

import numpy as np

LENGTHS: Final = struct.Struct(">IQ")  # the bytes of a message's JSON, and those of all its arrays
MOST_JSON: Final = 1 << 20
MOST_BYTES: Final = 1 << 33
"""Most bytes of JSON and of arrays in a message; who hears a stranger's answer states a lower limit."""
PIECE: Final = 1 << 20  # bytes that are read at one go; pipes hold as many, where the system lets them
TYPES: Final = ("|u1", "|b1", "<i8", "<f4", "<f8")  # types of arrays in messages
MOST_DIMENSIONS: Final = 8
GRACE: Final = 30  # seconds after which a child ends itself that nobody ended in time: its parent is gone
STOP_SECONDS: Final = 20  # seconds within which a child ends that has nothing left to do
PASSED_ON: Final = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME"}
    | {"PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "DPVEIL_PLAIN"}
)
"""The only variables that confined children get: others may hold passwords, such as the ledger's."""
ONE_THREAD: Final = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA")
}
"""For children of which there is one for each core."""

Message = tuple[Any, list[np.ndarray]]  # A value of JSON, and arrays
_encoded: Final = json.JSONEncoder(allow_nan=False).encode


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("the message has a number that is not finite")
    return number


_decoded: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite).decode


class Ended(Exception):
    """A child did not answer: it `why` ended by "time", "memory", a "signal", "crash" or a wrong "answer".

    `detail` is the signal's name, the type of the error that ended it, or the seconds.
    """

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(f"{why} {detail}".strip())
        self.why, self.detail = why, detail


def pack_message(told: Any, arrays: Sequence[np.ndarray | bytes] = ()) -> list[bytes | memoryview]:
    """Return the parts of a message; raises `ValueError` for what is no JSON, or an array of another type."""
    plain = [
        np.frombuffer(one, np.uint8) if isinstance(one, bytes) else np.asarray(one, order="C")
        for one in arrays
    ]
    if any(one.dtype.str not in TYPES for one in plain):
        raise ValueError("the message has an array of another type")
    head = _encoded([told, [[one.dtype.str, one.shape] for one in plain]]).encode()
    parts = [one.data.cast("B") for one in plain if one.size]
    return [LENGTHS.pack(len(head), sum(one.nbytes for one in plain)) + head, *parts]


def unpack_message(text: bytes, contents: bytes) -> Message:
    """Return a message; raises `ValueError` for anything else."""
    try:
        told, kinds = _decoded(text.decode())
        arrays, at = [], 0
        for kind, shape in kinds:
            sides = all(type(side) is int and 0 <= side <= MOST_BYTES for side in shape)
            if kind not in TYPES or len(shape) > MOST_DIMENSIONS or not sides:
                raise ValueError("the message has an impossible array")
            count = math.prod(shape)
            size = count * np.dtype(kind).itemsize
            if size > len(contents) - at:
                raise ValueError("the message lacks numbers")
            arrays.append(np.frombuffer(contents, kind, count, at).reshape(shape))
            at += size
    except (RecursionError, TypeError) as error:
        raise ValueError("it is no message") from error
    if at != len(contents):
        raise ValueError("the message has more than its arrays")
    return told, arrays


class Channel:
    """One end of two pipes; one thread uses it at a time."""

    def __init__(self, reads: IO[bytes], writes: IO[bytes]) -> None:
        self.reads, self.writes = reads, writes

    def send(self, told: Any, *arrays: np.ndarray | bytes) -> None:
        """Send a message; raises `OSError` if the other end is gone."""
        for part in pack_message(told, arrays):
            rest = memoryview(part)
            while rest:
                rest = rest[self.writes.write(rest) :]
        self.writes.flush()

    def receive(self, most: int = MOST_BYTES) -> Message | None:
        """Return the next message, with at most `most` bytes of arrays; None at the end.

        Raises `ValueError` for what is no message.
        """
        head = self._read_exactly(LENGTHS.size)
        if len(head) < LENGTHS.size:
            return None
        text, size = LENGTHS.unpack(head)
        if text > MOST_JSON or size > most:
            raise ValueError("the message is larger than any that is expected")
        said, contents = self._read_exactly(text), self._read_exactly(size)
        return unpack_message(said, contents) if len(contents) == size else None

    def _read_exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            parts.append(part := self.reads.read(min(size, PIECE)))
            if not part:
                break
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to read: neither a message nor the end; for a parent's end."""
        return not self.reads.closed and not select.select([self.reads], [], [], 0)[0]


# In the child


@contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
    """End this process unless the context ends within so many seconds; one can be open at a time.

    The system does, by a signal that nothing handles, as libraries may never return.
    """
    if not hasattr(signal, "SIGALRM"):  # as on Windows, where the parent alone ends it
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # whoever started this process may have changed both
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


Answering = Callable[..., tuple[Any, ...]]  # returns the parts of an answer for the parts of a question


def answer(channel: Channel, prepare: Callable[..., Answering]) -> None:
    """Answer questions until there are no more, by what `prepare` makes from the parts of the first message.

    The first message ends with the seconds for each question. Any error is told by its type and ends the
    process: a hostile file may have left anything behind.
    """
    first = channel.receive()
    if first is None:
        return
    (given, seconds), arrays = first
    try:
        with limit_seconds(seconds + GRACE):
            answers = prepare(given, *arrays)
        del first, arrays
        while (asked := channel.receive()) is not None:
            with limit_seconds(seconds + GRACE):
                told, *found = answers(asked[0], *asked[1])
            channel.send({"told": told}, *found)
    except OSError:
        return
    except Exception as error:  # noqa: BLE001  see above
        channel.send({"raised": type(error).__name__})


confined = False  # whether this process is a child with limits, in which nothing needs another one


def _confine(memory: int) -> None:
    """Limit the address space of this process in bytes; no core dumps, for they hold originals."""
    with suppress(ImportError, ValueError, OSError):  # there are no such limits, or lower ones
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def main() -> None:
    """Run the function that the arguments name; whatever else is printed goes nowhere."""
    global confined
    target, memory, *arguments = json.loads(sys.argv[1])
    _confine(memory)
    confined = memory > 0
    reads, writes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    module, _, name = target.partition(":")
    gc.disable()  # loading modules makes no garbage, and looking for it takes a fifth of the time
    function = getattr(importlib.import_module(module), name)
    gc.freeze()
    gc.enable()
    with suppress(BrokenPipeError):
        function(Channel(reads, writes), *arguments)


# In the parent


class Child:
    """A process that runs `target`, "module:function", on a channel; raises `OSError` if it cannot start.

    It has at most `memory` bytes; with 0 it is not confined, as one that does the user's own work.
    """

    def __init__(self, target: str, *arguments: Any, memory: int = 0, one_thread: bool = False) -> None:
        variables = {n: value for n, value in os.environ.items() if not memory or n in PASSED_ON}
        variables |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # the same packages
        start, told = "from dpveil.processes import main; main()", json.dumps([target, memory, *arguments])
        self.process = subprocess.Popen(  # noqa: S603  this very program
            [sys.executable, "-P", "-c", start, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # so that all that was sent unasked is seen
            stderr=subprocess.DEVNULL,  # what libraries print may tell of photos
            env=variables | (ONE_THREAD if one_thread else {}),
            start_new_session=True,  # an interruption is for this process, which ends the other one
        )
        self.channel = Channel(self.process.stdout, self.process.stdin)  # type: ignore[arg-type]
        self.asked = False
        for stream in (self.process.stdout, self.process.stdin):
            with suppress(ImportError, AttributeError, OSError):  # not here, or not that large
                import fcntl

                fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIECE)  # type: ignore[union-attr]

    def ask(self, told: Any, *arrays: np.ndarray | bytes, seconds: float, most: int = MOST_BYTES) -> Message:
        """Return the answer to a question; raises `Ended`, and then the process is gone."""
        late, self.asked = threading.Event(), True

        def stop() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            self.channel.send(told, *arrays)
            heard = self.channel.receive(most)
        except OSError:
            heard = None
        except ValueError as error:
            self.end()
            raise Ended("answer") from error
        except BaseException:
            self.end()
            raise
        finally:
            timer.cancel()
        if heard is not None and isinstance(heard[0], dict) and "told" in heard[0]:
            return heard[0]["told"], heard[1]
        raise self._reason(heard, f"{seconds:g} s" if late.is_set() else "")

    def _reason(self, heard: Message | None, late: str) -> Ended:
        raised = heard[0].get("raised") if heard is not None and isinstance(heard[0], dict) else None
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        code = self.process.poll()
        self.end()
        if late:
            return Ended("time", late)
        if isinstance(raised, str):
            return Ended("memory" if raised == "MemoryError" else "crash", raised[:100])
        if heard is not None or code is None:
            return Ended("answer")
        if code < 0:
            number = -code
            name = signal.Signals(number).name if number in {*signal.Signals} else str(number)
            return Ended("time" if name in ("SIGALRM", "SIGXCPU") else "signal", name)
        return Ended("crash", f"exit {code}")

    def stop(self) -> None:
        """Tell the process that there is nothing more to do; kill it if it takes long."""
        self._close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.end()

    def kill(self) -> None:
        """Kill the process and those that it started: they are a session of their own."""
        if self.process.returncode is None and hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()

    def end(self) -> None:
        """Kill the process and those that it started, whatever they do."""
        self.kill()
        self._close()
        self.process.wait()

    def _close(self) -> None:
        for stream in (self.channel.writes, self.channel.reads):
            with suppress(OSError):
                stream.close()


class Pool:
    """Children that answer questions (`answer`), one thread each; they start when they are needed.

    Each gets `first` before any question, and has `memory` bytes and, for a question, `seconds`. Up to `idle`
    wait for the next questions. After a fork, another process's children are not used. A pickle of it starts
    its own.
    """

    def __init__(
        self,
        target: str,
        first: tuple[Any, ...] = (None,),
        *,
        memory: int,
        seconds: float,
        idle: int = 4,
        one_thread: bool = False,
    ) -> None:
        self.target, self.first, self.memory, self.seconds = target, first, memory, seconds
        self.most_idle, self.one_thread = idle, one_thread
        self.deaths = 0
        self._idle: list[tuple[int, Child]] = []
        weakref.finalize(self, _end_all, self._idle)

    def __reduce__(self) -> tuple[Callable[[], Pool], tuple[()]]:
        more: dict[str, Any] = {"memory": self.memory, "seconds": self.seconds, "idle": self.most_idle}
        return partial(Pool, self.target, self.first, one_thread=self.one_thread, **more), ()

    def ask(self, told: Any = None, *arrays: np.ndarray | bytes, most: int = MOST_BYTES) -> Message:
        """Return the answer to a question, with at most `most` bytes of arrays; raises `Ended`."""
        with self.child() as child:
            return child.ask(told, *arrays, seconds=self.seconds, most=most)

    @contextmanager
    def child(self) -> Iterator[Child]:
        """Have a child for several questions; raises `Ended` if none can start."""
        child = self._take_child()
        try:
            yield child
        finally:
            alive = child.process.poll() is None and child.channel.silent
            self.deaths += not alive
            if alive and len(self._idle) < self.most_idle:
                self._idle.append((os.getpid(), child))
            else:
                child.end()

    def _take_child(self) -> Child:
        with suppress(IndexError):
            while True:
                started_by, child = self._idle.pop()
                if started_by != os.getpid():
                    continue
                if child.process.poll() is None and child.channel.silent:
                    return child
                child.end()
        try:
            child = Child(self.target, memory=self.memory, one_thread=self.one_thread)
        except OSError as error:
            raise Ended("start", error.strerror or "") from error
        told, *arrays = self.first
        with suppress(OSError):  # the question will tell
            child.channel.send([told, self.seconds], *arrays)
        return child

    def end(self) -> None:
        """End all that wait."""
        _end_all(self._idle)


def _end_all(idle: list[tuple[int, Child]]) -> None:
    while idle:
        started_by, child = idle.pop()
        if started_by == os.getpid():
            child.end()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


M_TRIM_THRESHOLD: Final = -1
M_MMAP_MAX: Final = -4
KEPT: Final = 1 << 28  # bytes of freed memory that are kept; what is beyond goes back to the system


def keep_freed_memory() -> None:
    """Let this process keep freed memory for the next photo, where the C library is glibc (`mallopt`).

    By itself glibc gives every large array back at once and asks for it anew, and the system clears each of
    its pages again: a fifth of the time of a release. For programs, not for libraries: it holds for all of
    the process.
    """
    if sys.platform != "linux":
        return
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, KEPT)
