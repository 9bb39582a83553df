"""Releases by Ray Data: actors that keep their networks, and hold a few photos at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from dpveil.core.numbers import keep_freed
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter, UsageError
from dpveil.mechanisms.method import Method
from dpveil.scale.worker import INSTALL, POSTGRES, SECONDS, Mapper, Setup

BATCH: Final = 64
"""Rows that an actor gets at a time."""
STATISTICS: Final = "RAY_USAGE_STATS_ENABLED"


def release(
    dataset: Any,
    method: str | Method | None = None,
    *,
    store: str | Path,
    column: str = "bytes",
    key: str = "path",
    keep: Iterable[str] = (),
    workers: int | None = None,
    batch: int = BATCH,
    seconds: int = SECONDS,
    **settings: Any,
) -> Any:
    """Return a `ray.data.Dataset` with a row for each row of `dataset`, another one; it is lazy, as all are.

    `column` has the bytes of image files, as of `ray.data.read_binary_files(..., include_paths=True)`, and
    `key` what rows are called, each once. Releases and certificates are written to `store`, a folder that all
    machines see, under names that follow from key and content: however often a row is met, after a death or
    in another run, it is drawn and paid for once. The columns of the result are those of `Mapper`; what
    was not released is in it with the reason, and never as an original. There are up to `workers` actors (as
    many as cores), each with `batch` rows; one that works on a photo for more than `seconds` is ended, and a
    row of which two die fails. `settings` are those of `Releaser.of`, where `ledger` is a URL. Raises
    errors of `dpveil.errors` that are about no single row.
    """
    ray = connected()
    if not isinstance(dataset, ray.data.Dataset):
        hint = "give a ray.data.Dataset, such as ray.data.read_binary_files(folder, include_paths=True)"
        raise InvalidParameter("dataset", type(dataset).__name__, "is no data set of Ray", hint=hint)
    setup = Setup.of(method, store=store, seconds=seconds, **settings)
    check_shared(setup)
    mapper = Mapper(setup, column=column, key=key, keep=keep, own=True)
    mapper.check(getattr(dataset.schema(), "base_schema", None))
    return mapped(dataset.select_columns(mapper.columns), mapper, workers=workers, batch=batch)


def mapped(dataset: Any, mapper: Mapper, *, workers: int | None, batch: int, least: int | None = 1) -> Any:
    """Return a data set of what the mapper makes of this one, by up to so many actors.

    There are at `least` so many, or all if that is None: then there is no core left for what reads the data.
    Ray Data starts actors that died again, and repeats their tasks, without end.
    """
    import ray

    most = cores() if workers is None else check_count(workers, "workers")
    return dataset.map_batches(
        Actor,
        fn_constructor_args=(mapper,),
        compute=ray.data.ActorPoolStrategy(min_size=least or most, max_size=most),
        batch_size=check_count(batch, "batch"),
        batch_format="pyarrow",
        num_cpus=1,
    )


class Actor:
    """What Ray Data makes in each of its processes: a mapper that has one core."""

    def __init__(self, mapper: Mapper) -> None:
        import cv2

        cv2.setNumThreads(1)
        keep_freed()
        self._mapper = mapper

    def __call__(self, table: Any) -> Any:
        """Return the columns of the result."""
        return self._mapper(table)


def connected() -> Any:
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
