"""Errors as problem+json (RFC 9457), in the words of the command line; one table has the statuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from dpveil.errors import DPVeilError, LedgerError
from dpveil.service import log

MEDIA_TYPE: Final = "application/problem+json"


class ServiceError(DPVeilError):
    """An error of the service itself; `status` is the HTTP status, `after` the seconds to wait, if any."""

    status = 400
    after: int | None = None


class BadRequest(ServiceError):
    """The request is malformed."""


class Unauthorised(ServiceError):
    """There is no API key, or an unknown one."""

    status = 401


class Forbidden(ServiceError):
    """The key may not do this, or the request comes from another site."""

    status = 403


class NotFound(ServiceError):
    """There is nothing at this address, or nothing any more."""

    status = 404


class TooSlow(ServiceError):
    """The request did not arrive in time."""

    status = 408


class Conflict(ServiceError):
    """The request does not fit what is going on."""

    status = 409


class Gone(ServiceError):
    """The release was made, paid and forgotten."""

    status = 410


class TooLarge(ServiceError):
    """The request is larger than the service reads."""

    status = 413


class WrongType(ServiceError):
    """The body is not of a type that this address takes."""

    status = 415


class Misdirected(ServiceError):
    """The request was sent to another name than the service's."""

    status = 421


class KeyReused(ServiceError):
    """An Idempotency-Key came with another photo or other settings."""

    status = 422


class TooMany(ServiceError):
    """A key asks more often than it may."""

    status = 429

    def __init__(self, message: str, *, after: int, hint: str = "") -> None:
        super().__init__(message, hint=hint or f"ask again in {after} s")
        self.after = after


class Busy(TooMany):
    """The service has no room now."""

    status = 503


class WorkerEnded(ServiceError):
    """A worker ended, or was ended, while it read a photo: nothing was released."""

    status = 422

    def __init__(self, *, slow: float | None = None, memory: bool = False) -> None:
        self.slow = slow
        reason = f"takes longer than {slow:g} s" if slow else "ends the process that reads it"
        reason = "does not fit into memory" if memory else reason
        super().__init__(f"the request {reason}", hint="make the photo smaller, or choose fewer regions")


class NotKept(Busy):
    """The results cannot be written, as on a full disk."""

    def __init__(self) -> None:
        super().__init__("the results cannot be written: their disk may be full", after=60)


class Lost(ServiceError):
    """A release was paid for and lost, for a `cause`: nothing was shown, and the budget is not given back."""

    status = 500

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"a release was paid for and is lost, as {cause}: nothing was shown, and nothing is given back",
            hint="a new attempt draws anew, and costs again",
        )


STATUS: Final[Mapping[str, int]] = {
    "UsageError": 422,
    "InvalidParameter": 422,
    "UnknownName": 422,
    "PluginError": 422,
    "MissingPlugin": 422,
    "RegionError": 422,
    "NoRegion": 422,
    "UnsupportedRelation": 422,
    "BudgetRefused": 403,
    "BudgetExceeded": 403,
    "RegionsDiffer": 403,
    "AlreadyPaid": 410,
    "ReservationLost": 409,
    "LedgerError": 503,
    "TooWeak": 422,
    "PhotoError": 422,
    "ClipError": 422,
    "DataError": 422,
    "OutputError": 422,
    "ModelError": 422,
    "CertificateError": 500,
    "NoiseError": 422,
    "DPVeilError": 500,
}
"""The status of each class of `dpveil.errors`; those of the service have their own."""
LEDGER_SECONDS: Final = 60
"""Seconds before another attempt where the ledger fails, as on a full disk."""
PHOTO: Final = "photo"
SETTINGS: Final = "settings"
CONCERNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("PhotoError", "ClipError", "RegionError", "NoRegion", "WorkerEnded"), PHOTO),
    **dict.fromkeys(("UsageError", "InvalidParameter", "UnknownName", "UnsupportedRelation"), SETTINGS),
}
"""What has to be changed after an error of a class, where that follows from it."""


class Refusal(DPVeilError):
    """An error that a worker reports: `kind` is its class, in `dpveil.errors`."""

    def __init__(self, kind: str, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


def refusal(told: Mapping[str, Any]) -> Refusal:
    """Return the error that a worker tells of; an unknown class counts as `DPVeilError`."""
    kind = str(told.get("kind"))
    return Refusal(
        kind if kind in STATUS else "DPVeilError",
        str(told.get("message"))[:4000],
        str(told.get("hint"))[:4000],
    )


def kind_of(error: DPVeilError) -> str:
    """Return the name of an error's class, which a problem states as its type."""
    return error.kind if isinstance(error, Refusal) else type(error).__name__


def status_of(error: DPVeilError) -> int:
    """Return the HTTP status of an error; that of the nearest known class for one of another package."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, Refusal):
        return STATUS[error.kind]
    known = (STATUS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in STATUS)
    return next(known, 500)


def problem(error: DPVeilError) -> dict[str, Any]:
    """Return the problem details of an error.

    >>> problem(NotFound("there is no such release"))["status"]
    404
    """
    kind = kind_of(error)
    return {
        "type": f"urn:dpveil:error:{kind}",
        "title": error.message,
        "status": status_of(error),
        **({"about": CONCERNS[kind]} if kind in CONCERNS else {}),
        **({"hint": error.hint} if error.hint else {}),
        **({"retry_after": after} if (after := _after(error)) else {}),
    }


def _after(error: DPVeilError) -> int | None:
    """Return the seconds to wait before another attempt, where waiting helps."""
    if isinstance(error, ServiceError):
        return error.after
    return LEDGER_SECONDS if status_of(error) == Busy.status else None


@contextmanager
def lost_if(payment: object) -> Iterator[None]:
    """Raise `Lost` for errors once there is a payment: what it paid for is not drawn a second time."""
    try:
        yield
    except Exception as error:
        if payment is None:
            raise
        log.error("lost")
        raise Lost(_cause(error)) from error


def _cause(error: Exception) -> str:
    """Return why a release that was paid for is lost, as a clause."""
    if isinstance(error, WorkerEnded):
        return f"drawing it took longer than {error.slow:g} s" if error.slow else "its worker ended"
    if isinstance(error, NotKept):
        return "it could not be written to the results"
    if isinstance(error, LedgerError):
        return "the ledger could not note its file"
    return f"its draw was refused: {error.message}" if isinstance(error, Refusal) else "the service failed"
