"""The program of a worker: it decodes and draws, holds no ledger and no key, and may end at any moment."""

from __future__ import annotations

import ctypes
import signal
import sys
from functools import partial
from typing import Any, Final

from dpveil.processes import Channel

PR_SET_PDEATHSIG: Final = 1
PR_SET_NO_NEW_PRIVS: Final = 38


def serve(channel: Channel) -> None:
    """Answer requests until there are no more, or an error that is no `DPVeilError`: its type is told."""
    try:
        _preload()
    except Exception as error:  # noqa: BLE001  told to the operator: no photo was read yet
        channel.send({"failed": f"{type(error).__name__}: {error}"[:300]})
        return
    channel.send({"ready": True})
    answer(channel)


def _preload() -> None:
    """End with the server; load what most requests need; run one OpenCV thread, as there are more workers."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    import cv2

    from dpveil.core.numbers import keep_freed
    from dpveil.noise.backend import compile_now
    from dpveil.service import work  # noqa: F401  its imports take most of a worker's start

    keep_freed()
    cv2.setNumThreads(1)
    compile_now()


def answer(channel: Channel) -> None:
    """Answer requests; a release that has to be paid is drawn once `DRAW` is sent, and never otherwise.

    Each answer repeats the number of its request.
    """
    from dpveil.service.work import DRAW, steps

    while (message := channel.receive()) is not None:
        told, arrays = message
        about = {"number": told.get("number")}
        progress = partial(_tell_progress, channel, about)
        given, waits = steps(told, arrays[0].tobytes(), progress), told.get("paid", True)
        del message, arrays  # the photo's bytes are not needed once it was read
        try:
            for said, contents in given:
                channel.send({**said, **about}, contents)
                if "room" in said and waits and not _receives(channel, DRAW):
                    break
            channel.send({"done": True, **about})
        except Exception as error:  # noqa: BLE001  a hostile photo may raise anything; this worker is replaced
            channel.send({"failed": type(error).__name__, **about})
            return


def _tell_progress(channel: Channel, about: dict[str, Any], done: int, of: int) -> None:
    channel.send({"progress": [done, of], **about}, b"")


def _receives(channel: Channel, word: str) -> bool:
    message = channel.receive()
    said: Any = message[0] if message is not None else {}
    return isinstance(said, dict) and said.get("do") == word
