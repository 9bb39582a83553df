"""Releases while a model is trained: a transform of images, and a data set whose images are released."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.datasets.cache import Cache
from dpveil.datasets.releaser import ENDS, Releaser
from dpveil.errors import DPVeilError, InvalidParameter, NoRegion, PhotoError, UsageError
from dpveil.io import FORMATS, Source
from dpveil.io.folders import UNWRITTEN
from dpveil.mechanisms.method import Method

COLUMN: Final = "certificate"
STATUS: Final = "status"
PROBLEM: Final = "problem"
MADE: Final = (COLUMN, STATUS, PROBLEM)
"""The columns of text that a released data set has beside its images."""
KEPT_KINDS: Final = frozenset({"Value", "ClassLabel"})
"""Kinds of columns that can be kept; of these, none that holds bytes."""
INSTALL: Final = "pip install 'dpveil[data]'"


def release(
    data: Any,
    method: str | Method | None = None,
    *,
    cache: Cache | str | Path,
    column: str = "image",
    keep: Collection[str] = (),
    files: bool = False,
    num_proc: int | None = None,
    **settings: Any,
) -> Any:
    """Return a `datasets.Dataset` with a release for each row of `data`, another one.

    `column` is the name of its column of images: their bytes are read, and PNG bytes are written. With
    `files`, rows may name files of this machine instead, which are opened: only for data of your own. The
    columns of the result are that one, those in `keep` (numbers, text and labels; nothing is promised for
    them), and three of text: `certificate`, that of the PNG; `status`, which is "released", "no region" or
    "failed"; and `problem`. Rows without a release hold no image and no certificate. `status` and `problem`
    tell of originals what nobody paid for: publish neither, and no rows but the released.
    Releases are kept in the folder `cache`: however often it runs, and in however many processes
    (`num_proc`), each photo is drawn and paid for once, and what failed is tried again. `settings` are those
    of `Releaser.of`; with `num_proc` a `ledger` is a URL. Raises `UsageError` if `datasets` is not installed,
    and errors of `dpveil.errors` that are about no single row.
    """
    try:
        import datasets
    except ImportError as error:
        raise UsageError("datasets is not installed", hint=INSTALL) from error
    if not isinstance(data, datasets.Dataset):
        hint = "give a datasets.Dataset, such as one split: dataset['train']"
        raise InvalidParameter("data", type(data).__name__, "is no data set", hint=hint)
    features = _features(data.features, column, keep)
    releaser = Releaser.of(method, cache=cache, **settings)
    raw = data.cast_column(column, datasets.Image(decode=False)).with_format(None)
    return raw.select_columns([column, *features["kept"]]).map(
        _Row(releaser, column, files),
        features=datasets.Features(features["all"]),
        load_from_cache_file=False,
        num_proc=num_proc,
        desc="releasing",
    )


class _Row:
    """What `Dataset.map` calls for each row: a class, so that other processes get it by pickle."""

    def __init__(self, releaser: Releaser, column: str, files: bool) -> None:
        self._releaser, self._column, self._files = releaser, column, files

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the columns that change; an error about this row is told in it."""
        try:
            stored = self._releaser.release(_photo(row[self._column], self._files))
        except ENDS:
            raise
        except DPVeilError as error:
            status = "no region" if isinstance(error, NoRegion) else "failed"
            return self._columns(None, None, status, str(error))
        image = {"bytes": stored.contents, "path": None}
        return self._columns(image, stored.certificate.to_text(), "released", "")

    def _columns(self, image: object, certificate: str | None, status: str, problem: str) -> dict[str, Any]:
        return {self._column: image, COLUMN: certificate, STATUS: status, PROBLEM: problem}


def _photo(cell: Any, files: bool) -> bytes | str:
    """Return the bytes of a cell, or with `files` the path of its file; raises `PhotoError` for neither."""
    held = cell or {}
    data, path = held.get("bytes"), held.get("path")
    if isinstance(data, bytes):
        return data
    if path is None:
        raise PhotoError("the row has no image", hint="leave it out")
    if not files:
        hint = "if the data is your own, let it with files=True"
        raise PhotoError("the row names a file, which is not opened", hint=hint)
    return str(path)


def _features(features: Any, column: str, keep: Collection[str]) -> dict[str, Any]:
    """Return the names of the columns to keep, and all features of the result.

    Raises `InvalidParameter` for columns that are missing, could hold an original, or are made anew.
    """
    import datasets

    if isinstance(keep, str):
        raise InvalidParameter("keep", keep, "is one name", hint=f"write [{keep!r}]")
    names = ", ".join(features)
    if not isinstance(features.get(column), datasets.Image):
        raise InvalidParameter("column", column, "is no column of images", hint=f"there are {names}")
    for name in keep:
        feature = features.get(name)
        kind = type(feature).__name__
        if name == column or name in MADE or kind not in KEPT_KINDS or "binary" in str(feature.dtype):
            problem = "could hold an original, or is made anew, or is no column"
            raise InvalidParameter("keep", name, problem, hint="keep numbers, text and labels only")
    text = {name: datasets.Value("string") for name in MADE}
    kept = {name: features[name] for name in keep}
    return {"kept": list(kept), "all": {column: datasets.Image(), **kept, **text}}


NAME: Final = "__key__"
IMAGE: Final = "png"
CERTIFICATE: Final = "png.certificate.json"
"""The members of a released sample: its image and certificate, which `dpveil.verify` finds as files."""
PICTURES: Final = frozenset(suffix.removeprefix(".") for suffix in UNWRITTEN.union(FORMATS))
"""How the names of members that hold pictures or videos end."""
WHICH: Final = "name the member that is the photo, such as image='jpg'"
Handler = Callable[[Exception], bool]
"""Whether to go on without the sample that an error is about, as `webdataset.warn_and_continue`."""


def released_samples(
    samples: Iterable[Mapping[str, Any]],
    method: str | Method | None = None,
    *,
    image: str | None = None,
    keep: Collection[str] = (),
    handler: Handler | None = None,
    **settings: Any,
) -> Iterator[dict[str, Any]]:
    """Yield a released sample for each of `samples`, which are mappings of members to bytes.

    The photo is the member `image`, or the only one whose name ends as an image's; members have to be the
    bytes of files, not decoded ones. A released sample has a random `__key__`, `png` and
    `png.certificate.json`, and of the original the members in `keep` only, unchanged: nothing is promised
    for them, and the original key is often a name. An error about one sample is raised, unless `handler`
    returns true for it; then the sample is left out. Errors of ledger, models and disk are always raised.
    `settings` are those of `Releaser.of`, such as `cache` and `ledger`. Raises errors of `dpveil.errors`,
    those about the settings before any sample is taken.

    >>> import numpy as np
    >>> from dpveil.io import encode
    >>> sample = {"__key__": "ann/1", "png": encode(np.zeros((4, 4, 1), np.uint8), "png"), "cls": b"3"}
    >>> next(released_samples([sample], "fill", keep=["cls"])).keys()
    dict_keys(['__key__', 'cls', 'png', 'png.certificate.json'])
    """
    releaser = Releaser.of(method, **settings)
    kept = _check_keep(keep, image)
    return _release_samples(samples, releaser, image, kept, handler)


def _release_samples(
    samples: Iterable[Mapping[str, Any]],
    releaser: Releaser,
    image: str | None,
    kept: tuple[str, ...],
    handler: Handler | None,
) -> Iterator[dict[str, Any]]:
    for sample in samples:
        try:
            released = _release_sample(sample, releaser, image, kept)
        except ENDS:
            raise
        except DPVeilError as error:
            if handler is None or not handler(error):
                raise
        else:
            yield released


def _release_sample(
    sample: Mapping[str, Any], releaser: Releaser, image: str | None, kept: tuple[str, ...]
) -> dict[str, Any]:
    """Return one released sample; raises `DPVeilError`."""
    member = _member(sample) if image is None else image
    data = sample.get(member)
    if not isinstance(data, bytes):
        what = "is missing" if data is None else f"is decoded already, to {type(data).__name__}"
        raise PhotoError(f"the member {member!r} {what}", hint="release samples before they are decoded")
    stored = releaser.release(data)
    copied = {name: sample[name] for name in kept if name in sample}
    text = stored.certificate.to_text().encode()
    return {NAME: secrets.token_hex(8), **copied, IMAGE: stored.contents, CERTIFICATE: text}


def _check_keep(keep: Collection[str], image: str | None) -> tuple[str, ...]:
    """Return the members to pass on; raises `InvalidParameter` for images and for those that are made."""
    if isinstance(keep, str):
        raise InvalidParameter("keep", keep, "is one name", hint=f"write [{keep!r}]")
    for name in keep:
        if _is_image(name) or name in (image, CERTIFICATE):
            problem = "is an image, or is made anew"
            raise InvalidParameter("keep", name, problem, hint="leave it out: nothing protects it")
    return tuple(keep)


def _member(sample: Mapping[str, Any]) -> str:
    """Return the name of the only image among the members; raises `PhotoError` for none or several."""
    found = [name for name in sample if _is_image(name)]
    if len(found) != 1:
        raise PhotoError(f"the sample has {len(found)} images among its members", hint=WHICH)
    return found[0]


def _is_image(name: str) -> bool:
    """Whether a member's name ends as that of a picture or video, such as jpg or left.png."""
    return str(name).lower().rpartition(".")[2] in PICTURES


class DPVeil:
    """A transform as those of albumentations: `veil(image=photo)["image"]` is a release of `photo`.

    `cache` names a folder, and each photo is drawn and spent once, whatever the number of epochs. `cache`,
    `ledger`, `subject`, `regions` and all other settings are those of `Releaser.of`. Nothing random may come
    before it: a photo that was cropped or flipped is another photo, which is drawn and spent anew. Raises
    errors of `dpveil.errors`, and then returns no image at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DPVeil("fill", cache=folder)(image=np.full((4, 4), 9, np.uint8), label=7)["label"]
    7
    """

    available_keys: Final = frozenset({"image"})
    """The targets that it changes, for `albumentations.Compose`."""

    def __init__(
        self, method: str | Method | None = None, *, cache: Cache | str | Path, **settings: Any
    ) -> None:
        self.releaser = Releaser.of(method, cache=cache, **settings)

    def __call__(self, *, image: Source, **others: Any) -> dict[str, Any]:
        """Return the other targets unchanged, and `image` released: uint8, levels 0..255.

        It has the shape of a given array, and else height × width × channels (1 or 3).
        """
        return {**others, "image": self.image(image)}

    def image(self, photo: Source, **_: Any) -> UInt8[np.ndarray, ...]:
        """Return the levels of a release of `photo`, which is anything that `dpveil.read` accepts.

        It is a loader for `torchvision.datasets.ImageFolder`, and a function for `albumentations.Lambda`.
        """
        levels = self.releaser.release(photo).photo().image
        return np.array(levels.reshape(photo.shape) if isinstance(photo, np.ndarray) else levels)
