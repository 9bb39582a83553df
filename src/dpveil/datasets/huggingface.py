"""Releases of a data set of Hugging Face `datasets`: a column of images becomes one of releases."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from dpveil.datasets.cache import Cache
from dpveil.datasets.releaser import ENDS, Releaser
from dpveil.errors import DPVeilError, InvalidParameter, NoRegion, PhotoError, UsageError
from dpveil.mechanisms.method import Method

CERTIFICATE: Final = "certificate"
STATUS: Final = "status"
PROBLEM: Final = "problem"
MADE: Final = (CERTIFICATE, STATUS, PROBLEM)
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
        return {self._column: image, CERTIFICATE: certificate, STATUS: status, PROBLEM: problem}


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
