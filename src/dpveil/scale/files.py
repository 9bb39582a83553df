"""Files and objects that all machines of a cluster see, released by Ray; what is finished is not read.

First what a worker does with a few rows, whatever hands them out, and what it writes down of them; then Ray.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

from dpveil import errors
from dpveil.batch.report import (
    FAILED,
    INTERRUPTED,
    NO_REGION,
    RELEASED,
    SKIPPED,
    UNPAYABLE,
    UNSTARTED,
    UNTRIED,
    UNWRITABLE,
    Entry,
    Failure,
    Report,
    Untried,
)
from dpveil.batch.state import stamp_of
from dpveil.batch.tasks import check_apart
from dpveil.core.parameters import check_count
from dpveil.core.rationals import keep_freed_memory
from dpveil.core.received import one_of, read
from dpveil.core.urls import Url
from dpveil.datasets.training_releases import ENDS, KEY, RELEASES, Cache, Releaser
from dpveil.errors import DPVeilError, InvalidParameter, NoRegion, OutputError, PhotoError, UsageError
from dpveil.io import is_present, make_folder, write_together
from dpveil.io.names import show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted import open_untrusted
from dpveil.io.writing import OWN, refusal
from dpveil.mechanisms.method import Method
from dpveil.opencv import cv2
from dpveil.processes import limit_seconds

STATUSES: Final = (RELEASED, FAILED, NO_REGION, UNTRIED)


@dataclass(frozen=True)
class Row:
    """What became of the row `key`: one of the `STATUSES`.

    `release` is the name of its PNG in the store's folder of releases, or else `error` the name of a class of
    `dpveil.errors`, `problem` what is wrong, and `hint` the remedy. `stamp` tells versions of a file apart.
    """

    key: str
    stamp: str
    status: Annotated[str, one_of(*STATUSES)]
    release: str = ""
    error: str = ""
    problem: str = ""
    hint: str = ""

    @classmethod
    def of(cls, key: str, stamp: str, error: Exception, *, tried: bool = True) -> Row:
        """Return the row of which nothing was released because of this error."""
        failure = Failure.of(error, {})
        status = UNTRIED if not tried else NO_REGION if isinstance(error, NoRegion) else FAILED
        own = (kind.__name__ for kind in failure.kind.__mro__ if kind.__module__ == errors.__name__)
        named = next(own, DPVeilError.__name__)
        return cls(key, stamp, status, error=named, problem=failure.message, hint=failure.hint)

    @property
    def failure(self) -> Failure | None:
        if self.status == RELEASED:
            return None
        kind = getattr(errors, self.error, DPVeilError)
        known = isinstance(kind, type) and issubclass(kind, DPVeilError)
        return Failure(kind if known else DPVeilError, self.problem, self.hint)

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, line: str) -> Row | None:
        """Return the row of a line that `to_line` wrote, or None: a process may be killed while it writes."""
        try:
            return read(cls, json.loads(line))
        except ValueError:  # as `InvalidParameter` is
            return None


FOLDER: Final = "outcomes"
"""The folder of these files in a store. It names inputs: it is for their owner only."""
FAILURES: Final = "failed.jsonl"  # the table of rows without a release, in a store


class Outcomes:
    """What became of the rows of all runs in the folder `store` with the settings of `releaser`.

    Who pays is one of them: what another ledger or subject paid for, or nobody, is not finished. Raises
    `LedgerError` if the ledger cannot be opened.
    """

    def __init__(self, store: Path, releaser: Releaser) -> None:
        chosen = [releaser.settings, releaser.if_none, releaser.at_least, releaser.payer]
        settings = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
        self.store, self.folder = store, store / FOLDER / settings

    def new_file(self, run: str) -> Path:
        """Return a new file for what this process does in a `run`, whose name sorts after earlier ones."""
        return self.folder / f"{run}-{secrets.token_hex(8)}.jsonl"

    def rows(self, run: str = "") -> Iterator[Row]:
        """Yield all rows of a run, or of all runs, the earliest first; one that was retried comes again.

        What cannot be read is left out: its photos are met again, and found by their content.
        """
        for path in sorted(self.folder.glob(f"{run}*.jsonl")):
            with suppress(Refused), open_untrusted(path) as (file, _):
                for line in file:
                    if (row := Row.parse(line.decode(errors="replace"))) is not None:
                        yield row

    def finished_names(self) -> set[bytes]:
        """Return the names, by `name`, of all rows whose release is there; about 100 bytes for each."""
        there = self.store / RELEASES
        released = (row for row in self.rows() if row.status == RELEASED and is_present(there / row.release))
        return {name(row.key, row.stamp) for row in released}

    def final(self, run: str) -> Iterator[Row]:
        """Yield one row of a run for each key: the release if there is one, else the last."""
        done: set[bytes] = set()
        others: dict[bytes, Row] = {}
        for row in self.rows(run):
            which = name(row.key, row.stamp)
            if row.status != RELEASED:
                others[which] = row
            elif which not in done:
                done.add(which)
                yield row
        yield from (row for which, row in others.items() if which not in done)

    def write_failed(self, run: str) -> Path:
        """Write the table of the rows of a run without a release, as JSON lines, for their owner only.

        Return its path. Raises `OutputError`.
        """
        path = self.store / FAILURES
        lines = (row.to_line() for row in self.final(run) if row.status != RELEASED)
        write_together([(path, "".join(lines).encode())], replace=True, private=True)
        return path


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Append rows to the file of one process, which the first of them makes; raises `OutputError`."""
    try:
        make_folder(path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, OWN), "ab") as file:
            file.write("".join(row.to_line() for row in rows).encode())
    except OSError as error:
        raise refusal(path, error) from error


def name(key: str, stamp: str) -> bytes:
    """Return 16 bytes that stand for a row: which one it is, and which version of it."""
    return hashlib.blake2b(json.dumps([key, stamp]).encode(), digest_size=16).digest()


TRIES_FOLDER: Final = "tries"
MOST_DEATHS: Final = 2  # how many processes may die of a row
SECONDS: Final = 100
"""The usual limit of the time for one photo: shorter than others wait for a lock that its process holds."""
OTHERS: Final = (errno.EBUSY, errno.EEXIST)
"""Errors of a store where another process has the photo: the one that waits for long, or comes second."""
DIED: Final = "the processes that released it ended: killed, out of memory, crashed on it, or out of time"
POSTGRES: Final = "use PostgreSQL, such as postgresql://host/budgets"
ALONE: Final = "look at the photo; another run tries it again, and pays again for what was drawn"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What every worker of a run is told; `of` makes one. It can be pickled, and holds no key of the store.

    `run` is the run's name, `fingerprint` that of the store, and `version` that of dpveil.
    """

    store: str
    fingerprint: str
    version: str
    run: str
    seconds: int
    releaser: Releaser = field(repr=False)

    @classmethod
    def of(
        cls,
        method: str | Method | None = None,
        *,
        store: str | Path,
        seconds: int = SECONDS,
        **settings: Any,
    ) -> Setup:
        """Return the setup of a new run, and make its `store`, a folder that all machines see.

        Workers open the files that rows name: only for names that come from nobody else. A photo on which a
        process works for more than `seconds` is taken for one of which processes die. `settings` are those
        of `Releaser.of`, where `ledger` has to be a URL. Raises errors of `dpveil.errors`.
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
            run=f"{time.time_ns():020d}-{secrets.token_hex(4)}",
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

        Raises `UsageError` for another version of dpveil, and `OutputError` unless the folder is the run's
        store: on a machine that lacks it, every photo would be drawn again.
        """
        if version("dpveil") != self.version:
            problem = f"a machine has dpveil {version('dpveil')}, and the run {self.version}"
            raise UsageError(problem, hint="install one version on all of them")
        folder = Path(self.store)
        if is_present(folder / KEY):
            cache = Cache(folder)
            if cache.fingerprint == self.fingerprint:
                return replace(self.releaser, cache=cache)
        problem = f"{show_path(folder)} is not the store of this run on every machine"
        raise OutputError(problem, hint="name a folder that all machines see, such as one on a network disk")


class Worker:
    """Releases rows, with the networks that it has loaded; it never raises for a row.

    After an error that is about no single photo, such as a ledger that fails, every row is untried. With
    `own`, the process belongs to the worker, which has it end when a photo takes too long.
    """

    def __init__(self, setup: Setup, *, own: bool = False) -> None:
        self._setup = setup
        self._timed = partial(limit_seconds, setup.seconds) if own else nullcontext
        self._tries = Tries(Path(setup.store) / TRIES_FOLDER, setup.run)
        self._stopped: Exception | None = None
        self._file: Path | None = None
        try:
            self._releaser = setup.ready()
            self._file = setup.outcomes.new_file(setup.run)
        except DPVeilError as error:
            self._releaser, self._stopped = setup.releaser, error

    def __call__(self, rows: Sequence[tuple[str, str, str | bytes]]) -> list[Row]:
        """Return what became of each of these keys, stamps and contents, and write it down in the store.

        A content is the name of a file, or its bytes.
        """
        done = [self._row(*row) for row in rows]
        if self._file is not None:
            try:
                append_rows(self._file, done)
            except OutputError as error:
                self._stopped = self._stopped or error
        return done

    def _row(self, key: str, stamp: str, content: str | bytes) -> Row:
        try:
            if self._stopped is not None:
                return Row.of(key, stamp, self._stopped, tried=False)
            released = self._release(key, stamp, content)
        except ENDS as error:
            if getattr(error.__cause__, "errno", None) not in OTHERS:
                self._stopped = error
            return Row.of(key, stamp, error)
        except Exception as error:  # noqa: BLE001  one photo must not stop the rest, and nothing was written
            return Row.of(key, stamp, error)
        return Row(key, stamp, RELEASED, release=released)

    def _release(self, key: str, stamp: str, content: str | bytes) -> str:
        if isinstance(content, str):
            check_apart(self._releaser.ledger_files, [Path(content)])
        photo = Path(content) if isinstance(content, str) else content
        cache = self._releaser.cache
        if cache is None:
            raise OutputError("there is no store", hint="please report this")
        with self._tries.of(cache.name(name(key, ""))) as before:
            if before >= MOST_DEATHS:
                raise DPVeilError(DIED, hint=ALONE)
            path = self._releaser.release(photo, row=key, timed=self._timed).path
        return "" if path is None else f"{path.parent.name}/{path.name}"


class Tries:
    """Counts in `folder`, in one of its folders for each `run`, which all processes of the run share.

    A row has a file with one byte for every process that died of it, and one more while a process has it.
    Deaths are never taken back, and another run counts from zero.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder / run

    @contextmanager
    def of(self, name: str) -> Iterator[int]:
        """Have the row `name`; yield how many processes died of it before.

        An interrupt, or a signal that ends the process, counts as a death. Raises `OutputError`.
        """
        path = self._folder / name[:2] / name[2:]
        try:
            make_folder(path.parent)
            with path.open("ab") as file:
                file.write(b".")
                file.flush()
                before = os.fstat(file.fileno()).st_size - 1
        except OSError as error:
            raise refusal(path, error) from error
        try:
            yield before
        except Exception:
            _take_back(path, before)
            raise
        _take_back(path, before)


def _take_back(path: Path, before: int) -> None:
    with suppress(OSError):
        if before:
            os.truncate(path, before)
        else:
            path.unlink()


INSTALL: Final = "pip install 'dpveil[scale]'"


BATCH: Final = 64  # rows that an actor gets at a time
STATISTICS: Final = "RAY_USAGE_STATS_ENABLED"


class Actor:
    """What Ray Data makes in each of its processes: a worker that has one core."""

    def __init__(self, setup: Setup) -> None:
        cv2.setNumThreads(1)
        keep_freed_memory()
        self._worker = Worker(setup, own=True)

    def __call__(self, table: Any) -> Any:
        keys, stamps = (table.column(name).to_pylist() for name in ("key", "stamp"))
        rows = self._worker(list(zip(keys, stamps, keys, strict=True)))
        columns = {"status": [row.status for row in rows], "problem": [row.problem for row in rows]}
        return type(table).from_pydict(columns)


def connect_ray() -> Any:
    """Return Ray, connected to the cluster of RAY_ADDRESS, or to one that is started on this machine.

    Without an address, Ray would connect to any cluster that a file in its temporary folder names, which
    other users of the machine may write. A cluster that is started here sends no statistics to Ray's makers.
    Raises `UsageError`.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UsageError("Ray is not installed", hint=INSTALL) from error
    if not ray.is_initialized():
        os.environ.setdefault(STATISTICS, "0")
        try:
            ray.init(os.environ.get("RAY_ADDRESS") or "local", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            problem = f"the cluster cannot be reached: {' '.join(str(error).split())}"
            raise UsageError(problem, hint="see RAY_ADDRESS") from error
    return ray


def cores() -> int:
    """Return how many cores the cluster has."""
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def check_shared(setup: Setup) -> None:
    """Raise `UsageError` for a SQLite ledger on a cluster of several machines.

    Locks of files on network disks cannot be relied on, and a debit may be lost. Workers on machines that
    join later refuse it themselves.
    """
    import ray

    machines = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if setup.has_file_ledger and len(machines) > 1:
        problem = f"a SQLite ledger is for one machine, and the cluster has {len(machines)}"
        raise UsageError(problem, hint=POSTGRES)


REASONS: Final = {"LedgerError": UNPAYABLE, "OutputError": UNWRITABLE}
"""Why a run ends early, by the class of an error; after any other one its processes cannot go on."""
BLOCKS: Final = 4096  # in how many parts the files of a large run are given out, about
PARTS_EACH: Final = 8
"""Into how many parts for each worker the files of a short run are divided, so that all end together."""
UNENCODABLE: Final = "its name is no UTF-8, which Ray cannot send"


@dataclass(frozen=True)
class _Input:
    """A file, what it is called everywhere, and its version."""

    path: Path
    key: str
    stamp: str

    @classmethod
    def of(cls, path: Path) -> _Input:
        stamp, key = stamp_of(path), str(path.absolute())
        return cls(path, key, "" if stamp is None else f"{stamp[0]} {stamp[1]}")  # reading reports an error

    @property
    def name(self) -> bytes:
        return name(self.key, self.stamp)

    @property
    def refusal(self) -> Row | None:
        """The outcome of one that no worker gets, or None."""
        try:
            self.key.encode()
        except UnicodeEncodeError:
            hint = "rename it, or release it without an engine"
            return Row.of(self.key, self.stamp, PhotoError(UNENCODABLE, hint=hint))
        return None


def release_files(
    paths: Sequence[Path],
    method: str | Method | None = None,
    *,
    store: str | Path,
    workers: int | None = None,
    seconds: int = SECONDS,
    step: Callable[[], None] = lambda: None,
    **settings: Any,
) -> Report:
    """Release files into a `store`, calling `step` after each; return the report, in the order of the files.

    Releases and certificates are written to `store`, a folder that all machines see, under names that follow
    from a file's name and content: however often a file is met, after a death or in another run, it is drawn
    and paid for once. There are up to `workers` processes, as many as cores if that is None; one that works
    on a photo for more than `seconds` is ended, and a photo of which two die fails. `settings` are those of
    `Releaser.of`, where `ledger` is a URL.

    A file that an earlier run released with the same settings is skipped without being read, unless its size
    or its time of change is another. Files without a release are in the table
    `failed.jsonl` of the store, too. Raises errors of `dpveil.errors` that are about no single file.
    """
    if any(isinstance(path, Url) for path in paths):
        raise UsageError(
            "objects by URL are released without an engine", hint="name files that all machines see"
        )
    connect_ray()
    setup = Setup.of(method, store=store, seconds=seconds, **settings)
    check_shared(setup)
    finished, inputs = setup.outcomes.finished_names(), list(map(_Input.of, paths))
    refused = {each.name: row for each in inputs if (row := each.refusal) is not None}
    if refused:
        append_rows(setup.outcomes.new_file(setup.run), [*refused.values()])
    todo = [each for each in inputs if each.name not in finished and each.name not in refused]
    for _ in range(len(inputs) - len(todo)):
        step()
    report = Report()
    problem = _release_files(setup, todo, workers, step, report)
    known = {name(row.key, row.stamp): row for row in setup.outcomes.final(setup.run)}
    for each in inputs:
        row = known.get(each.name)
        if each.name in finished:
            entry = Entry(SKIPPED, each.path)
        elif row is None:
            entry = Entry(UNTRIED, each.path, failure=Failure.of(problem, {}))
        else:
            output = Path(setup.store, RELEASES, row.release) if row.status == RELEASED else None
            entry = Entry(row.status, each.path, output, failure=row.failure)
        report.entries.append(entry)
    setup.outcomes.write_failed(setup.run)
    return report


def _release_files(
    setup: Setup, todo: Sequence[_Input], workers: int | None, step: Callable[[], None], report: Report
) -> DPVeilError:
    """Release the files; return why others were not reached, and note it in the report if some were not."""
    if not todo:
        return Untried(UNSTARTED)
    import ray.exceptions

    try:
        for row in _rows(setup, todo, workers or cores()):
            if row["status"] == UNTRIED:
                last = [each.error for each in setup.outcomes.final(setup.run) if each.status == FAILED]
                report.stopped = next((REASONS[each] for each in last if each in REASONS), UNSTARTED)
                return DPVeilError(row["problem"])
            step()
    except KeyboardInterrupt:
        report.stopped = INTERRUPTED
    except ray.exceptions.RayError as error:
        report.stopped = UNSTARTED
        report.notes.append(f"Ray ended: {' '.join(str(error).split())[:300]}")
    return Untried(report.stopped or UNSTARTED)


def _rows(setup: Setup, todo: Sequence[_Input], workers: int) -> Iterator[dict[str, Any]]:
    import pyarrow
    import ray.data

    table = pyarrow.table({"key": [each.key for each in todo], "stamp": [each.stamp for each in todo]})
    batch = max(1, min(BATCH, len(todo) // (PARTS_EACH * workers)))
    size = max(batch, len(todo) // BLOCKS)
    parts = [table.slice(start, size) for start in range(0, len(todo), size)]
    most = min(workers, len(parts))
    released = ray.data.from_arrow(parts).map_batches(
        Actor,
        fn_constructor_args=(setup,),
        # Ray Data starts actors that died again, and repeats their tasks, without end: `Tries` bounds that
        compute=ray.data.ActorPoolStrategy(min_size=most, max_size=most),
        batch_size=batch,
        batch_format="pyarrow",
        num_cpus=1,
    )
    for part in released.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from part.to_pylist()
