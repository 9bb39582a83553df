"""The certificate of a document: its file, the certificates of its pages, and what these promise together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final

from dpveil.accounting.compose import compose, union
from dpveil.accounting.meaning import NONE, strength
from dpveil.core.certificate import Certificate
from dpveil.core.envelope import PUBLISHABLE, Envelope, Signature, parse, this_tool
from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.rationals import Json
from dpveil.core.region_origin import FACE, LINKED, TEXT
from dpveil.core.strict_json import Check, Hash, between, one_of, read_object
from dpveil.errors import INTACT, CertificateError, InvalidParameter, UnsupportedRelation
from dpveil.io.document import DPI, Sheet
from dpveil.release.keys import PublicKey
from dpveil.release.words import in_short, passed_notes, request_kind

MOST_BYTES: Final = 1 << 26  # largest certificate of a document, in bytes
MOST_PAGES: Final = 2000  # most pages of one document
COVERS: Final = "what is covered in {} pages, each as its certificate says"
COUNT: Final = "the number of pages, and the size of each"
NO_SUM: Final = "no sum over its pages"
"""The objection to documents of which a page is a copy, or whose pages' promises cannot be added."""
MOST_NAMED: Final = 4  # most pages that are named by their numbers
TEXT_STAYS: Final = "text was not looked for, and stays readable"
COUNTED: Final = Check(lambda pages: 0 < len(pages) <= MOST_PAGES, "are too many, or none")
MALFORMED: Final = "the certificate is no document's, or is malformed"


@dataclass(frozen=True)
class Page:
    """A page: its `number` in the original, from 1, the bytes of its stream, and its certificate."""

    number: int
    size: int
    certificate: Certificate

    @property
    def name(self) -> str:
        return page_name(self.number)

    @property
    def sheet(self) -> Sheet:
        """How it lies in the file; raises `CertificateError` if its certificate states no PNG."""
        output = self.certificate.output
        if output is None or output.format != "png" or output.manifest is not None:
            raise CertificateError(MALFORMED, hint=INTACT)
        return Sheet(output.width, output.height, output.channels, self.size)


@dataclass(frozen=True, kw_only=True)
class DocumentCertificate(Envelope):
    """What a released document promises: `to_text` is its canonical form, byte for byte.

    `sha256` and `size` are those of the PDF file's bytes, and `dpi` its resolution in pixels per inch.
    """

    kind: ClassVar[str] = "document"

    sha256: str
    size: int
    dpi: int
    pages: tuple[Page, ...]
    tool: str = ""
    signature: Signature | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", self.tool or this_tool())

    @cached_property
    def composition(self) -> Guarantee | None:
        """The sum over the protected pages, in the weakest of their relations; None if it is not known.

        Neighbours are documents of as many pages, of the same sizes, of which the same ones are kept as they
        are, and each other one is a neighbour of the other's. So a kept page is in the clear as what is
        around a region of a photo is, and a page that is independent of what it covers adds nothing.
        """
        known = [page.certificate.composition for page in self.pages if page.certificate.guarantees]
        totals = [total for total in known if total is not None]
        if len(totals) < len(known) or not totals:
            return None
        try:
            total = compose([each for each in totals if not each.free] or totals)
        except UnsupportedRelation:
            return None
        shown = union(*(each.scope for each in totals)).in_the_clear
        if any(page.certificate.parameters.get("link") for page in self.pages) and LINKED not in shown:
            shown = (*shown, LINKED)  # compositions that are read back have no scope
        kept = (f"{self.kept}: the guarantee compares documents of which it is the same",) * bool(self.kept)
        return replace(total, scope=Scope(COVERS.format(len(totals)), (COUNT, *kept, *shown)))

    @cached_property
    def strength(self) -> str | None:
        return None if self.composition is None else strength(self.composition)

    @property
    def copies(self) -> list[int]:
        return [page.number for page in self.pages if not page.certificate.guarantees]

    @property
    def protected(self) -> list[Page]:
        return [page for page in self.pages if page.certificate.guarantees]

    @property
    def kept(self) -> str:
        """Say which pages are kept as they are, beside others that are protected; empty if none is."""
        copies = [page for page in self.pages if not page.certificate.guarantees]
        missing = [text for page in copies for text in page.certificate.missing]
        return kept_pages(self.copies, nothing_of(missing)) if self.protected and copies else ""

    @cached_property
    def together(self) -> str:
        """What its pages promise together, in words, and whether it may be published; first, which are kept.

        It ends with what is not protected on the others, so far as the certificates of pages tell.
        """
        total, copies, count = self.composition, self.copies, len(self.protected)
        said = [self.kept] * bool(self.kept)
        if not count:
            said.append(f"{pages_text(copies)}: no guarantee: UNPROTECTED COPY")
        else:
            grade = "" if total is None or total.free else f" ({strength(total)})"
            promise = "nothing that can be added" if total is None else f"{in_short(total)}{grade}"
            other = "other " * bool(copies)
            which = f"1 {other}page" if count == 1 else f"{count:,} {other}pages together"
            said.append(f"{which}: {promise}: {'not ' * bool(self.objections)}publishable")
        return "; ".join([*said, *self._exposure_lines()])

    def _exposure_lines(self) -> Iterator[str]:
        drawn = self.protected
        missing: dict[str, list[int]] = {}
        for page in drawn:
            for text in page.certificate.missing:
                missing.setdefault(passed_notes([text])[0], []).append(page.number)
        for note, numbers in missing.items():
            yield f"{pages_text(numbers)}: {note}"
        legible = []  # pages of which faces were asked for, and nothing that covers text
        for page in drawn:
            asked = [request_kind(text) for text in page.certificate.request]
            whole = any(region.origin.fallback for region in page.certificate.regions)
            if FACE in asked and TEXT not in asked and not whole:
                legible.append(page.number)
        if legible:
            yield TEXT_STAYS + (f" on {pages_text(legible)}" if len(legible) < len(drawn) else "")

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the document should not be published: what is objected to pages, and to their sum."""
        judged = self.protected or self.pages
        reasons = dict.fromkeys(text for page in judged for text in page.certificate.objections)
        if self.composition is None:
            return (*reasons, NO_SUM)
        return (*reasons, *((NONE,) * (self.strength not in PUBLISHABLE)))

    def signed_by(self, keys: Sequence[PublicKey]) -> bool:
        return self.signature is not None and self.signature.public_key in [key.data.hex() for key in keys]

    def members(self) -> dict[str, Json]:
        return {
            "output": {"sha256": self.sha256, "format": "pdf", "bytes": self.size, "dpi": self.dpi},
            "pages": [
                {"page": page.number, "bytes": page.size, "certificate": page.certificate.to_json()}
                for page in self.pages
            ],
            "composition": None if self.composition is None else self.composition.numbers(),
            "strength": self.strength,
        }

    @classmethod
    def of_members(cls, data: Mapping[str, Any]) -> DocumentCertificate:
        stated = read_object(_Stated, data)
        pages = tuple(Page(each.page, each.bytes, each.certificate) for each in stated.pages)
        if any(one.number >= other.number for one, other in pairwise(pages)):
            raise InvalidParameter("pages", None, "are not in order")
        file = stated.output
        about = {"tool": stated.tool, "signature": stated.signature}
        return cls(sha256=file.sha256, size=file.bytes, dpi=file.dpi, pages=pages, **about)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _File:
    sha256: Hash
    format: str
    bytes: Annotated[int, between(1, 1 << 53)]
    dpi: Annotated[int, one_of(*DPI)]


@dataclass(frozen=True)
class _Page:
    page: Annotated[int, between(1, 1 << 53)]
    bytes: Annotated[int, between(1, 1 << 53)]
    certificate: Certificate


@dataclass(frozen=True)
class _Stated:
    """A document's certificate as it is written; what follows from its pages is not read."""

    output: _File
    pages: Annotated[tuple[_Page, ...], COUNTED]
    tool: str
    composition: Any
    strength: Any
    signature: Signature | None = None


def pages_text(numbers: Sequence[int]) -> str:
    """Return the first of some pages by their numbers, and how many more there are."""
    more = f" and {len(numbers) - MOST_NAMED:,} more" if len(numbers) > MOST_NAMED else ""
    return f"page{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:MOST_NAMED]))}{more}"


def nothing_of(missing: Sequence[str]) -> str:
    """Return what these requests did not find.

    >>> nothing_of(["faces", "text", "text threshold=0.5"])
    'no face or text'
    """
    kinds = dict.fromkeys(request_kind(text) or text.partition(" ")[0] for text in missing)
    return f"no {' or '.join(kinds)}"


def kept_pages(numbers: Sequence[int], nothing: str) -> str:
    """Say which pages are kept, as `nothing` was found on them.

    >>> kept_pages([2, 5], "no face")
    'pages 2 and 5: no face, kept as they are'
    """
    first, last = [*map(str, numbers[:-1])], str(numbers[-1])
    if len(numbers) == 1:
        return f"page {last}: {nothing}, kept as it is"
    listed = f"{', '.join(first)} and {last}" if len(numbers) <= MOST_NAMED else pages_text(numbers)[6:]
    return f"pages {listed}: {nothing}, kept as they are"


def page_name(number: int) -> str:
    return f"page-{number:04}.png"


def number_of(name: str) -> int:
    """Return the number of the page whose picture is called so by `page_name`."""
    return int(name[5:-4])


def parse_document(text: str) -> DocumentCertificate:
    """Return the certificate of a document of which `text` is the canonical form; see `parse`."""
    return parse(text, DocumentCertificate)
