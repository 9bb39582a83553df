"""Writing several files together or not at all: temporary files, flushed, then renamed in order."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import TiffImageFile

from dpveil.core.photo import check_image
from dpveil.errors import DPVeilError, OutputError, UnknownName
from dpveil.io.exif import EXIF_HEAD, NO_TEXTS, states_texts, with_exif
from dpveil.io.locking import in_use, sole_writer
from dpveil.io.names import FORMATS, show_path
from dpveil.opencv import cv2

JFIF: Final = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
"""The first bytes of a JPEG: JFIF 1.01, square pixels, no thumbnail."""
PARTS: Final = {
    "png": re.compile(rb"IHDR(?P<manifest>caBX)?(?P<exif>eXIf)?(?:IDAT)+IEND"),
    "jpeg": re.compile(rb"(?P<manifest>\xeb)?(?P<exif>\xe1)?[\xdb\xc0\xc1\xc4]+\xda\xd9"),
    "webp": re.compile(rb"VP8L(?P<manifest>C2PA)?"),
}
"""Parts of what dpveil writes: PNG's and WebP's chunks, and JPEG's markers, of EXIF, tables, frame header,
one scan and the end. A C2PA manifest is one more."""
TAGS: Final = frozenset({256, 257, 258, 259, 262, 273, 277, 278, 279, 284})
"""The tags of a TIFF that dpveil writes (TIFF 6.0 §8)."""


def only_picture(
    data: bytes,
    format: str,  # noqa: A002  the field's word
    *,
    manifest: bool = False,
    texts: Mapping[str, str] = NO_TEXTS,
) -> bool:
    """Return whether a file has the parts of a picture that `encode` writes, by their names, and no others.

    `format` is a name of `SETTINGS`; False for any other. With `manifest` the file must hold a C2PA manifest
    as well, which is not looked into; with `texts`, EXIF that states exactly them.
    """
    try:
        if format == "bmp":
            size = int.from_bytes(data[2:6], "little")
            return data[:2] == b"BM" and size == len(data) and not manifest and not texts
        if format == "tiff":
            with TiffImageFile(BytesIO(data)) as image:
                return not manifest and not texts and {*image.tag_v2} <= TAGS and image.n_frames == 1
        if format not in PARTS:
            return False
        parts = [*(_segments(data) if format == "jpeg" else _chunks(data, format))]
        found = PARTS[format].fullmatch(b"".join(name for name, _ in parts))
        if found is None or (found.groupdict().get("manifest") is not None) != manifest:
            return False
        blocks = [body.removeprefix(EXIF_HEAD) for name, body in parts if name in (b"eXIf", b"\xe1")]
        return all(states_texts(block, texts) for block in blocks) and bool(blocks or not texts)
    except Exception:  # noqa: BLE001  a parser given hostile bytes may raise anything
        return False


def _chunks(data: bytes, format_: str) -> Iterator[tuple[bytes, bytes]]:
    order: Literal["big", "little"] = "big" if format_ == "png" else "little"
    at = 8 if order == "big" else 12
    while at < len(data):
        one, other, start = data[at : at + 4], data[at + 4 : at + 8], at + 8
        length, name = (one, other) if order == "big" else (other, one)
        end = start + int.from_bytes(length, order)
        yield name, data[start:end]
        at = end + (4 if order == "big" else (end - start) % 2)
    if at != len(data) or (order == "little" and 8 + int.from_bytes(data[4:8], order) != at):
        raise ValueError("truncated, or more follows")


def _segments(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not data.startswith(JFIF):
        raise ValueError("no JFIF header")
    at, name = len(JFIF), b""
    while name != b"\xda":
        name, end = data[at + 1 : at + 2], at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at] != 0xFF:
            raise ValueError("no marker")
        yield name, data[at + 4 : end]
        at = end
    last = re.compile(rb"\xff[^\0]").search(data, at)
    if last is None or last.end() != len(data):
        raise ValueError("truncated, or more follows")
    yield last[0][1:], b""


SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "png": {"compress_level": 1, "compress_type": 3},  # run-length strategy; level 6 takes four times as long
    "jpeg": {"quality": 95, "subsampling": 0, "optimize": False, "progressive": False},
    "webp": {"lossless": True, "quality": 20, "method": 0, "exact": True},
    "tiff": {"compression": "tiff_adobe_deflate"},
    "bmp": {},
}
"""Pillow's settings for each format; quality, tables and subsampling are never copied from an input."""

OPENCV_PNG: Final = (
    *(cv2.IMWRITE_PNG_COMPRESSION, 1),
    *(cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE),
    *(cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_UP),
)
"""Settings of OpenCV's PNG encoder, which takes less than half of Pillow's time. The Paeth filter would take
1.5 times as long for files that are 10 % smaller (two scenes of 12 megapixels)."""

OPENCV_PNG_SIDE: Final = 1_000_000  # the longest side that OpenCV's PNG encoder is given, in pixels

SIDES: Final[dict[str, int]] = {"jpeg": 65_500, "webp": 16_383}
"""The longest side of a picture in formats that limit it, in pixels."""


def encode(
    image: np.ndarray,
    format: str,  # noqa: A002  the field's word
    texts: Mapping[str, str] = NO_TEXTS,
) -> bytes:
    r"""Return the bytes of an image file with the levels of `image`, and nothing else but given `texts`.

    `image` is uint8, h × w or h × w × (1 or 3). `format` is one of png, webp, tiff, bmp (all lossless, so
    decoding gives `image` again; webp has no grey and gives three equal channels) and jpeg (quality 95, no
    chroma subsampling). No profile, thumbnail or trailing byte, and no metadata but `texts`, as in
    `dpveil.io.exif.with_exif`. Raises `UnknownName`, `InvalidParameter` for another array and `OutputError`
    where the format has no room for its size, or for texts.

    >>> encode(np.zeros((2, 3), np.uint8), "png")[:4]
    b'\x89PNG'
    """
    if format not in SETTINGS:
        raise UnknownName("format", format, set(FORMATS.values()))
    pixels = check_image(image)
    height, width = pixels.shape[:2]
    if max(height, width) > SIDES.get(format, max(height, width)):
        raise OutputError(
            f"{width} × {height} pixels do not fit into a {format} file", hint="write a PNG instead"
        )
    levels = pixels.reshape(height, width) if pixels.size == height * width else pixels
    try:
        contents = _encode_image(np.ascontiguousarray(levels), format)
    except (OSError, ValueError, OverflowError, MemoryError, cv2.error) as error:
        raise OutputError(
            f"{width} × {height} pixels cannot be encoded as {format}", hint="write a PNG instead"
        ) from error
    return with_exif(contents, format, texts)


def _encode_image(levels: np.ndarray, format_: str) -> bytes:
    if format_ == "png" and max(levels.shape) <= OPENCV_PNG_SIDE:
        blue_first = levels if levels.ndim == 2 else cv2.cvtColor(levels, cv2.COLOR_RGB2BGR)
        done, contents = cv2.imencode(".png", blue_first, OPENCV_PNG)
        if not done:
            raise OSError("OpenCV cannot encode this picture")
        return contents.tobytes()
    buffer = BytesIO()
    Image.fromarray(levels).save(buffer, format_, **SETTINGS[format_])
    return buffer.getvalue()


REASONS: Final[dict[int, tuple[str, str]]] = {
    errno.EACCES: ("permission denied", "choose a folder that you may write to"),
    errno.EPERM: ("permission denied", "choose a folder that you may write to"),
    errno.EROFS: ("the disk is read-only", "choose a folder that you may write to"),
    errno.ENOSPC: ("the disk is full", "make room or choose another disk"),
    errno.EDQUOT: ("the disk quota is used up", "make room or choose another disk"),
    errno.EFBIG: ("the file is too large for this disk", "choose another disk"),
    errno.ENOENT: ("there is no such folder", "make the folder first"),
    errno.ENOTDIR: ("a file is where its folder would be", "choose another folder"),
    errno.EEXIST: ("it exists already", "choose another name, or replace it with {replace}"),
    errno.EISDIR: ("it is a folder", "choose another name"),
    errno.EBUSY: ("another process is writing there", "wait until it is done"),
}
"""Problem and remedy for errors of the operating system."""


def write_error(path: str | Path, error: OSError | ValueError) -> OutputError:
    """Return an operating system's `error` in writing `path` as an `OutputError`."""
    number = error.errno if isinstance(error, OSError) else None
    problem, remedy = REASONS.get(number or 0, ("", "choose another folder or name"))
    problem = problem or getattr(error, "strerror", None) or "not a valid file name"
    text = f"cannot write {show_path(path)}: {problem}"
    return OutputError(text, hint=remedy, arguments={"replace": "replace=True"})


def no_folder(path: Path) -> OutputError:
    """Return the error for a file in a folder that does not exist, or where a file is."""
    return write_error(path, OSError(errno.ENOTDIR if path.parent.exists() else errno.ENOENT, ""))


USUAL: Final = 0o666  # permissions of usual files, before the user's umask
OWNER_ONLY: Final = 0o600  # permissions of files that only the user may read


def write_together(
    files: Sequence[tuple[Path, bytes]],
    *,
    replace: bool,
    private: bool = False,
    before: Callable[[], None] | None = None,
) -> None:
    """Write all `files`, pairs of path and contents, or none of them.

    Each is written to a temporary file in its own folder and flushed to disk, beside other writers; then they
    are renamed in the given order, while no other dpveil process renames files there. Without `replace` an
    existing target is an error; with it, the old files are restored if anything fails. A target that is a
    link is itself replaced, and its target is left alone. Permissions follow the umask; `private` files are
    readable by the user only.
    `before` is called once everything is on the disk and no target is in the way, before the first file gets
    its name; if it raises an error of `dpveil.errors`, nothing is written and that error raised. Raises
    `OutputError`; after an interrupt, everything is undone and the interrupt raised again. If the process is
    killed, later files may be missing beside earlier ones, but old and new ones are never mixed.
    """
    targets = [path for path, _ in files]
    if len({*targets}) < len(files):
        raise OutputError("a file is named twice", hint="give every output its own name")
    folders, mode = {path.parent for path in targets}, OWNER_ONLY if private else USUAL
    temporary: list[Path] = []
    try:
        with ExitStack() as held:
            with ExitStack() as filling:  # the files are closed once the folders are locked
                with sole_writer(folders):
                    begun = [_begin(path, replace, mode, temporary, filling) for path in targets]
                for file, (path, contents) in zip(begun, files, strict=True):
                    _write_beside(path, contents, file)
                held.enter_context(sole_writer(folders))
            _place_all([*zip(temporary, targets, strict=True)], replace, before)
    except OSError as error:  # another writer does not finish
        if isinstance(error, DPVeilError):
            raise
        raise write_error(targets[0], error) from error
    finally:
        for path in temporary:
            with suppress(OSError):
                path.unlink()
    for folder in folders:
        flush_folder(folder)


def place_together(
    files: Sequence[tuple[Path, Path]], *, replace: bool, before: Callable[[], None] | None = None
) -> None:
    """Give files that are complete their names, or none of them: pairs of a file and its new path.

    Each file is flushed to disk and is on the disk of its new path. Everything else is as in
    `write_together`, except that files keep their old names, too, if anything fails.
    """
    folders = {target.parent for _, target in files}
    try:
        with sole_writer(folders):
            _place_all(files, replace, before)
    except OSError as error:  # as above
        if isinstance(error, DPVeilError):
            raise
        raise write_error(files[0][1], error) from error
    for folder in folders:
        flush_folder(folder)


def _place_all(files: Sequence[tuple[Path, Path]], replace: bool, before: Callable[[], None] | None) -> None:
    placed: list[tuple[Path, Path]] = []
    backups: dict[Path, Path] = {}
    if not files:
        return
    target = files[0][1]
    try:
        for _, target in files:
            _check_target(target, replace)
        if before is not None:
            before()
        if replace:
            for _, target in files:
                backups[target] = kept = temporary_path(target.parent)
                with suppress(FileNotFoundError):
                    try:
                        os.link(target, kept, follow_symlinks=False)
                    except FileNotFoundError:
                        raise
                    except OSError:  # a disk without hard links
                        shutil.copy2(target, kept, follow_symlinks=False)
            for _, target in files[1:]:  # new files are never seen beside old ones
                target.unlink(missing_ok=True)
        for file, target in files:
            placed.append((file, target))
            _place(file, target, replace)
    except BaseException as error:
        _undo(placed, backups)
        if isinstance(error, OSError | ValueError) and not isinstance(error, DPVeilError):
            raise write_error(target, error) from error
        raise
    finally:
        for path in backups.values():
            with suppress(OSError):
                path.unlink()


def _undo(placed: Sequence[tuple[Path, Path]], backups: Mapping[Path, Path]) -> None:
    for file, target in reversed(placed):
        with suppress(OSError):
            if not file.exists():  # it was renamed
                target.replace(file)
            elif os.path.samestat(file.lstat(), target.lstat()):  # the target is a hard link to it
                target.unlink()
    for target, kept in backups.items():
        with suppress(OSError):
            kept.replace(target)


def make_folder(path: str | Path) -> None:
    """Make the folder `path` and its missing parents; raises `OutputError`."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, FileExistsError):
            raise OutputError(f"{show_path(path)} is not a folder", hint="choose another folder") from error
        raise write_error(path, error) from error


def _check_target(target: Path, replace: bool) -> None:
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not replace:
        raise FileExistsError(errno.EEXIST, "exists")
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise OutputError(
            f"cannot write {show_path(target)}: it is not a regular file", hint="choose another name"
        )


def temporary_path(folder: Path) -> Path:
    """Return the name of a new temporary file in a folder, by which `leftovers` knows it."""
    return folder / f".dpveil-{secrets.token_hex(8)}.tmp"


def _begin(target: Path, replace: bool, mode: int, made: list[Path], stack: ExitStack) -> IO[bytes]:
    """Make the temporary file of a target, locked until the stack ends: until then it is no leftover."""
    with as_output_error(target):
        _check_target(target, replace)
        temporary = temporary_path(target.parent)
        made.append(temporary)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        file = stack.enter_context(os.fdopen(handle, "wb"))
        stack.enter_context(in_use(handle))
        return file


def _write_beside(target: Path, contents: bytes, file: IO[bytes]) -> None:
    with as_output_error(target):
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def as_output_error(target: Path) -> Iterator[None]:
    """Turn errors of the operating system in writing `target` into `OutputError`."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, DPVeilError):
            raise
        raise write_error(target, error) from error


def _place(temporary: Path, target: Path, replace: bool) -> None:
    """Give the temporary file its name; without `replace`, a file that has appeared since is not replaced."""
    if replace:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links, where checking and renaming cannot be one atomic step
        _check_target(target, replace)
        temporary.replace(target)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_folder(folder: Path) -> None:
    """Flush the folder's entries to disk where the system can; the files are complete either way."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
