"""Starting and stopping the service: what is safe to start, and uvicorn."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from fastapi import FastAPI

from dpveil.errors import DPVeilError, OutputError, UsageError
from dpveil.processes import keep_freed_memory
from dpveil.service import log
from dpveil.service.app import Parts, application
from dpveil.service.budget import Budget
from dpveil.service.guard import Guard, Rates, UploadMemory
from dpveil.service.jobs import Jobs
from dpveil.service.keys import KeyFile
from dpveil.service.limits import Limits
from dpveil.service.metrics import Metrics
from dpveil.service.page.routes import page_router
from dpveil.service.store import MEMORY, Store
from dpveil.service.workers import USUAL, Workers

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.release.keys import SigningKey

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine, by which the service is reached on it."""
SWEEP_SECONDS: Final = 10
DOWNLOAD_SECONDS: Final = 30  # seconds that clients have for open downloads when the service stops
ALONE: Final = "the service without keys and a ledger is for this machine alone"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the service is started with. `hosts` are names by which it is reached besides `LOOPBACK`.

    `results` is a database file; without one, results are kept in memory and end with the process. `workers`
    is `USUAL` by default. `sign` is a key that signs certificates.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    hosts: tuple[str, ...] = ()
    keys: Path | None = None
    results: Path | None = None
    workers: int | None = None
    limits: Limits = Limits()
    sign: SigningKey | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name by which the service is reached."""
        own = self.host if ":" not in self.host else f"[{self.host.strip('[]')}]"
        return (*LOOPBACK, *([own] if is_loopback(self.host) else []), *self.hosts)

    def check(self, ledger: Ledger | None) -> None:
        """Raise `UsageError` for anything but loopback without keys, a ledger with limits, and names."""
        if is_loopback(self.host):
            return
        if self.keys is None:
            hint = "give {keys}, which dpveil api-key new makes, or serve on 127.0.0.1"
            raise UsageError(ALONE, hint=hint, arguments={"keys": "keys"})
        if ledger is None or not ledger.subjects():
            hint = "give {ledger}, with limits by dpveil ledger limit, or serve on 127.0.0.1"
            raise UsageError(ALONE, hint=hint, arguments={"ledger": "ledger"})
        if not self.hosts:
            hint = "name them by {hostname}, such as photos.example.org"
            problem = "the names of the service are unknown"
            raise UsageError(problem, hint=hint, arguments={"hostname": "hostname"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass
class Service:
    """The parts of a service: its jobs, and the application that uvicorn runs."""

    jobs: Jobs
    app: Guard
    keys_file: KeyFile | None

    @property
    def keys(self) -> int | None:
        """How many API keys there are; None if none is needed."""
        return None if self.keys_file is None else self.keys_file.count


def build(setup: Setup, ledger: Ledger | None = None) -> Service:
    """Return the service; workers start with it. Raises `OutputError`."""
    limits, metrics, budget = setup.limits, Metrics(), Budget(ledger)
    keys = None if setup.keys is None else KeyFile(setup.keys)
    workers = Workers(setup.workers or USUAL, limits)
    name = "" if ledger is None else ledger.name
    store = Store(MEMORY if setup.results is None else setup.results, limits, name)
    store.recover(budget.is_paid)
    jobs, held = Jobs(workers, store, budget, limits, metrics, setup.sign), UploadMemory(limits.held_bytes)
    metrics.watch("waiting", "Requests that wait for a worker.", lambda: workers.waiting)
    metrics.watch("busy", "Workers at work.", lambda: workers.busy)
    metrics.watch("workers_replaced", "Workers that ended or were killed.", lambda: workers.replaced)
    metrics.watch("upload_bytes", "Bytes of uploads in memory.", lambda: held.now)
    metrics.watch("result_bytes", "Bytes of results that are kept.", lambda: store.used)
    parts = Parts(jobs, held, Rates(), metrics, keys)
    app = application(parts, _lifespan(jobs))
    app.include_router(page_router(parts))
    return Service(jobs, Guard(app, setup.names, limits, metrics), keys)


def _lifespan(jobs: Jobs) -> Callable[[FastAPI], Any]:
    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            with suppress(DPVeilError):  # logged; the next one may succeed
                await jobs.sweep()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            await jobs.close()
            await asyncio.to_thread(jobs.end)

    return lifespan


class _Server(uvicorn.Server):
    """uvicorn, which cancels what was not paid for before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[int], None]) -> None:
        super().__init__(config)
        self.service, self.told = service, started

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, once: at a second SIGINT uvicorn would leave what was paid for in the middle."""
        if not self.should_exit:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: Any = None) -> None:
        """Start the workers, then listen, and tell the port; raises `OutputError` if no worker can start."""
        await self.service.jobs.workers.start()
        await super().startup(sockets=sockets)
        if self.started:
            self.told(self.servers[0].sockets[0].getsockname()[1])

    async def shutdown(self, sockets: Any = None) -> None:
        closing = asyncio.create_task(self.service.jobs.close())
        await super().shutdown(sockets=sockets)
        await closing


def running(setup: Setup, service: Service, started: Callable[[int], None]) -> uvicorn.Server:
    """Return uvicorn's server for a service; it calls `started` with the port once it listens."""
    config = uvicorn.Config(
        service.app,
        host=setup.host.strip("[]"),
        port=setup.port,
        http="h11",
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        limit_concurrency=setup.limits.connections,
        timeout_graceful_shutdown=int(setup.limits.draw_seconds + DOWNLOAD_SECONDS),
    )
    return _Server(config, service, started)


def serve(
    setup: Setup, ledger: Ledger | None, begins: Callable[[Service], None], started: Callable[[int], None]
) -> None:
    """Run the service until it is told to stop by SIGTERM or SIGINT.

    Calls `begins` once everything is open, and `started` with the port once it listens there. Raises
    `UsageError` and `OutputError`.
    """
    setup.check(ledger)
    with _listener(setup.host, setup.port) as listener:  # before anything else is opened, and told
        service = build(setup, ledger)
        begins(service)
        log.start()
        gc.freeze()
        keep_freed_memory()
        with suppress(KeyboardInterrupt):  # how it was told to stop, after which it has stopped in order
            running(setup, service, started).run([listener])


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        # of Python's own text, as of a port that is taken, the end repeats the address; names have none
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        problem = f"cannot listen at {host}, port {port} ({why})"
        hint = "stop what listens there, or choose another {port}"
        raise OutputError(problem, hint=hint, arguments={"port": "port"}) from error
