"""Children of `dpveil.processes` as forks of one process that has everything imported.

To start Python and import takes each child half a second to two, in hundreds of tests. Here one process
imports what a child's target needs when it is asked for first, and forks from then on. Real children are
those of `tests/test_processes.py`, and of tests that run the command line in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans among our descendants become our children
MOST_BYTES = 1 << 16
LATER = (
    "dp_accounting",
    "dpveil.release.plan",
    "onnxruntime",
    "PIL.PngImagePlugin",
    "PIL.JpegImagePlugin",
    "pypdfium2",
    "av",
)
"""What targets import only when they work."""


class Forked(subprocess.Popen[bytes]):
    """What `subprocess.Popen` returns for a child, forked by `serve` and then handed over to this process."""

    server: socket.socket
    lock = threading.Lock()

    def _execute_child(self, args: Any, *more: Any) -> None:
        env, ends = more[5], (more[9], more[12])
        if "DPVEIL_PLAIN" in env or args[0] != sys.executable:  # both matter when Python starts
            super()._execute_child(args, *more)  # type: ignore[misc]
            return
        with self.lock:
            ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
            socket.send_fds(self.server, [json.dumps([args[-1], env, str(Path.cwd())]).encode()], ends)
            self.pid = int(self.server.recv(MOST_BYTES))
            ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)
        self._child_created = True
        for end in ends:
            os.close(end)
        self._closed_child_pipe_fds = True


@contextmanager
def forked_children() -> Iterator[None]:
    """Have children of this process forked."""
    from dpveil import processes

    Forked.server, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-P", __file__, str(other.fileno())]
    variables = os.environ | processes.ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    server = subprocess.Popen(command, pass_fds=[other.fileno()], env=variables, start_new_session=True)
    other.close()
    with pytest.MonkeyPatch.context() as patch, Forked.server, server:
        patch.setattr(processes, "subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": Forked}))
        yield
        Forked.server.close()


def serve(server: socket.socket) -> None:
    """Fork for each request, and answer with the number of the new process."""
    from dpveil import processes
    from dpveil.noise.backend import compile_now

    for module in LATER:
        with suppress(ImportError):
            import_module(module)
    compile_now()
    while (request := socket.recv_fds(server, MOST_BYTES, 2))[0]:
        (told, env, folder), ends = json.loads(request[0]), request[1]
        sys.path[:] = env["PYTHONPATH"].split(os.pathsep)
        with suppress(ImportError):
            import_module(json.loads(told)[0].partition(":")[0])
        numbers = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child:  # this process ends, and the child gets the parent that is wanted
                os.write(numbers[1], str(child).encode())
                os._exit(0)
            os.setsid()
            os.chdir(folder)
            for at, end in enumerate(ends):
                os.dup2(end, at)
            os.closerange(3, 3 + max(*ends, *numbers, server.fileno()))
            os.environ.clear()
            os.environ.update(env)
            sys.argv = ["-c", told]
            code = 1
            try:
                processes.main()
                code = 0
            except SystemExit as exit_:
                code = int(exit_.code or 0)
            finally:
                os._exit(code)
        os.waitpid(between, 0)
        server.send(os.read(numbers[0], 99))
        for end in (*ends, *numbers):
            os.close(end)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
