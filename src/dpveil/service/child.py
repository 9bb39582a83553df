"""The program of a worker: it decodes and draws, holds no ledger and no key, and may end at any moment."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import IO, Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_NO_NEW_PRIVS: Final = 38


def confine(memory: int) -> None:
    """Limit the address space of this process to `memory` bytes; no core dumps, for they hold originals.

    On Linux it also ends with the process that started it, and gains no privileges.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is for the server, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _warm() -> None:
    """Load what most requests need, and run one OpenCV thread: there is a worker for each core."""
    import cv2

    from dpveil.core.allocator import keep_freed
    from dpveil.noise.backend import compile_now
    from dpveil.service import work  # noqa: F401  its imports take most of a worker's start

    keep_freed()
    cv2.setNumThreads(1)
    compile_now()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more, or an error that is no `DPVeilError`: its type is told."""
    from dpveil.service.wire import read, write
    from dpveil.service.work import DRAW, steps

    while (message := read(requests)) is not None:
        given, waits = steps(*message), message[0].get("paid", True)
        about = {"number": message[0].get("number")}
        del message  # the photo's bytes are not needed once it was read
        try:
            for told, contents in given:
                planned = "room" in told
                write(answers, {**told, **about}, contents, flush=planned)
                if planned and waits and not _goes_on(read(requests), DRAW):
                    break
            write(answers, {"done": True, **about})
        except Exception as error:  # noqa: BLE001  a hostile photo may raise anything; this worker is replaced
            write(answers, {"failed": type(error).__name__, **about})
            return


def _goes_on(message: tuple[dict[str, object], bytes] | None, word: str) -> bool:
    return message is not None and message[0].get("do") == word


def main() -> None:
    """Run a worker on stdin and stdout; whatever else is printed goes nowhere."""
    from dpveil.service.wire import SMALL, widen, write

    confine(int(sys.argv[1]))
    for pipe in (0, 1):
        widen(pipe)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=SMALL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    with suppress(BrokenPipeError):
        try:
            _warm()
        except Exception as error:  # noqa: BLE001  told to the operator: no photo was read yet
            write(answers, {"failed": f"{type(error).__name__}: {error}"[:300]})
            return
        write(answers, {"ready": True})
        serve(requests, answers)


if __name__ == "__main__":
    main()
