"""The work on a few rows in one process, whatever engine hands them out."""

from __future__ import annotations

import errno
import os
import platform
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from dpveil.batch.private import check_apart
from dpveil.batch.report import RELEASED
from dpveil.core.parameters import check_count
from dpveil.core.urls import Status, Url, place, remade
from dpveil.datasets.cache import KEY, Cache
from dpveil.datasets.releaser import ENDS, Releaser
from dpveil.errors import DPVeilError, InvalidParameter, OutputError, PhotoError, UsageError
from dpveil.io import is_present, locking
from dpveil.io.names import shown
from dpveil.io.writing import refusal
from dpveil.mechanisms.method import Method
from dpveil.processes import limited
from dpveil.scale.outcomes import Log, Outcomes, name
from dpveil.scale.row import Row

FOLDER: Final = "tries"
MOST: Final = 2
"""How many processes may die of a row."""
PAUSE: Final = 0.05
"""Seconds between two attempts to get a row that another process has."""
SECONDS: Final = 100
"""The usual limit of the time for one photo: shorter than others wait for a lock that its process holds."""
OTHERS: Final = (errno.EBUSY, errno.EEXIST)
"""Errors of a store where another process has the photo: the one that waits for long, or comes second."""
DIED: Final = "the processes that released it ended: killed, out of memory, crashed on it, or out of time"
POSTGRES: Final = "use PostgreSQL, such as postgresql://host/budgets"
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux names the machine, and all containers on it, until it starts again."""
ALONE: Final = "look at the photo; another run tries it again, and pays again for what was drawn"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What every worker of a run is told; `of` makes one. It can be pickled, and holds no key of the store.

    `run` is the run's name, `fingerprint` that of the store, `version` that of dpveil, and `machine` where it
    was made.
    """

    store: str
    fingerprint: str
    version: str
    machine: str
    run: str
    files: bool
    urls: bool
    seconds: int
    releaser: Releaser = field(repr=False)

    @classmethod
    def of(
        cls,
        method: str | Method | None = None,
        *,
        store: str | Path,
        files: bool = False,
        urls: bool = False,
        seconds: int = SECONDS,
        **settings: Any,
    ) -> Setup:
        """Return the setup of a new run, and make its `store`, a folder that all machines see.

        With `files`, rows hold names of files, which workers open, and with `urls` also URLs of objects, with
        the stamps of `release_files`: only for names that come from nobody else. A photo on which a process
        works for more than `seconds` is taken for one of which processes die. `settings` are those of
        `Releaser.of`, where `ledger` has to be a URL. Raises errors of `dpveil.errors`.
        """
        if "cache" in settings:
            raise InvalidParameter("cache", "", "is not possible here", hint="name the store")
        given = settings.get("ledger")
        if given is not None and not isinstance(given, str):
            hint = "give its URL, such as postgresql://host/budgets"
            raise InvalidParameter("ledger", type(given).__name__, "cannot be sent to others", hint=hint)
        cache = Cache(Path(store).absolute())
        return cls(
            store=str(cache.folder),
            fingerprint=cache.fingerprint,
            version=version("dpveil"),
            machine=this_machine(),
            run=f"{time.time_ns():020d}-{secrets.token_hex(4)}",
            files=files,
            urls=urls,
            seconds=check_count(seconds, "seconds"),
            releaser=Releaser.of(method, **settings),
        )

    @property
    def outcomes(self) -> Outcomes:
        """What became of rows in this store with these settings."""
        return Outcomes(Path(self.store), self.releaser)

    @property
    def has_file_ledger(self) -> bool:
        """Whether the ledger is a file, whose locks cannot be relied on between machines."""
        ledger = self.releaser.ledger
        return isinstance(ledger, str) and ledger.lower().startswith("sqlite")

    def ready(self) -> Releaser:
        """Return the releaser for a process, with the store opened.

        Raises `UsageError` for another version of dpveil and for a SQLite ledger on another machine, and
        `OutputError` unless the folder is the run's store: on a machine that lacks it, every photo would be
        drawn again.
        """
        if version("dpveil") != self.version:
            problem = f"a machine has dpveil {version('dpveil')}, and the run {self.version}"
            raise UsageError(problem, hint="install one version on all of them")
        if self.has_file_ledger and this_machine() != self.machine:
            raise UsageError("a SQLite ledger is for one machine, and this is another", hint=POSTGRES)
        folder = Path(self.store)
        if is_present(folder / KEY):
            cache = Cache(folder)
            if cache.fingerprint == self.fingerprint:
                return replace(self.releaser, cache=cache)
        problem = f"{shown(folder)} is not the store of this run on every machine"
        raise OutputError(problem, hint="name a folder that all machines see, such as one on a network disk")


def this_machine() -> str:
    """Return what tells this machine from others while it runs."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return platform.node()


class Worker:
    """Releases rows, with the networks that it has loaded; it never raises for a row.

    After an error that is about no single photo, such as a ledger that fails, every row is untried. With
    `own`, the process belongs to the worker, which has it end when a photo takes too long.
    """

    def __init__(self, setup: Setup, *, own: bool = False) -> None:
        self._setup = setup
        self._timed = partial(limited, setup.seconds) if own else nullcontext
        self._tries = Tries(Path(setup.store) / FOLDER, setup.run)
        self._stopped: Exception | None = None
        self._log: Log | None = None
        try:
            self._releaser = setup.ready()
            self._log = setup.outcomes.add(setup.run)
        except DPVeilError as error:
            self._releaser, self._stopped = setup.releaser, error

    def __call__(self, rows: Sequence[tuple[str, str, object]]) -> list[Row]:
        """Return what became of each of these keys, stamps and contents, and write it down in the store.

        A content is the bytes of a file, or with `files` of the setup its name.
        """
        done = [self._row(*row) for row in rows]
        if self._log is not None:
            try:
                self._log.add(done)
            except OutputError as error:
                self._stopped = self._stopped or error
        return done

    def close(self) -> None:
        """Close the worker's files."""
        if self._log is not None:
            self._log.close()

    def _row(self, key: str, stamp: str, content: object) -> Row:
        try:
            if self._stopped is not None:
                return Row.of(key, stamp, self._stopped, tried=False)
            released = self._released(key, stamp, content)
        except ENDS as error:
            if getattr(error.__cause__, "errno", None) not in OTHERS:
                self._stopped = error
            return Row.of(key, stamp, error)
        except Exception as error:  # noqa: BLE001  one photo must not stop the rest, and nothing was written
            return Row.of(key, stamp, error)
        return Row(key, stamp, RELEASED, release=released)

    def _released(self, key: str, stamp: str, content: object) -> str:
        """Return the name of the release; raises `DPVeilError`."""
        if not key:
            raise PhotoError("the row has no name", hint="give each row one of its own")
        wanted = str if self._setup.files else bytes
        if not isinstance(content, wanted):
            hint = "give the bytes of image files, as ray.data.read_binary_files does"
            raise PhotoError(f"the row holds {type(content).__name__}", hint=hint)
        if isinstance(content, str):
            content = self._named(content, stamp)
        cache = self._releaser.cache
        if cache is None:
            raise OutputError("there is no store", hint="please report this")
        with self._tries.of(cache.name(name(key, ""))) as before:
            if before >= MOST:
                raise DPVeilError(DIED, hint=ALONE)
            path = self._releaser.release(content, row=key, timed=self._timed).path
        return "" if path is None else f"{path.parent.name}/{path.name}"

    def _named(self, called: str, stamp: str) -> Path:
        """Return a file, or an object as it was listed: reading refuses another version of it."""
        found = place(called) if self._setup.urls else Path(called)
        if isinstance(found, Url):
            return remade(called, Status(*map(int, stamp.split())), False, None)
        check_apart(self._releaser.ledger_files, [found])
        return found


class Tries:
    """Counts in `folder`, in one of its folders for each `run`, which all processes of the run share.

    A row has a file with one byte for every process that died of it, and one more while a process has it,
    which holds the lock beside it: no other process has the row then, so that nobody takes it for dead.
    Deaths are never taken back, and another run counts from zero.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder / run

    @contextmanager
    def of(self, name: str) -> Iterator[int]:
        """Have the row `name`, for which others wait; yield how many processes died of it before.

        An interrupt, or a signal that ends the process, counts as a death. Raises `OutputError`, also if
        another process has the row for too long.
        """
        path = self._folder / name[:2] / name[2:]
        with ExitStack() as stack:
            try:
                _lock(path.with_name(f"{path.name}.lock"), stack)
                before = _counted(path)
            except OSError as error:
                raise refusal(path, error) from error
            try:
                yield before
            except Exception:
                _take_back(path, before)
                raise
            _take_back(path, before)


def _lock(path: Path, stack: ExitStack) -> None:
    until = time.monotonic() + locking.PATIENCE
    while True:
        try:
            stack.enter_context(locking.alone(path))
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(PAUSE)
        else:
            return


def _counted(path: Path) -> int:
    """Count one more try; return how many there were before."""
    with path.open("ab") as file:
        file.write(b".")
        file.flush()
        return os.fstat(file.fileno()).st_size - 1


def _take_back(path: Path, before: int) -> None:
    with suppress(OSError):
        if before:
            os.truncate(path, before)
        else:
            path.unlink()
