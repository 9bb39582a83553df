"""Starting and stopping the service: what is safe to start, and uvicorn."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from fastapi import FastAPI

from dpveil.errors import DPVeilError, InvalidParameter, OutputError, UsageError
from dpveil.io.names import shown
from dpveil.service import log
from dpveil.service.app import Addresses, application
from dpveil.service.budget import Budget
from dpveil.service.desk import Desk
from dpveil.service.guard import Guard
from dpveil.service.keys import KeyFile
from dpveil.service.limits import Limits
from dpveil.service.metrics import Metrics
from dpveil.service.page.routes import Page
from dpveil.service.pool import Pool
from dpveil.service.protocol import Timely
from dpveil.service.store import MEMORY, Store
from dpveil.service.upload import Held

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine, by which the service is reached on it."""
SWEEP_SECONDS: Final = 10
ALONE: Final = "the service without keys and a ledger is for this machine alone"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the service is started with. `hosts` are names by which it is reached besides `LOOPBACK`.

    `results` is a database file; without one, results are kept in memory and end with the process.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    hosts: tuple[str, ...] = ()
    keys: Path | None = None
    results: Path | None = None
    workers: int | None = None
    limits: Limits = Limits()

    def check(self, ledger: Ledger | None) -> None:
        """Raise `UsageError` for anything but loopback without keys, a ledger with limits, and names.

        Also for files that are the ledger's: whoever opens and closes one of these undoes its locks.
        """
        for name, path in (("results", self.results), ("keys", self.keys)):
            if ledger is not None and path is not None and path.resolve() in map(Path.resolve, ledger.files):
                problem, hint = "belongs to the ledger", "name another file"
                raise InvalidParameter(name, shown(path), problem, hint=hint)
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
            raise UsageError(
                "the names of the service are unknown", hint=hint, arguments={"hostname": "hostname"}
            )


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
    """The parts of a service: its desk, and the application that uvicorn runs."""

    desk: Desk
    app: Guard

    async def stop(self) -> None:
        """Cancel what is not paid for, finish the rest."""
        await self.desk.close()


def build(setup: Setup, ledger: Ledger | None = None) -> Service:
    """Return the service; workers start with it. Raises `UsageError` and `OutputError`."""
    setup.check(ledger)
    limits, metrics, budget = setup.limits, Metrics(), Budget(ledger)
    keys = None if setup.keys is None else KeyFile(setup.keys)
    pool = Pool(setup.workers or os.cpu_count() or 1, limits)
    name = "" if ledger is None else ledger.name
    store = Store(MEMORY if setup.results is None else setup.results, limits, name)
    store.recover(budget.paid)
    desk = Desk(pool, store, budget, limits, metrics)
    held = Held(limits)
    for name, words, read in _watched(desk, held):
        metrics.watch(name, words, read)
    addresses = Addresses(desk, held, metrics)
    app = application(addresses)
    app.include_router(Page(addresses, keys=keys is not None).router())
    app.router.lifespan_context = _lifespan(desk)
    return Service(desk, Guard(app, (*LOOPBACK, *setup.hosts), keys, limits, metrics))


def _watched(desk: Desk, held: Held) -> Sequence[tuple[str, str, Callable[[], float]]]:
    pool, store = desk.pool, desk.store
    return (
        ("waiting", "Requests that wait for a worker.", lambda: pool.waiting),
        ("busy", "Workers at work.", lambda: pool.busy),
        ("workers_replaced", "Workers that ended or were killed.", lambda: pool.replaced),
        ("upload_bytes", "Bytes of uploads in memory.", lambda: held.now),
        ("result_bytes", "Bytes of results that are kept.", lambda: store.used),
    )


def _lifespan(desk: Desk) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk.pool.start()
        sweeping = asyncio.create_task(_sweep(desk))
        try:
            yield
        finally:
            sweeping.cancel()
            await desk.close()
            await desk.pool.end()
            desk.end()

    return lifespan


async def _sweep(desk: Desk) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with suppress(DPVeilError):  # logged; the next one may succeed
            await desk.sweep()


class _Server(uvicorn.Server):
    """uvicorn, which cancels what was not paid for before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[int], None]) -> None:
        super().__init__(config)
        self.service, self.told = service, started

    async def startup(self, sockets: Any = None) -> None:
        """Start, and tell the port that is listened at."""
        await super().startup(sockets=sockets)
        if self.started:
            self.told(self.servers[0].sockets[0].getsockname()[1])

    async def shutdown(self, sockets: Any = None) -> None:
        """Stop."""
        closing = asyncio.create_task(self.service.stop())
        await super().shutdown(sockets=sockets)
        await closing


def running(setup: Setup, service: Service, started: Callable[[int], None]) -> uvicorn.Server:
    """Return uvicorn's server for a service; it calls `started` with the port once it listens."""
    config = uvicorn.Config(
        service.app,
        host=setup.host.strip("[]"),
        port=setup.port,
        http=cast(Any, partial(Timely, setup.limits)),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        limit_concurrency=setup.limits.connections,
        timeout_graceful_shutdown=int(setup.limits.draw_seconds + setup.limits.send_seconds),
    )
    return _Server(config, service, started)


def serve(setup: Setup, ledger: Ledger | None, started: Callable[[int], None]) -> None:
    """Run the service until it is told to stop by SIGTERM or SIGINT; calls `started` with the port.

    Raises `UsageError` for what is not safe to start, and `OutputError` if it cannot listen.
    """
    server = running(setup, build(setup, ledger), started)
    log.start()
    gc.freeze()
    try:
        server.run()
    except SystemExit:
        problem = f"the service cannot listen at {setup.host}, port {setup.port}"
        raise OutputError(problem, hint="choose another {port}", arguments={"port": "port"}) from None
