"""Files and objects that all machines of a cluster see, released by Ray; what is finished is not read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpveil.batch.report import (
    FAILED,
    INTERRUPTED,
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
from dpveil.batch.state import Stamp, stamp_of
from dpveil.core.numbers import keep_freed
from dpveil.core.urls import Url
from dpveil.datasets.cache import RELEASES
from dpveil.errors import DPVeilError, PhotoError, UsageError
from dpveil.io.names import show_path
from dpveil.mechanisms.method import Method
from dpveil.scale.worker import INSTALL, POSTGRES, SECONDS, Row, Setup, Worker, name

BATCH: Final = 64
"""Rows that an actor gets at a time."""
STATISTICS: Final = "RAY_USAGE_STATS_ENABLED"


class Actor:
    """What Ray Data makes in each of its processes: a worker that has one core."""

    def __init__(self, setup: Setup) -> None:
        import cv2

        cv2.setNumThreads(1)
        keep_freed()
        self._worker = Worker(setup, own=True)

    def __call__(self, table: Any) -> Any:
        """Return what became of the files whose keys and stamps are in a table of Arrow."""
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
BLOCKS: Final = 4096
"""In how many parts the files of a large run are given out, about."""
PARTS_EACH: Final = 8
"""Into how many parts for each worker the files of a short run are divided, so that all end together."""
UNENCODABLE: Final = "its name is no UTF-8, which Ray cannot send"
UNLISTED: Final = ("was not listed", "list it by dpveil.batch.photos_in")


@dataclass(frozen=True)
class _Input:
    """A file or object, what it is called everywhere, and its version, which for an object is as listed."""

    path: Path
    key: str
    stamp: str

    @classmethod
    def of(cls, path: Path) -> _Input:
        stamp: Stamp | None = path.listed if isinstance(path, Url) else stamp_of(path)
        key = str(path if isinstance(path, Url) else path.absolute())
        return cls(path, key, "" if stamp is None else f"{stamp[0]} {stamp[1]}")  # reading reports an error

    @property
    def name(self) -> bytes:
        return name(self.key, self.stamp)

    @property
    def refusal(self) -> Row | None:
        """The outcome of one that no worker gets, or None."""
        if isinstance(self.path, Url) and (self.path.problem or not self.stamp):
            problem, remedy = self.path.problem or UNLISTED
            return Row.of(self.key, self.stamp, PhotoError(f"{show_path(self.path)} {problem}", hint=remedy))
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
    `Releaser.of`, where `ledger` is a URL. `paths` may be objects that `dpveil.batch.photos_in` listed; one
    that is another when it is read fails.
    A file that an earlier run released with the same settings is skipped without being read, unless its size
    or its time of change (of an object, its ETag) is another. Files without a release are in the table
    `failed.jsonl` of the store, too. Raises errors of `dpveil.errors` that are about no single file.
    """
    urls = [path for path in paths if isinstance(path, Url)]
    if not all(url.is_shared for url in urls):
        raise UsageError("memory:// is that of one process", hint="name files that all machines see")
    connect_ray()
    setup = Setup.of(method, store=store, urls=bool(urls), seconds=seconds, **settings)
    check_shared(setup)
    finished, inputs = setup.outcomes.finished_names(), list(map(_Input.of, paths))
    refused = {each.name: row for each in inputs if (row := each.refusal) is not None}
    if refused:
        setup.outcomes.add(setup.run).add([*refused.values()])
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
