"""Releasing many photos: selection, order, and reruns. Prints nothing and never exits the process."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.batch.away import planned
    from dpveil.batch.document import verify_inside
    from dpveil.batch.jobs import usual_jobs
    from dpveil.batch.releasing import is_priced, release_all
    from dpveil.batch.report import Entry, Failure, Promise, Report, check_manifest, write_manifest
    from dpveil.batch.task import Choices, Task, check_apart
    from dpveil.batch.tasks import among_originals, left_out, photos_in, plan_tasks

__all__ = [
    "Choices",
    "Entry",
    "Failure",
    "Promise",
    "Report",
    "Task",
    "among_originals",
    "check_apart",
    "check_manifest",
    "is_priced",
    "left_out",
    "photos_in",
    "plan_tasks",
    "planned",
    "release_all",
    "usual_jobs",
    "verify_inside",
    "write_manifest",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "away": "planned",
        "document": "verify_inside",
        "jobs": "usual_jobs",
        "releasing": "is_priced release_all",
        "report": "Entry Failure Promise Report check_manifest write_manifest",
        "task": "Choices Task check_apart",
        "tasks": "among_originals left_out photos_in plan_tasks",
    },
)
