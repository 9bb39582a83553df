"""Documents and clips: a worker releases them as the command line does, in a folder that the server removes.

The ledger pays for photos alone here, so that a service with a ledger refuses these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.certificate import parse_certificate
from dpveil.core.notes import Aside
from dpveil.errors import DPVeilError, UsageError
from dpveil.io.screening import format_name, is_clip_head
from dpveil.release.saving import certificate_path
from dpveil.service.request_settings import Request

if TYPE_CHECKING:
    from dpveil.batch.report import Entry
    from dpveil.batch.tasks import RunSettings, Task

    Progress = Callable[[str, int, int], None]  # that of clips: a stage, how much is done, and of how much

DOCUMENT: Final = "pdf"
CLIP: Final = "mp4"
FORMATS: Final = (DOCUMENT, CLIP)  # what releases that are no pictures are written as
HEAD: Final = 1024  # bytes within which a PDF says that it is one
IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  a folder of its own is made there
NAMES: Final = {DOCUMENT: "the document", CLIP: "the clip"}
UNPAID: Final = "documents and clips are not paid for here, and this service has a ledger"
PROGRESS: Final = "progress"


def format_of_release(contents: bytes) -> str:
    """Return what the release of a document or clip is written as; empty for anything else."""
    if format_name(contents[:64]):
        return ""  # a picture, whatever else its first bytes hold
    if b"%PDF-" in contents[:HEAD]:
        return DOCUMENT
    return CLIP if is_clip_head(contents[:HEAD]) else ""


@contextmanager
def work_folder() -> Iterator[Path]:
    """Have a folder for an original and its release, in memory where the system has such folders."""
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    with TemporaryDirectory(prefix="dpveil-", dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder)  # it goes also if the worker was killed


def read_progress(folder: Path) -> tuple[int, int] | None:
    """Return how much of the document or clip in a folder is done, and of how much, if its worker says it."""
    with suppress(OSError, ValueError):
        done, of = map(int, (folder / PROGRESS).read_text(encoding="ascii").split())
        return done, of
    return None


@contextmanager
def original_file(told: dict[str, Any], contents: bytes) -> Iterator[tuple[Task, Progress]]:
    """Have a document or clip as a file in its folder, and what notes there how much of it is done.

    Errors name no path. Where nobody waits any more, and the folder is gone, `UsageError` is raised.
    """
    from dpveil.batch.tasks import Task

    kind, folder = format_of_release(contents), Path(told["folder"])
    task = Task(folder / f"original.{kind}", folder / f"release.{kind}", f"release.{kind}")

    def progress(_: str, done: int, of: int) -> None:
        (folder / PROGRESS).write_text(f"{done} {of}", encoding="ascii")

    try:
        task.source.write_bytes(contents)
        yield task, progress
    except DPVeilError as error:
        texts = (_without_paths(text, task) for text in (error.message, error.hint))
        raise _error_of(type(error), *texts) from None
    except FileNotFoundError:
        raise UsageError("nobody waits for this any more") from None


def check_unpaid(*, paid: bool) -> None:
    """Raise `UsageError` where a ledger pays, as it pays for photos alone."""
    if paid:
        raise UsageError(UNPAID, hint="release it by dpveil obfuscate, which pays page by page")


def release_steps(told: dict[str, Any], contents: bytes) -> Iterator[tuple[Any, ...]]:
    """Release a document or clip, and yield its total and then the release, as a photo's."""
    check_unpaid(paid=told["paid"])
    kind = format_of_release(contents)
    with original_file(told, contents) as (task, progress):
        out, choices = task.output, choices_of(told)
        if kind == DOCUMENT:
            notes = _release_document(choices, task, progress)
        else:
            from dpveil.video.clip_in_batch import ClipRun

            notes = _notes([ClipRun(choices=choices).release(task, progress)])
        notes = [_without_paths(note, task) for note in notes]
    text, made = certificate_path(out).read_bytes(), out.read_bytes()
    certificate = certificate_of(kind, text.decode())
    total = None if certificate.composition is None else certificate.composition.to_json()
    yield ({"total": total, "covered": None, "room": len(text) + len(made) + (1 << 17)},)
    yield {"format": kind, "notes": notes}, text, made


def certificate_of(kind: str, text: str) -> Any:
    """Return the certificate of a file of one format; raises `CertificateError`."""
    if kind == DOCUMENT:
        from dpveil.release.document_certificate import parse_document

        return parse_document(text)
    if kind == CLIP:
        from dpveil.video.certificate import parse_certificate as parse_clip

        return parse_clip(text)
    return parse_certificate(text)


def format_of_certificate(text: str) -> str:
    """Return the format of the document or clip that a certificate is of; empty for a photo's."""
    return {"document": DOCUMENT, "clip": CLIP}.get(json.loads(text).get("kind"), "")


def stated_file(certificate: Any) -> tuple[str, str] | None:
    """Return the SHA-256 and the format of the file that a certificate is of, if it is of one."""
    if hasattr(certificate, "pages"):
        return certificate.sha256, DOCUMENT
    output = certificate.output
    return None if output is None else (output.sha256, output.format)


def contradictions_of(certificate: Any) -> list[str]:
    """Return how a certificate, or those of a document's pages, contradict themselves; no clip's does."""
    from dpveil.release.verification import contradictions

    pages = [page.certificate for page in getattr(certificate, "pages", ())]
    photos = pages if hasattr(certificate, "pages") or hasattr(certificate, "quote") else [certificate]
    return [text for photo in photos for text in contradictions(photo)]


def choices_of(told: dict[str, Any]) -> RunSettings:
    """Return the settings of a request as those of a run of the command line."""
    from dpveil.batch.tasks import RunSettings

    request = {**vars(Request.of(told["settings"]))}
    del request["format"]  # a photo's
    return RunSettings(**request, max_pixels=told["pixels"])


def _release_document(choices: RunSettings, task: Task, progress: Progress) -> list[str]:
    from dpveil.batch.run import release_all
    from dpveil.batch.tasks import plan_tasks

    tasks, done = plan_tasks([task.source], task.output), count(1)
    report = release_all(tasks, choices, step=lambda: progress("", next(done), len(tasks)))
    for entry in report.entries:
        if entry.failure is not None:
            raise _error_of(entry.failure.kind, entry.failure.message, entry.failure.hint)
    return [*report.documents, *_notes(report.released)]


def _without_paths(text: str, task: Task) -> str:
    source, out = task.source, task.output
    for path, name in ((source, NAMES[source.suffix[1:]]), (out, "the release"), (out.parent, "its folder")):
        text = text.replace(str(path), name)
    return text


def _error_of(kind: type[BaseException], message: str, hint: str) -> DPVeilError:
    plain = (one for one in kind.__mro__ if one.__init__ is DPVeilError.__init__)  # type: ignore[misc]
    error: type[DPVeilError] = next(plain, DPVeilError)
    return error(message, hint=hint)


def _notes(entries: list[Entry]) -> list[str]:
    texts = (text for entry in entries for text in entry.warnings if not isinstance(text, Aside))
    return [*dict.fromkeys(str(text) for text in texts)]
