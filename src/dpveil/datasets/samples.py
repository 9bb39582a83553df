"""A stage of a WebDataset pipeline: samples come in with a photo, and leave with a release of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from dpveil.datasets.releaser import ENDS, Releaser
from dpveil.errors import DPVeilError, InvalidParameter, PhotoError
from dpveil.io import FORMATS
from dpveil.io.folders import UNWRITTEN
from dpveil.mechanisms.method import Method

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
    kept = _kept(keep, image)
    return _released(samples, releaser, image, kept, handler)


def _released(
    samples: Iterable[Mapping[str, Any]],
    releaser: Releaser,
    image: str | None,
    kept: tuple[str, ...],
    handler: Handler | None,
) -> Iterator[dict[str, Any]]:
    for sample in samples:
        try:
            released = _one(sample, releaser, image, kept)
        except ENDS:
            raise
        except DPVeilError as error:
            if handler is None or not handler(error):
                raise
        else:
            yield released


def _one(
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


def _kept(keep: Collection[str], image: str | None) -> tuple[str, ...]:
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
