"""Plans of clips: which tracks are replaced and how, and the guarantee, before anything is drawn.

They are JSON that people edit: every value is checked, and nothing that a plan names is opened.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from dpveil.assets.file_reference import terms_of
from dpveil.catalogue import build
from dpveil.core.guarantee import Guarantee, count_noun
from dpveil.core.parameters import Parameter
from dpveil.core.rationals import Json
from dpveil.core.region import VECTORS, CoverageDigests
from dpveil.core.region_origin import WHOLE
from dpveil.core.registry import METHODS
from dpveil.core.strict_json import at_most, fault, one_of, read
from dpveil.errors import DPVeilError, InvalidParameter, RegionsDiffer, UnknownName, suggestion
from dpveil.io.names import check_path, escape_text, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import read_untrusted
from dpveil.mechanisms.method import Method
from dpveil.postprocessing import Step
from dpveil.postprocessing import step_from_certificate as stated_step
from dpveil.release.quote import require_strength
from dpveil.release.saving import Payment as Debit
from dpveil.release.words import staying_note
from dpveil.video import words
from dpveil.video.certificate import ClipOutput, VideoCertificate
from dpveil.video.facts import (
    MOST_TRACKS,
    Facts,
    Key,
    Text,
    Track,
    TrackRecord,
    check_name,
    check_size,
    check_tracks,
)
from dpveil.video.places import Scene
from dpveil.video.quote import CROP, ClipQuote, Draw, draws_faces, draws_of, size_of

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

SCHEMA: Final = "dpveil.video-plan/1"
WIDTH: Final = 100  # objects and lists that fit into so many characters are written in one line


def _json_text(value: Json, line: str) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list) or len(text) + len(line) <= WIDTH:
        return text
    deeper = line + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_json_text(each, deeper)}" for name, each in value.items()]
        return "{" + deeper + ("," + deeper).join(parts) + line + "}"
    return "[" + deeper + ("," + deeper).join(_json_text(each, deeper) for each in value) + line + "]"


@dataclass(frozen=True, kw_only=True)
class VideoPlan:
    """How a clip will be treated by `method`; nothing was drawn, nothing spent.

    `clip` is the name of its file, without a folder. `cuts` are the first frames of shots but the first.
    `request` describes the finders, as in a certificate. It is the owner's: it tells
    what the clip shows. Raises `InvalidParameter` for what cannot be, and `RegionError` if
    nothing would be replaced.
    """

    clip: str
    facts: Facts
    method: Method
    tracks: tuple[Track, ...]
    cuts: tuple[int, ...] = ()
    request: tuple[str, ...] = ()
    keep_audio: bool = False
    post_processing: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.clip)
        check_size(self.facts, self.cuts)
        check_tracks(self.tracks, self.facts.frames)
        if self.keep_audio and not self.facts.audio:
            raise InvalidParameter(
                "keep_audio", True, "is asked of a clip without sound", hint="leave it out"
            )
        object.__setattr__(self, "tracks", tuple(sorted(self.tracks, key=lambda track: track.number)))
        _ = self.quote.total  # raises what cannot be promised

    def __repr__(self) -> str:
        """Return the method and the guarantee only: a representation ends up in logs."""
        return f"VideoPlan({self.method.name}, {count_noun(len(self.draws), 'draw')}, {self.total})"

    @cached_property
    def draws(self) -> tuple[Draw, ...]:
        stated = zip(self._draws, self.quote.guarantees, strict=True)
        return tuple(replace(draw, guarantee=guarantee) for draw, guarantee in stated)

    @cached_property
    def quote(self) -> ClipQuote:
        """The guarantee, from data that the certificate states, too."""
        boxes = [draw.raster for draw in self._draws]
        return ClipQuote(
            method=self.method,
            tracks=tuple(map(TrackRecord.of, self.tracks)),
            sizes=tuple(None if box is None else (box.w, box.h) for box in boxes),
            request=self.request,
            post_processing=tuple(step.description for step in self.post_processing),
            audio=self.keep_audio,
            width=self.facts.width,
            height=self.facts.height,
            frames=self.facts.frames,
        )

    @cached_property
    def scene(self) -> Scene:
        facts = self.facts
        return Scene(
            width=facts.width,
            height=facts.height,
            rate=float((facts.frames - 1) / facts.seconds) if facts.seconds else 1.0,
            method=self.method,
            tracks=tuple(track for track in self.tracks if not track.visible),
            steps=self.post_processing,
        )

    @cached_property
    def _draws(self) -> tuple[Draw, ...]:
        return draws_of(self.scene)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return self.quote.guarantees

    @property
    def total(self) -> Guarantee:
        return self.quote.total

    @property
    def strength(self) -> str:
        """The strength of the total: strong, moderate, weak or practically none."""
        return self.quote.strength

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that is to be known before a release, except about the bit source."""
        linked = {track.person for track in self.tracks} != {None}
        alone = (words.UNLINKED,) * (len(self.draws) > 1 and not linked and not self.total.free)
        stay = [track.number for track in self.tracks if track.visible]
        stay_note = staying_note(stay, by_likeness=False, what="track")
        return (*stay_note, *self.quote.warnings, *self.doubts, *self.method.notes, *alone)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What its owner has to look at before a release, which no certificate has."""
        replaced, found = self.scene.tracks, words.doubts(self.tracks, self.facts)
        throughout = [t.kind == WHOLE and (t.first, t.last) == (0, self.facts.frames - 1) for t in replaced]
        if not any(throughout) or self.facts.frames == 1:
            return found
        return (*found, words.STILL.format(f"{float(self.facts.seconds):.3g}"))

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a release by this plan reveals of the original."""
        return self.quote.in_the_clear

    @property
    def left_out(self) -> tuple[str, ...]:
        """What of the clip's file is not in a release, in words."""
        return (*self.facts.dropped, *(("the sound",) * (self.facts.audio and not self.keep_audio)))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the plan's canonical text: plans that render the same have the same."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    def to_text(self) -> str:
        """Return the canonical text, which `parse_plan` reads."""
        facts = self.facts
        about: dict[str, Json] = {
            "name": self.clip,
            "sha256": facts.sha256,
            "format": facts.format,
            "codec": facts.codec,
            "width": facts.width,
            "height": facts.height,
            "time_base": str(facts.time_base),
            "start": facts.start,
            "steps": [list(step) for step in facts.steps],
            "audio": facts.audio,
            "dropped": list(facts.dropped),
        }
        listed: list[Json] = [
            {
                "number": track.number,
                "kind": track.kind,
                "finder": track.finder,
                "score": track.score,
                "person": track.person,
                "visible": track.visible,
                "end": track.end,
                "keys": [dict(vars(key)) for key in track.keys],
            }
            for track in self.tracks
        ]
        data: dict[str, Json] = {"schema": SCHEMA, "clip": about, **self.settings}
        data |= {"cuts": list(self.cuts), "tracks": listed}
        return _json_text(data, "\n") + "\n"

    @cached_property
    def coverage(self) -> CoverageDigests:
        """The clip and what of it is replaced, which a ledger compares between releases of one clip.

        A clip is the bytes of its file. Costs of several releases add up to a promise about what all of them
        cover, so all that decides that counts: the replaced tracks with their keys, the shape that the method
        replaces, also whether a face is shown there, and whether the sound is kept. It
        is the same for all debits of a plan, as a draw is shown beside what the others' regions hide. Where
        singular vectors are in the clear, their rasters count as well, as in `CoverageDigests.of`.
        """
        names = ("protect", "placing")
        scene = self.scene
        hidden: list[Json] = [[t.kind, scene.shows_face(t), *map(_place, t.keys)] for t in scene.tracks]
        shape: Json = [str(getattr(self.method, name, "")) for name in names]
        data: dict[str, Json] = {
            "faces": draws_faces(self.method),
            "shape": shape,
            "audio": self.keep_audio,
            "tracks": sorted(hidden, key=json.dumps),
        }
        if any(guarantee.relation.name == VECTORS for guarantee in self.guarantees):
            read: list[Json] = [[draw.key.frame, str(draw.raster)] for draw in self._draws]
            data["drawn"] = sorted(read, key=json.dumps)
        text = json.dumps(data, sort_keys=True).encode()
        clip = _digest(b"clip\0" + bytes.fromhex(self.facts.sha256))
        return CoverageDigests(clip, _digest(b"tracks\0" + text))

    @property
    def settings(self) -> dict[str, Json]:
        return self.quote.settings

    def certificate(self, bits: str, output: ClipOutput) -> VideoCertificate:
        """Return the certificate of a release by this plan: a file, made with a kind of `bits`."""
        terms = terms_of((self.method, *self.post_processing))
        return VideoCertificate(quote=self.quote, bits=bits, output=output, terms=terms)

    def prepare(self) -> None:
        """Raise any error that would prevent a draw, before budget is spent: call it before paying."""
        for draw in {(d.method, d.raster and (d.raster.h, d.raster.w)): d for d in self.draws}.values():
            draw.method.prepare(**size_of(draw.raster) or CROP)

    def check_strength(self, least: str | None) -> None:
        """Raise `TooWeak` if the total is below `least` (strong, moderate or weak)."""
        require_strength(least, self.strength, self.total)


def _place(key: Key) -> list[Json]:
    return [key.frame, key.x, key.y, key.w, key.h, key.roll, key.yaw]


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@dataclass(frozen=True, kw_only=True)
class Payer:
    """Who pays for a clip, if anybody does; raises `InvalidParameter` for what does not belong together."""

    ledger: Ledger | None = None
    subject: str | None = None
    other_regions: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.ledger is None:
            for name in ("subject", "other_regions"):
                if getattr(self, name):
                    raise InvalidParameter(name, None, "is given without a ledger", hint="give a ledger, too")
        elif self.subject is None:
            raise InvalidParameter("subject", None, "is missing", hint="name who pays, such as album-7")
        elif self.seed is not None:
            problem = "is reproducible, and no budget pays for that"
            raise InvalidParameter("seed", self.seed, problem, hint="leave out the seed, or the ledger")

    @property
    def payer(self) -> list[str] | None:
        """The names of the ledger and of who pays; None if nobody does."""
        return None if self.ledger is None or self.subject is None else [self.ledger.name, self.subject]

    def check(self, plan: VideoPlan, nonce: str | None = None) -> None:
        """Raise `BudgetRefused` or `RegionsDiffer` unless a plan can be paid, or is, by this nonce."""
        if self.ledger is None or self.subject is None or self.is_paid(nonce):
            return
        if not self.other_regions:
            with _of_clips():
                self.ledger.check_regions(plan.coverage)
        self.ledger.check_room(self.subject, [plan.total])

    def is_paid(self, nonce: str | None) -> bool:
        """Whether the rendering with this nonce was debited."""
        return nonce is not None and self._debit(nonce) is not None

    def pay(self, plan: VideoPlan, nonce: str) -> None:
        """Debit the clip once, whatever process did so; raises `BudgetRefused` and `LedgerError`."""
        if self.ledger is not None and self.subject is not None and not self.is_paid(nonce):
            with _of_clips():
                self.ledger.debit(
                    self.subject,
                    plan.total,
                    _unit(nonce),
                    covered=plan.coverage,
                    other_regions=self.other_regions,
                )

    def note(self, nonce: str, sha256: str) -> None:
        """Let the ledger know the file before it gets its name."""
        debit = self._debit(nonce)
        if self.ledger is None or self.subject is None or debit is None:
            return
        if sha256 not in self.ledger.find(self.subject, _unit(nonce)):
            debit.stored(sha256)

    def _debit(self, nonce: str) -> Debit | None:
        if self.ledger is None or self.subject is None:
            return None
        return self.ledger.unfinished(self.subject, _unit(nonce))


@contextmanager
def _of_clips() -> Iterator[None]:
    """Let errors of a ledger, which are about photos, be about clips."""
    try:
        yield
    except RegionsDiffer as error:
        error.rename("photo", "clip")
        raise


def _unit(nonce: str) -> str:
    return f"clip {nonce}"


MOST_BYTES: Final = 1 << 25


def read_plan(path: str | Path) -> VideoPlan:
    """Return the plan in a file; raises `UsageError` that names the field and the value which is wrong."""
    file = Path(check_path(path, "give the name of a plan, such as plan.json"))
    try:
        text = read_untrusted(file, MOST_BYTES).decode()
    except Refused as refusal:
        hint = refusal.remedy if file.exists() else "make one with dpveil video analyze"
        raise InvalidParameter("plan", show_path(file), refusal.problem, hint=hint) from refusal
    except UnicodeDecodeError as error:
        raise InvalidParameter("plan", show_path(file), "is not UTF-8 text", hint=AGAIN) from error
    return parse_plan(text)


AGAIN: Final = "make it again with dpveil video analyze"


def parse_plan(text: str) -> VideoPlan:
    """Return the plan that `text` states, which may be written in any form of JSON.

    Raises errors of `dpveil.errors`, one line each, that name the field and its value.
    """
    try:
        return _plan(read(_Stated, json.loads(text)))
    except DPVeilError:
        raise
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        raise InvalidParameter("plan", None, problem, hint=f"mend it there, or {AGAIN}") from error
    except (ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
        raise InvalidParameter("plan", None, "is not the JSON of a plan", hint=AGAIN) from error


@dataclass(frozen=True)
class _Stated:
    """A plan as its file states it; a person who edits it may leave out what has a default."""

    schema: Annotated[str, one_of(SCHEMA)]
    clip: Mapping[str, Any]  # its name, and `Facts`
    method: str
    tracks: tuple[Track, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    request: Annotated[tuple[Text, ...], at_most(MOST_TRACKS)] = ()
    post_processing: tuple[Text, ...] = ()
    keep_audio: bool = False
    cuts: tuple[int, ...] = ()


def _plan(stated: _Stated) -> VideoPlan:
    clip = dict(stated.clip)
    return VideoPlan(
        clip=check_name(clip.pop("name", None)),
        facts=read(Facts, clip, "clip"),
        method=_method(stated.method, stated.parameters),
        tracks=stated.tracks,
        cuts=stated.cuts,
        request=stated.request,
        post_processing=tuple(stated_step(step) for step in stated.post_processing),
        keep_audio=stated.keep_audio,
    )


def _method(name: str, parameters: Mapping[str, Any]) -> Method:
    """Return a method by name; parameters that are left out have their defaults, and none names a file."""
    if name not in METHODS:
        raise UnknownName("method", escape_text(name)[:60], METHODS)
    kind = METHODS[name]
    names = {each.name: inspect.getattr_static(kind, each.name) for each in fields(kind)}
    known = {each: static for each, static in names.items() if isinstance(static, Parameter)}
    for given in parameters:
        if given not in known:
            hint = f"{suggestion(given, known)}its fields are {', '.join(known)}"
            raise fault(f"parameters.{escape_text(given)[:60]}", parameters[given], "is unknown", hint)
    return build(name, {n: None if v is None else known[n].stated(v) for n, v in parameters.items()})
