"""The review page: the regions that each new release replaces, least certain first, for a person to check."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from dpveil.batch.tasks import check_written, is_beside_output, places_of
from dpveil.cli import say
from dpveil.core.array_types import Bool, UInt8
from dpveil.core.guarantee import count_noun
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter, UsageError
from dpveil.io.folders import real
from dpveil.io.names import show_path
from dpveil.io.writing import write_together
from dpveil.opencv import cv2
from dpveil.regions.tiling import downscale
from dpveil.release.saving import Release
from dpveil.release.words import passed_notes

if TYPE_CHECKING:
    from PIL import ImageDraw

    from dpveil.batch.report import Report
    from dpveil.batch.tasks import Task
    from dpveil.release.plan import Plan
    from dpveil.video.plan import VideoPlan


FLAT: Final = 2  # width by height of a box from which it is one of a line of text
LEAST: Final = 800  # least longer side of a preview in pixels: smaller photos are enlarged so that labels fit

Place = tuple[int, int, int, int]
"""Left, top, right and bottom of a rectangle on the page, in pixels, all of them in it."""
EDGE: Final = (255, 214, 10)
KEPT: Final = (90, 200, 250)  # the colours of what is replaced, and of faces that are chosen to stay
INK: Final = (20, 20, 20)


@dataclass(frozen=True)
class Shown:
    """One region of the preview: number, box, score if any, and the mask of replaced pixels in the box.

    A place that may be a face, and is not replaced, has no number. A face that is chosen to stay is `kept`.
    """

    number: int | None
    box: Box
    score: float | None
    mask: Bool[np.ndarray, "h w"] | None = None
    kept: bool = False

    @property
    def colour(self) -> tuple[int, int, int]:
        return KEPT if self.kept else EDGE


def check_name(path: Path, option: str = "--preview") -> None:
    """Raise `InvalidParameter` unless the `path` of an option has the suffix .png."""
    if path.suffix.lower() != ".png":
        raise InvalidParameter(option, str(path), "is not the name of a PNG file", hint="end it in .png")


def check_apart_from(sources: Sequence[Path], written: Mapping[str, Path | None], *, replace: bool) -> None:
    """Raise any error that would prevent writing these files, by their options, before anything is read."""
    for option, path in written.items():
        if path is not None:
            if option != "--out":
                check_name(path, option)
            check_written(path, sources, what=option, replace=replace)


def draw_preview(photo: Photo, faces: Sequence[Shown]) -> UInt8[np.ndarray, "h w 3"]:
    """Return `photo` with the box, the number and the score of each face, and masks tinted."""
    from PIL import ImageDraw  # with fonts it takes 20 ms, and is seldom needed

    times = max(1, -(-LEAST // max(photo.width, photo.height)))
    image = np.broadcast_to(photo.image, (photo.height, photo.width, 3)).copy()
    for face in faces:
        if face.mask is not None:
            part = image[face.box.slices]
            part[face.mask] = part[face.mask] // 2 + np.array(EDGE, np.uint8) // 2
    page = Image.fromarray(image)
    page = page.resize((photo.width * times, photo.height * times), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(page)
    line, places = max(2, max(page.size) // 500), list[Place]()
    for face in faces:
        box = face.box
        corners = box.x * times, box.y * times, (box.x + box.w) * times - 1, (box.y + box.h) * times - 1
        draw.rectangle(corners, outline=INK, width=line + 2)
        draw.rectangle(corners, outline=face.colour, width=line)
        places.append(corners)
    for face, place in zip(faces, places, strict=True):  # labels last
        _label(draw, face, place, page.size)
    return np.asarray(page)


def _label(draw: ImageDraw.ImageDraw, face: Shown, place: Place, page: tuple[int, int]) -> None:
    from PIL import ImageFont

    number = "?" if face.number is None else f"{face.number}"
    score = "" if face.score is None else f"{face.score:.2f}"
    left, top, right, bottom = place
    line_of_text = right - left > FLAT * (bottom - top)
    size = int(min(max(18, (right - left) / 4, max(page) / 60), max(page) / 30))
    size = max(12, min(size, bottom - top)) if line_of_text else size
    big, small = ImageFont.load_default(size), ImageFont.load_default(max(12, size * 6 // 10))
    gap = size // 4
    wide = math.ceil(draw.textlength(number, big) + draw.textlength(score, small) + 3 * gap)
    x, y = max(0, min(left, page[0] - wide)), max(0, top - size - gap)
    if line_of_text and left >= wide:  # above it are other lines
        x, y = left - wide, max(0, (top + bottom - size - gap) // 2)
    draw.rectangle((x, y, x + wide, y + size + gap), fill=face.colour)
    draw.text((x + gap, y + size), number, font=big, fill=INK, anchor="ls")
    after = x + 2 * gap + draw.textlength(number, big)
    draw.text((after, y + size), score, font=small, fill=INK, anchor="ls")


LONG_SIDE: Final = 640  # longer side of a whole photo on the page, in pixels: a page is up to twice as wide
CLOSE: Final = 160  # longer side of a region on the page, in pixels
QUALITY: Final = 60  # WebP quality of the pictures, out of 100
LEFT: Final = "may be a face, and is not hidden"  # what a place that the detector was not sure of is called
START: Final = b"<!doctype html><!-- dpveil review -->"  # first bytes of a page, to which later runs add
ARTICLE: Final = b"<article><h2><bdi>"  # the first bytes of a release on a page
END: Final = b"</html>\n"


Part = tuple[float, bytes, str]
"""A photo's part of the page: how sure the detector was of its least certain region, HTML, or a problem."""


def review_part(task: Task, plan: Plan, release: Release | None) -> Part | None:
    """Return one release's part of the page; a photo that cannot be shown is listed: its release stands."""
    if release is None:
        return None
    try:
        return (*_entry(task.source, plan, release), "")
    except Exception as error:  # noqa: BLE001
        return 0.0, b"", f"{show_path(task.source)}: {_why(error)}"


def clip_part(task: Task, plan: VideoPlan) -> Part:
    """Return one released clip's part of the page: its tracks, before and after."""
    from dpveil.video.reading import open_clip
    from dpveil.video.sheets import track_sheet

    name = show_path(task.source)
    try:
        sheets = {"before": task.source, "after": task.output}
        images = [_image(track_sheet(plan, open_clip(path)), word) for word, path in sheets.items()]
    except Exception as error:  # noqa: BLE001
        return 0.0, b"", f"{name}: {_why(error)}"
    both = f"<div class=sheets>{''.join(images)}</div>"
    text = f"<article><h2><bdi>{html.escape(name)}</bdi></h2>{both}</article>\n"
    return 0.0, text.encode("utf-8", "backslashreplace"), ""


def _why(error: Exception) -> str:
    return f"cannot be shown ({type(error).__name__}): look at it yourself"


def _entry(source: Path, plan: Plan, release: Release) -> tuple[float, bytes]:
    photo, missing = plan.photo, release.certificate.missing
    rows, left = sorted(plan.regions, key=_doubt), sorted(plan.doubtful, key=_doubt)
    kind = "" if release.certificate.passed_over else " class=missing"
    lacks = "".join(f"<p{kind}>{html.escape(text)}</p>" for text in passed_notes(missing))
    whole = _image(_draw_frames(photo, plan.regions, left), "original")
    whole += _image(downscale(release.image, LONG_SIDE), "release")
    parts = [(region, region.label) for region in rows] + [(place, LEFT) for place in left]
    close = "".join(_close(photo.image, release.image, *each) for each in parts)
    close = f"<ul>{close}</ul>" if close else ""
    name = f"<bdi>{html.escape(show_path(source))}</bdi>"
    text = f"<article><h2>{name}</h2>{lacks}<div class=whole>{whole}</div>{close}</article>\n"
    doubt = 0.0 if missing else min(map(_doubt, (*rows, *left)), default=0.0)
    return doubt, text.encode("utf-8", "backslashreplace")


def _doubt(region: Region) -> float:
    """Return the region's height in pixels, times its score: the least is the first to look at."""
    return region.box.h * (1.0 if region.score is None else region.score)


def check_review(path: Path, tasks: Sequence[Task], out: Path, *, replace: bool) -> None:
    if path.suffix.lower() != ".html":
        raise InvalidParameter("--review", str(path), "is not the name of a page", hint="end it in .html")
    inside = real(path).is_relative_to(real(out))
    if any(task.output != out and (inside or is_beside_output(path, task)) for task in tasks):
        problem = f"the review {show_path(path)} would lie among the releases, and shows the originals"
        raise UsageError(problem, hint="choose another folder")
    check_written(path, places_of(tasks), what="the review", replace=replace, start=START)


def write_review(parts: Sequence[Part | None], report: Report, path: Path, *, anew: bool = False) -> None:
    """Write one HTML page without scripts or further files, readable by the user only, the photos first of
    which the detector was least sure; raises `OutputError`.

    Below them is what a page of an earlier run shows, unless all releases are made `anew`.
    """
    before = b"" if anew or not path.exists() else path.read_bytes().removesuffix(END)
    earlier = before[before.find(ARTICLE) :] if ARTICLE in before else b""
    shown = sorted((part for part in parts if part and part[1]), key=lambda part: part[0])
    titles = {_title(part[1]) for part in shown}
    articles = [ARTICLE + text for text in earlier.split(ARTICLE)[1:]]
    articles = [text for text in articles if _title(text) not in titles]  # what was released again
    problems = [part[2] for part in parts if part and part[2]]
    failed = [(show_path(one.source), one.failure.message) for one in report.entries if one.failure]
    problems += [text if name in text else f"{name}: {text}" for name, text in failed]
    notes = "".join(f"<li>{html.escape(say.escape_controls(text))}</li>" for text in problems)
    template = files("dpveil.cli").joinpath("review.html").read_text(encoding="utf-8")
    page = Template(template).substitute(
        count=count_noun(len(shown) + len(articles), "release"),
        notes=f"<article><h2>Not shown below</h2><ol>{notes}</ol></article>" if notes else "",
    )
    text = [page.encode("utf-8", "backslashreplace"), *(part[1] for part in shown), *articles, END]
    write_together([(path, b"".join(text))], replace=True, private=True)
    if (missing := len(report.skipped) - len(articles)) > 0:
        on_it, photos = len(report.entries) - missing, count_noun(len(report.entries), "photo")
        say.note(f"{show_path(path)} shows {on_it} of {photos}: {missing} were released by an earlier run")


def _title(article: bytes) -> bytes:
    return article.partition(b"</h2>")[0]


def _draw_frames(
    photo: Photo, regions: Sequence[Region], doubtful: Sequence[Region] = ()
) -> UInt8[np.ndarray, "h w 3"]:
    """Return a photo downscaled for the page, with every region outlined and numbered, and masks tinted.

    What is `doubtful`, and stays in the clear, has a question mark for a number. Faces that are chosen to
    stay have frames of another colour.
    """
    small = downscale(photo.image, LONG_SIDE)
    down, across = small.shape[0] / photo.height, small.shape[1] / photo.width

    def shown(number: int | None, region: Region, *, kept: bool = False) -> Shown:
        one = region.box
        left, right = round(one.x * across), round((one.x + one.w) * across)
        top, bottom = round(one.y * down), round((one.y + one.h) * down)
        left, top = min(left, small.shape[1] - 1), min(top, small.shape[0] - 1)
        box, mask = Box(left, top, max(1, right - left), max(1, bottom - top)), None
        if region.mask is not None and not kept:
            size = (box.w, box.h)
            mask = cv2.resize(region.mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
        return Shown(number, box, None, mask, kept)

    frames = [shown(None, region) for region in doubtful]
    frames += [shown(region.origin.number or n, region) for n, region in enumerate(regions, start=1)]
    stay = {one.origin.number: one for region in regions for one in region.kept}
    frames += [shown(n, one, kept=True) for n, one in stay.items()]
    return downscale(draw_preview(Photo(small), frames), LONG_SIDE)


def _close(
    before: UInt8[np.ndarray, "h w c"], after: UInt8[np.ndarray, "h w c"], region: Region, label: str
) -> str:
    box = region.box
    aside, above = box.w // 4 + 2, box.h // 4 + 2
    part = np.s_[max(0, box.y - above) : box.y + box.h + above, max(0, box.x - aside) : box.x + box.w + aside]
    pair = ((before, "before"), (after, "after"))
    pictures = [_image(downscale(image[part], CLOSE), word) for image, word in pair]
    sure = "" if region.score is None else f", score {region.score:.2f}"
    return f"<li>{''.join(pictures)}<br>{html.escape(label)}: {box.w}×{box.h} pixels{sure}</li>"


def _image(picture: UInt8[np.ndarray, "h w 3"], word: str) -> str:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "WEBP", quality=QUALITY, method=2)  # in half of the usual time
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return f"<img alt={word} src=data:image/webp;base64,{data}>"
