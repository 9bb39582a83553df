"""Reading certificates of clips, which come from anyone: each is written again from its data and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dpveil.catalogue import stated
from dpveil.core.guarantee import counted
from dpveil.core.numbers import exact
from dpveil.core.origin import FACE, KIND, WHOLE
from dpveil.core.parameters import CEILING
from dpveil.core.signature import Signature
from dpveil.core.stated_json import loads
from dpveil.errors import INTACT, CertificateError, DPVeilError, MissingPlugin
from dpveil.io import MAX_PIXELS
from dpveil.postprocessing import stated as stated_step
from dpveil.video.asked import FIXED, MEAN, ON_LOST, OVER_TIME, check_word, draws_faces
from dpveil.video.certificate import SCHEMA, ClipOutput, VideoCertificate
from dpveil.video.path import POSES
from dpveil.video.plan_checks import MOST_FRAMES, MOST_TRACKS, check_text, whole
from dpveil.video.quote import ClipQuote, TrackRecord
from dpveil.video.track import ENDS
from dpveil.video.units import LONGEST, Event
from dpveil.video.words import WORDING

TOOL: Final = re.compile(r"dpveil [0-9][0-9A-Za-z.+!-]{0,60}")
EDITED: Final = "the certificate was edited: its text is not what its data give"


def parse_certificate(text: str) -> VideoCertificate:
    """Return the certificate of which `text` is the canonical form; raises `CertificateError` for any other.

    Nothing that it names is opened. Guarantees are computed again from method, parameters, tracks and sizes.
    """
    try:
        data = loads(text)
        if data["schema"] != SCHEMA:
            problem = "the certificate has another schema than that of a clip"
            raise CertificateError(problem, hint=f"this version reads {SCHEMA}")
        if data["wording"] != WORDING:
            hint = "verify it with the version of dpveil that wrote it"
            raise CertificateError("the certificate is in other words than this version writes", hint=hint)
        found = _certificate(data)
        written = found.to_text()
    except (CertificateError, MissingPlugin):
        raise
    except DPVeilError as error:
        raise CertificateError(f"the certificate is not as dpveil writes it: {error}", hint=INTACT) from error
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        raise CertificateError("the certificate is not as dpveil writes it", hint=INTACT) from error
    if written != text:
        raise CertificateError(EDITED, hint=f"do not rely on it; {INTACT}")
    return found


def _certificate(data: Mapping[str, Any]) -> VideoCertificate:
    output = data["output"]
    if not isinstance(data["tool"], str) or not TOOL.fullmatch(data["tool"]):
        raise ValueError("a tool of another name")
    signature = data.get("signature")
    return VideoCertificate(
        quote=_quote(data, output),
        bits=data["bits"],
        output=ClipOutput(output["sha256"], output["format"], exact(output["seconds"], "seconds")),
        terms={name: check_text(terms, "terms") for name, terms in data.get("terms", {}).items()},
        tool=data["tool"],
        signature=None if signature is None else Signature(signature["public_key"], signature["value"]),
    )


def _quote(data: Mapping[str, Any], output: Mapping[str, Any]) -> ClipQuote:
    width, height = (whole(output[name], name, 1, MAX_PIXELS) for name in ("width", "height"))
    if width * height > MAX_PIXELS:
        raise CertificateError(f"the certificate is of a clip of more than {MAX_PIXELS:,} pixels a frame")
    frames = whole(output["frames"], "frames", 1, MOST_FRAMES)
    for name in ("tracks", "rasters", "request", "post_processing"):
        if not isinstance(data[name], list) or len(data[name]) > MOST_TRACKS:
            raise CertificateError(f"the certificate has more than {counted(MOST_TRACKS, 'entry')} of {name}")
    if not isinstance(output["audio"], bool):
        raise ValueError("neither with nor without sound")
    method = stated(data["method"], data["parameters"])
    quote = ClipQuote(
        method=method,
        tracks=_tracks(data["tracks"], frames),
        sizes=tuple(None if size is None else _size(size, width, height) for size in data["rasters"]),
        request=tuple(check_text(each, "request") for each in data["request"]),
        post_processing=tuple(stated_step(each).description for each in data["post_processing"]),
        over_time=check_word("over_time", data["over_time"], OVER_TIME),
        pose=check_word("pose", data["pose"], POSES),
        on_lost=check_word("on_lost", data["on_lost"], ON_LOST),
        audio=output["audio"],
        width=width,
        height=height,
        frames=frames,
        event=None if data["event"] is None else _event(data["event"], frames),
    )
    _check_sizes(quote)
    return quote


def _tracks(listed: list[Any], frames: int) -> tuple[TrackRecord, ...]:
    tracks = tuple(TrackRecord(**each) for each in listed)
    before = 0
    for track in tracks:
        before = whole(track.number, "number", before + 1, MOST_FRAMES)
        whole(track.first, "first", 0, whole(track.last, "last", 0, frames - 1))
        if track.person is not None:
            whole(track.person, "person", 1, MOST_FRAMES)
        if not KIND.fullmatch(track.kind) or track.end not in ENDS or not isinstance(track.visible, bool):
            raise ValueError("a track that cannot be")
    return tracks


def _size(size: list[Any], width: int, height: int) -> tuple[int, int]:
    across, down = size
    return whole(across, "width", 1, width), whole(down, "height", 1, height)


def _check_sizes(quote: ClipQuote) -> None:
    """Raise `ValueError` unless each raster is one that a plan reads for such a person."""
    for group, size in zip(quote.persons, quote.sizes, strict=True):
        kind = group[0].kind
        if any(track.kind != kind for track in group):
            raise ValueError("one person of two kinds")
        crop = draws_faces(quote.method) and kind != WHOLE
        if (size is None and not crop) or (size is not None and crop and kind == FACE):
            raise ValueError("a raster where a crop is read, or none where it is")
        if kind == WHOLE and size != (quote.width, quote.height):
            raise ValueError("less than the whole picture")
        if quote.over_time == MEAN and (len(group) > 1 or kind not in FIXED):
            raise ValueError("a mean of what moves")
    if not quote.persons:
        raise ValueError("nothing is replaced")


def _event(data: Mapping[str, Any], frames: int) -> Event:
    seconds = exact(data["seconds"], "event_seconds")
    if not 0 < seconds <= LONGEST or len(data) != len(("seconds", "times", "frames")):
        raise ValueError("an event that cannot be")
    return Event(
        seconds, whole(data["times"], "times", 1, CEILING), whole(data["frames"], "frames", 1, frames)
    )
