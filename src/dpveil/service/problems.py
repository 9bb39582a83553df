"""Errors as problem+json (RFC 9457), in the words of the command line; one table has the statuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from dpveil.errors import DPVeilError, LedgerError
from dpveil.service import log

MEDIA_TYPE: Final = "application/problem+json"
STATUS: Final[Mapping[str, int]] = {
    kind: status
    for status, kinds in {
        400: "BadRequest",
        401: "Unauthorised",
        403: "Forbidden BudgetRefused BudgetExceeded RegionsDiffer",
        404: "NotFound",
        408: "TooSlow",
        409: "Conflict ReservationLost",
        410: "Gone AlreadyPaid",
        413: "TooLarge",
        415: "WrongType",
        421: "Misdirected",
        422: "KeyReused WorkerEnded UsageError InvalidParameter UnknownName PluginError MissingPlugin"
        " RegionError NoRegion UnsupportedRelation TooWeak PhotoError ClipError DataError OutputError"
        " ModelError NoiseError",
        429: "TooMany",
        500: "Lost CertificateError DPVeilError",
        503: "Busy NotKept LedgerError",
    }.items()
    for kind in kinds.split()
}
"""Kinds of errors, of the service itself and the classes of `dpveil.errors`."""
LEDGER_SECONDS: Final = 60  # seconds before another attempt where the ledger fails, as on a full disk
PHOTO: Final = "photo"
SETTINGS: Final = "settings"
CONCERNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("PhotoError", "ClipError", "RegionError", "NoRegion", "WorkerEnded"), PHOTO),
    **dict.fromkeys(("UsageError", "InvalidParameter", "UnknownName", "UnsupportedRelation"), SETTINGS),
}
"""What has to be changed after an error of a kind, where that follows from it."""


class ServiceError(DPVeilError):
    """An error of a `kind` in `STATUS`, which docstrings quote; `after` are seconds to wait."""

    def __init__(self, kind: str, message: str, *, hint: str = "", after: int | None = None) -> None:
        super().__init__(message, hint=hint or (f"ask again in {after} s" if after else ""))
        self.kind, self.after = kind, after


class WorkerEnded(ServiceError):
    """A worker ended, or was ended, while it read a photo: nothing was released."""

    def __init__(self, *, slow: float | None = None, memory: bool = False) -> None:
        self.slow = slow
        reason = f"takes longer than {slow:g} s" if slow else "ends the process that reads it"
        reason = "does not fit into memory" if memory else reason
        hint = "make the photo smaller, or choose fewer regions"
        super().__init__("WorkerEnded", f"the request {reason}", hint=hint)


class NotKept(ServiceError):
    """The results cannot be written, as on a full disk."""

    def __init__(self) -> None:
        super().__init__("NotKept", "the results cannot be written: their disk may be full", after=60)


class Lost(ServiceError):
    """A release was paid for and lost, for a `cause`: nothing was shown, and the budget is not given back."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            "Lost",
            f"a release was paid for and is lost, as {cause}: nothing was shown, and nothing is given back",
            hint="a new attempt draws anew, and costs again",
        )


def busy(message: str, after: int) -> ServiceError:
    """Return the error of a service that has no room for this many seconds."""
    return ServiceError("Busy", message, after=after)


def refusal(told: Mapping[str, Any]) -> ServiceError:
    """Return the error that a worker tells of; an unknown class counts as `DPVeilError`."""
    kind = str(told.get("kind"))
    known = kind if kind in STATUS else "DPVeilError"
    return ServiceError(known, str(told.get("message"))[:4000], hint=str(told.get("hint"))[:4000])


def error_kind(error: DPVeilError) -> str:
    """Return the name of an error's class, which a problem states as its type."""
    return error.kind if isinstance(error, ServiceError) else type(error).__name__


def status_of(error: DPVeilError) -> int:
    """Return the HTTP status of an error; that of the nearest known class for one of another package."""
    kinds = (error_kind(error), *(kind.__name__ for kind in type(error).__mro__))
    return next((STATUS[kind] for kind in kinds if kind in STATUS), 500)


def problem(error: DPVeilError, status: int | None = None) -> dict[str, Any]:
    """Return the problem details of an error.

    >>> problem(ServiceError("NotFound", "there is no such release"))["status"]
    404
    """
    kind, status = error_kind(error), status or status_of(error)
    after = getattr(error, "after", None) or (LEDGER_SECONDS if status == STATUS["LedgerError"] else None)
    return {
        "type": f"urn:dpveil:error:{kind}",
        "title": error.message,
        "status": status,
        **({"about": CONCERNS[kind]} if kind in CONCERNS else {}),
        **({"hint": error.hint} if error.hint else {}),
        **({"retry_after": after} if after else {}),
    }


@contextmanager
def lost_if(payment: object) -> Iterator[None]:
    """Raise `Lost` for errors once there is a payment: what it paid for is not drawn a second time."""
    try:
        yield
    except Exception as error:
        if payment is None:
            raise
        log.error("lost")
        cause = "the service failed"
        if isinstance(error, WorkerEnded):
            cause = f"drawing it took longer than {error.slow:g} s" if error.slow else "its worker ended"
        elif isinstance(error, NotKept):
            cause = "it could not be written to the results"
        elif isinstance(error, LedgerError):
            cause = "the ledger could not note its file"
        elif isinstance(error, ServiceError):
            cause = f"its draw was refused: {error.message}"
        raise Lost(cause) from error
