"""A run over many photos: locks, shards, what it costs, the processes that release, and its end.

Its road: `tasks` (which photo becomes which output) → `PhotoReleaser` (one photo), here or in `workers` →
`shards` and `remote_output` (where releases go together, or elsewhere) → `report`.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from dpveil.batch.interrupts import Interrupts
from dpveil.batch.photo_release import PhotoReleaser
from dpveil.batch.remote_output import WAITING, check_shared, is_whole
from dpveil.batch.report import INTERRUPTED, PRICED, UNAFFORDABLE, Report
from dpveil.batch.state import state_path
from dpveil.batch.tasks import RunSettings, Task, check_apart
from dpveil.batch.workers import WorkerPool, check_jobs, ignore_release
from dpveil.core.rationals import exact, show
from dpveil.errors import BudgetExceeded, BudgetRefused, OutputError
from dpveil.io.locking import hold_lock
from dpveil.io.names import show_path
from dpveil.opencv import cv2
from dpveil.release.plan import Plan
from dpveil.release.saving import Release


def release_all(
    tasks: Sequence[Task],
    choices: RunSettings,
    *,
    jobs: int = 1,
    start: Callable[[], Any] | None = None,
    step: Callable[[], None] = lambda: None,
    summarise: Callable[[Task, Plan, Release | None], Any] = ignore_release,
    collect: Callable[[Any], None] = ignore_release,
    priced: Callable[[Report], None] = ignore_release,
    options: Mapping[str, str] | None = None,
    interrupts: Interrupts | None = None,
) -> Report:
    """Release every photo, calling `step` after each, and return the report, in the order of the tasks.

    With several `jobs`, so many other processes release them, on one core each; this one pays and signs. They
    are on a cluster with its `start` (`ray_workers.cluster`). `summarise` is called with each release where
    it is written, or with None where photos are only planned, and `collect` here with what it returned. A run
    that `is_priced` first plans all photos, calling `step` after each, and calls `priced` with what they
    cost, before anything is paid. None of the three may raise.

    Continues after the failure of a single photo; stops if nothing can be written any more, the ledger fails,
    or on an interrupt, and then reports the remaining photos as untried, as all are if a ledger has less left
    than they cost together. What is being drawn at an interrupt is drawn and written. A caller that is to
    hear interrupts until it has told the report enters `interrupts` itself. With `options`, such as
    {"force": "--force"}, errors write arguments as on the command line. Raises `UsageError` and
    `OutputError`, before anything is drawn, if an input or output belongs to the ledger, `jobs` is no number
    of processes that the settings can be sent to, or another run with a ledger writes to the same folder.
    """
    check_jobs(jobs)
    count = min(jobs, len(tasks))
    check_shared(tasks, count + (start is not None))
    run = PhotoReleaser(
        choices, Report(options or {}, dry=choices.dry), lambda *release: collect(summarise(*release))
    )
    dry = PhotoReleaser(replace(choices, dry=True), Report(options or {}), run.released, states=run.states)

    def workers(releaser: PhotoReleaser) -> WorkerPool | None:
        return WorkerPool(releaser, tasks, summarise, collect, start) if count > (0 if start else 1) else None

    pool, shards = workers(run), None
    with ExitStack() as stack:
        heard = stack.enter_context(Interrupts()) if interrupts is None else interrupts
        with heard.raising():
            if choices.ledger is not None:
                check_apart(choices.ledger.files, [path for task in tasks for path in task.paths])
            if choices.ledger is not None and not choices.dry:
                stack.enter_context(_sole_payer(tasks))
                _check_writable(tasks)
            if any(task.inside is not None for task in tasks):
                from dpveil.batch.shards import gather_shards

                shards = stack.enter_context(gather_shards(tasks, choices))
        try:
            with heard.raising():
                if shards is not None:
                    shards.unpack()
                run.begin(tasks)
            if is_priced(choices, tasks):
                _release(dry, workers(dry), tasks, count, step, heard)
                check_price(choices, dry.report)
                priced(dry.report)
            _release(run, pool, tasks, count, step, heard)
        except KeyboardInterrupt:
            run.report.stop(tasks, INTERRUPTED)
        except BudgetRefused as error:
            run.report.stop(tasks, UNAFFORDABLE, error)
        waiting = {task.output for task in tasks if task.remote is not None and is_whole(task.output)}
        paid = run.paid - waiting
        run.report.discard({place for place, task in enumerate(tasks) if task.output in paid})
        if waiting and not choices.dry:
            folder = show_path(min(waiting).parent)
            run.report.notes.append(WAITING.format(number=len(waiting), folder=folder))
        if shards is not None:
            shards.keep_pages(run.report)
            shards.pack(run.report)
    return run.report


@contextmanager
def _sole_payer(tasks: Sequence[Task]) -> Iterator[None]:
    """Keep other runs from paying for the same releases until this one ends, however it ends."""
    # A run locks the folder that it fills, or, for a single photo, its output alone: runs of one photo each
    # may fill a folder side by side. Files of many photos have locks of their own (`gather_shards`).
    with ExitStack() as stack:
        places = set()
        for task in tasks:
            if task.shard is None:
                # the output may be in a folder below; what is put elsewhere waits side by side
                depth = 0 if task.remote is not None else task.name.count("/")
                places.add(task.output.parents[depth] if len(tasks) > 1 else task.output)
        for place in sorted(places):
            try:
                stack.enter_context(hold_lock(state_path(place).with_suffix(".lock")))
            except OSError as error:  # of another kind where a state file has no place
                if error.errno == errno.EBUSY:
                    problem = f"another run is releasing to {show_path(place)}"
                    raise OutputError(problem, hint="wait until it has ended") from error
        yield


def _check_writable(tasks: Sequence[Task]) -> None:
    for folder in sorted({task.output.parent for task in tasks}):
        there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            problem = f"cannot write to {show_path(folder)}: permission denied"
            raise OutputError(problem, hint="choose another {out}", arguments={"out": "out"})


def _release(
    run: PhotoReleaser,
    pool: WorkerPool | None,
    tasks: Sequence[Task],
    jobs: int,
    step: Callable[[], None],
    heard: Interrupts,
) -> None:
    """Release every photo; one that is drawn, or being drawn, when the run is stopped is still written.

    In this process, the next photos are read and planned while one is drawn and written.
    """
    if pool is not None:
        pool.release(jobs, step, heard)
        return
    stopped = list[str]()
    run.stop_reason = lambda _: stopped[0] if stopped else ""
    with (
        heard.raising() if run.choices.dry else heard.handled_by(partial(stopped.append, INTERRUPTED)),
        prefetch(run.prepare, tasks, at_once=min(finder.at_once for finder in run.choices.regions)) as ready,
    ):
        for task, waiting in ready:
            if stopped:
                break
            if reason := run.finish(task, waiting):
                stopped.append(reason)
            step()
    if stopped:
        run.report.stop(tasks, stopped[0])


Item = TypeVar("Item")
Made = TypeVar("Made")


@contextmanager
def prefetch(
    make: Callable[[Item], Made], items: Sequence[Item], *, at_once: int
) -> Iterator[Iterable[tuple[Item, Callable[[], Made]]]]:
    """Yield the items in order, each with a function that waits for the result of `make(item)`.

    `make` runs in `at_once` other threads. During a turn, the results of at most `at_once` + 2 items exist.
    On leaving the context, running calls are waited for and all others are cancelled.

    >>> with prefetch(abs, [-1, 2], at_once=2) as made:
    ...     [(item, result()) for item, result in made]
    [(-1, 1), (2, 2)]
    """
    at_once = max(1, min(at_once, len(items)))
    before, workers = cv2.getNumThreads(), ThreadPoolExecutor(at_once, thread_name_prefix="prefetch")
    cv2.setNumThreads(max(1, before - at_once + 1))  # it runs one caller at a time on its threads

    def in_turn() -> Iterator[tuple[Item, Callable[[], Made]]]:
        later = iter(items)
        begun = deque((item, workers.submit(make, item)) for item in islice(later, at_once + 1))
        while begun:
            item, now = begun.popleft()
            begun.extend((following, workers.submit(make, following)) for following in islice(later, 1))
            yield item, now.result

    try:
        yield in_turn()
    finally:
        workers.shutdown(cancel_futures=True)
        cv2.setNumThreads(before)


def is_priced(choices: RunSettings, tasks: Sequence[Task]) -> bool:
    """Whether a run is to be priced beforehand: photos are paid for, and the method costs something.

    The price of each is compared again when it is paid, so nothing depends on this but what is said
    beforehand: what they cost, that not all of them can be paid, and that a release would be pure noise.
    """
    return choices.ledger is not None and not choices.dry and bool(tasks) and not choices.free


def check_price(choices: RunSettings, dry: Report, *, fewest: int = 2) -> None:
    """Raise `BudgetRefused` if the ledger has less left than all releases of a run cost together.

    Nothing is raised for less than the `fewest` releases: of a single one, paying tells it. `dry` is the
    report of the dry run. What is released already costs nothing there, and what failed will be reported by
    the run. Raises `KeyboardInterrupt` if it was interrupted.
    """
    if dry.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    totals = [entry.promise.total for entry in dry.of(PRICED) if entry.promise and not entry.paid]
    paid = [total for total in totals if total is not None]
    if len(paid) < fewest:
        return
    ledger: Any = choices.ledger
    try:
        ledger.check_room(choices.subject, paid)
    except BudgetExceeded as error:
        if len(paid) == 1:
            raise
        more = show(exact(error.asked) - exact(error.left))
        have = f"{error.subject} has {error.unit} {error.left} left"
        raise BudgetRefused(
            f"{have}, and {len(paid):,} photos cost {error.asked} together",
            hint=f"release fewer, use what costs nothing, such as fill, or raise its limit by {more}",
        ) from error
