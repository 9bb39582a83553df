"""What runs in a process of its own (`io.pdf`): PDFium, which a damaged file may end.

It is started as a script, and needs nothing but pypdfium2. The first line on its standard input is the
PDF's size, and the PDF follows; then each line asks about one page. Answers are lines of JSON; pixels follow
the answer of a page that was drawn.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from contextlib import suppress
from typing import IO, Any, Final

import pypdfium2
from pypdfium2 import raw

MEMORY: Final = 1 << 32
"""Most memory that the process gets, in bytes, where the system can limit it."""
LONGEST: Final = 120
"""Seconds after which a page ends the process."""
POINTS: Final = 72
"""Points in an inch, the unit of a page's size (ISO 32000-1 §8.3.2.3)."""
ENCRYPTED: Final = "encrypted"
DAMAGED: Final = "damaged"


def opened(contents: bytes) -> Any:
    """Return the document, whose forms are drawn as they are filled in, or why it is not opened.

    Nothing in it is run: no JavaScript, no action, no link.
    """
    try:
        document = pypdfium2.PdfDocument(contents)
        document.init_forms()
    except pypdfium2.PdfiumError:
        return ENCRYPTED if raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD else DAMAGED
    return document


def size(points: tuple[float, float], dpi: int) -> tuple[int, int]:
    """Return width and height in pixels, rounded up as PDFium is asked to draw them; raises `ValueError`."""
    if not all(math.isfinite(side) and side > 0 for side in points):
        raise ValueError("the page has no size")
    width, height = (math.ceil(side * (dpi / POINTS)) for side in points)
    return width, height


def drawn(page: Any, dpi: int) -> tuple[int, int, bytes]:
    """Return width, height and RGB levels of a page as it is shown, over white."""
    bitmap = page.render(
        scale=dpi / POINTS,
        fill_color=(255, 255, 255, 255),
        draw_annots=True,
        may_draw_forms=True,
        maybe_alpha=False,
        grayscale=False,
        prefer_bgrx=False,
        rev_byteorder=True,
    )
    width, height, stride = bitmap.width, bitmap.height, bitmap.stride
    if bitmap.n_channels != 3:
        raise ValueError("the page is not drawn as RGB")
    rows = memoryview(bitmap.buffer).cast("B")
    if stride == 3 * width:
        return width, height, bytes(rows[: height * stride])
    return width, height, b"".join(rows[y * stride : y * stride + 3 * width] for y in range(height))


def has_few_colours(image: Any) -> bool:
    """Return whether an image of a page has a palette, or fewer than 8 bits for each level."""
    found = raw.FPDF_IMAGEOBJ_METADATA()
    if not raw.FPDFImageObj_GetImageMetadata(image.raw, image.page.raw, found):
        return True  # unknown
    indexed = found.colorspace == raw.FPDF_COLORSPACE_INDEXED
    return bool(indexed or found.bits_per_pixel < 8)


def answer(document: Any, asked: dict[str, int], answers: IO[bytes]) -> None:
    """Write the size of a page and, if it has at most `most` pixels, its levels."""
    page = document[asked["page"]]
    try:
        few = int(any(map(has_few_colours, page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=15))))
        width, height = size(page.get_size(), asked["dpi"])
        contents = b""
        if 0 < width * height <= asked["most"]:
            width, height, contents = drawn(page, asked["dpi"])
    finally:
        page.close()
    told = {"width": width, "height": height, "bytes": len(contents), "few": few}
    answers.write(json.dumps(told).encode() + b"\n" + contents)


def serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    """Answer lines about a document until there are no more."""
    alarm = getattr(signal, "alarm", lambda _: None)  # there is none on Windows
    alarm(LONGEST)
    document = opened(asked.read(int(asked.readline())))
    told = {"refused": document} if isinstance(document, str) else {"pages": len(document)}
    answers.write(json.dumps(told).encode() + b"\n")
    answers.flush()
    alarm(0)
    if isinstance(document, str):
        return
    for line in asked:
        alarm(LONGEST)
        try:
            answer(document, json.loads(line), answers)
        except (pypdfium2.PdfiumError, ValueError, OverflowError, MemoryError, IndexError):
            answers.write(json.dumps({"refused": DAMAGED}).encode() + b"\n")
        answers.flush()
        alarm(0)


def main() -> None:
    """Serve on the standard streams, within limits; no file is written, and prints go nowhere."""
    with suppress(ImportError, ValueError, OSError):  # no such limits, or lower ones
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
