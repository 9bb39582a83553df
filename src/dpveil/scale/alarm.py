"""The end of a process that takes too long, in a library that never returns, too."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Alarm:
    """Ends this process when one of its contexts takes more than `seconds`; one can be open at a time.

    The system does, by a signal that nothing handles: that costs two calls of it for a context. Where the
    signal is missing, handled or blocked, a thread of `faulthandler` does, which starts with each context.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds, self._nowhere = seconds, -1
        if not _ends_it():
            self._nowhere = os.open(os.devnull, os.O_WRONLY)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """End the process unless the context ends before."""
        if self._nowhere < 0:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
        else:
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._nowhere)
        try:
            yield
        finally:
            if self._nowhere < 0:
                signal.setitimer(signal.ITIMER_REAL, 0)
            else:
                faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        """Close its file."""
        if self._nowhere >= 0:
            os.close(self._nowhere)
            self._nowhere = -1


def _ends_it() -> bool:
    """Whether the system's signal would end this process."""
    alarm = getattr(signal, "SIGALRM", None)
    if alarm is None or alarm in signal.pthread_sigmask(signal.SIG_BLOCK, []):
        return False
    return signal.getsignal(alarm) == signal.SIG_DFL
