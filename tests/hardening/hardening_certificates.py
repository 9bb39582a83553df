"""Honest certificates of every method, ways to forge them, and a watch on what reading them touches."""

import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from PIL import Image

from dpveil.catalogue import build
from dpveil.core.certificate import UNPROTECTED, Certificate, Output, parse_certificate
from dpveil.core.region import Box, RegionRecord
from dpveil.core.registry import LATENT, METHODS
from dpveil.faces.geometry.cell import PITCH, Cell, side
from dpveil.faces.geometry.place import of_own_box
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.mechanisms.method import Method
from dpveil.release.keys import PublicKey, SigningKey
from dpveil.release.quote import NO_ACCOUNTANT, Quote
from dpveil.release.saving import certificate_path
from records import record

WIDTH, HEIGHT = 40, 30
ZEROS = 64 * "0"
FILES = {
    "codec": f"pca 100 sha256:{ZEROS}",
    "gallery": f"gallery sha256:{ZEROS}",
    "model": f"attributes sha256:{ZEROS}",
}
"""The parameters that name files, as certificates write them."""
WAYS: dict[str, list[dict[str, Any]]] = {
    "dp-pix": [
        {"epsilon": 1, "block": 8, "neighbourhood": 16},
        {"rho": "1/3", "block": 4},
        {"epsilon": 1, "delta": 1e-6},
    ],
    "dp-pix-gaussian": [{"epsilon": 1, "delta": 1e-6, "block": 8, "neighbourhood": 16}],
    "ssim-exponential": [{"epsilon": 20, "block": 8}],
    "mse-exponential": [{"epsilon": 20, "block": 8}],
    "bit-planes": [{"epsilon": 20, "neighbourhood": 4}],
    "dct-gaussian": [{"rho": 1, "neighbourhood": 16}],
    "dp-svd": [{"epsilon": 1, "rank": 2}],
    "dp-samp": [{"epsilon": 1, "clusters": 2, "neighbourhood": 4}],
    "snow": [{"delta": "0.3"}],
    "blur": [{"sigma": 4}],
    "mosaic": [{"block": 8}],
    "fill": [{}],
    "latent": [{"rho": 2}],
    "gallery": [{"epsilon": 8, "near": 5, "protect": "face"}, {"epsilon": 8}],
    "attributes": [{"attributes": "gender=4,age=2"}, {"attributes": "none"}],
}
"""Settings of methods; `latent` has one of each mechanism too, and a method without a row an ε of 1."""


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every method of the table, and every latent mechanism, with parameters as certificates state them."""
    for name, method in METHODS.items():
        files = {key: value for key, value in FILES.items() if key in method.accepted_parameters()}
        for way in WAYS.get(name, [{"epsilon": 1, **method.typical}]):
            yield name, files | way
        for mechanism, kind in LATENT.items() if name == "latent" else ():
            budget = {"rho": 2} if kind.kind == "zcdp" else {"epsilon": 300}
            extra = {"ratio": 2} if mechanism == "pca-basis" else {}
            yield name, files | budget | extra | {"mechanism": mechanism, "metric": kind.metric}


def picture() -> bytes:
    """The contents of the image that all these certificates are beside."""
    levels = (np.arange(WIDTH * HEIGHT * 3) % 251).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)
    file = io.BytesIO()
    Image.fromarray(levels).save(file, "png")
    return file.getvalue()


def output() -> Output:
    return Output(hashlib.sha256(picture()).hexdigest(), "png", WIDTH, HEIGHT, 3)


def stated(method: Method, records: list[RegionRecord], **fields: Any) -> dict[str, Any]:
    """The certificate of a release of these regions, as the pipeline states it."""
    faces = method.draws_faces
    placed = [on_grid(method, r) if faces and r.origin.kind in ("face", "box") else r for r in records]
    named = tuple(
        replace(r, origin=replace(r.origin, finder=r.origin.finder or ("faces" if faces else str(r.box))))
        for r in placed
    )
    quote = Quote(method, named, width=WIDTH, height=HEIGHT, channels=3)
    usual: dict[str, Any] = {
        "method": method.name,
        "parameters": method.parameters(),
        "request": tuple(dict.fromkeys(r.origin.finder for r in named)),
        "guarantees": quote.guarantees,
        "regions": named,
        "composition": quote.total,
        "strength": quote.strength,
        "accountant": quote.accountant,
        "bits": "secure",
        "post_processing": ("gaussian:1", "median:3"),
        "output": output(),
    }
    return json.loads(Certificate(**usual | fields).to_text())


def on_grid(method: Method, face: RegionRecord) -> RegionRecord:
    """The region of the cell in which the middle of a face's box lies; of a user's box, that of the box alone
    where the method looks for no landmarks.
    """
    own = face.box if face.origin.kind == "box" else None
    if method.placing == "box" and own is not None:
        there, shape = of_own_box(own, method.protect)
        origin = replace(face.origin, found=False)
    else:
        across, down = (
            int((start + length / 2) / (PITCH * side(12)))
            for start, length in ((face.box.x, face.box.w), (face.box.y, face.box.h))
        )
        roll, yaw = (0, None) if method.placing == "box" else (1, 1)
        cell = Cell(12, roll, across, down, yaw)
        there, shape = cell.pose, cell.shape(method.protect)
        origin = replace(face.origin, found=True, cell=cell.numbers)
    masked = PROTECTIONS[method.protect].masked
    box, mask = shape.region(there, WIDTH, HEIGHT, box=own, masked=masked)
    finder = origin.finder or ("" if own is None else str(own))
    return RegionRecord(box, replace(origin, finder=finder), None if mask is None else int(mask.sum()))


def honest() -> dict[str, dict[str, Any]]:
    """A certificate of every setting, of an unprotected copy, and of regions of every kind."""
    boxes = [record("box", Box(2, 3, 20, 10)), record("mask", Box(4, 3, 16, 6), masked=50)]
    faces = [
        record("face 1", Box(1, 1, 12, 14), found=True),
        record("head of face 2", Box(20, 2, 12, 14), masked=90, found=True),
    ]
    apart = [record("box", Box(2, 3, 8, 8)), record("box", Box(20, 3, 8, 8))]
    grown = [record("box, grown to the JPEG blocks", Box(0, 0, 17, 17), found=True, finder="2,2,9,9")]
    whole = [record("whole photo", Box(0, 0, WIDTH, HEIGHT))]
    made = {}
    for number, (name, parameters) in enumerate(settings()):
        method = build(name, parameters)
        records = faces if method.draws_faces else (boxes, apart, grown, whole)[number % 4]
        made[f"{name} {number}"] = stated(method, records)
    made["copy"] = json.loads(
        Certificate(
            method=None, parameters={}, request=("faces",), guarantees=(), regions=(), composition=None,
            strength=None, missing=("faces",), accountant=NO_ACCOUNTANT, bits="none",
            warnings=(UNPROTECTED,), output=output(),
        ).to_text()
    )  # fmt: skip
    made["signed"] = signed(made["dp-pix 0"])
    return made


def signed(data: dict[str, Any]) -> dict[str, Any]:
    """The certificate with the signature of a key that is always the same."""
    private = Ed25519PrivateKey.from_private_bytes(bytes(32))
    key = SigningKey(PublicKey(private.public_key().public_bytes_raw()), private)
    return json.loads(key.sign(parse_certificate(sealed(data).decode())).to_text())


def sealed(data: Any) -> bytes:
    """`data` in canonical form and, where it can have one, with a fitting checksum, as forgers write it."""

    def canonical(value: Any) -> bytes:
        text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
        return text.encode("utf-8", "surrogatepass")

    if isinstance(data, dict):
        rest = {key: value for key, value in data.items() if key not in ("checksum", "signature")}
        data = data | {"checksum": hashlib.sha256(canonical(rest)).hexdigest()}
    return canonical(data)


def placed(folder: Path, contents: bytes, name: str = "a.png") -> Path:
    """The path of an image in `folder`, with a certificate of these bytes beside it."""
    image = folder / name
    image.write_bytes(picture())
    certificate_path(image).write_bytes(contents)
    return image


class Watch:
    """What happens beside computing: everything Python audits, and questions about files, which it does not.

    Audit hooks cannot be removed, so that one is made and switched on and off.
    """

    SILENT = ("object.", "sys.", "code.", "cpython.", "builtins.", "gc.")
    ASKED = ("stat", "lstat", "access", "readlink")

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self._on = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._on and not event.startswith(self.SILENT):
            self.seen.append((event, str(arguments[0]) if arguments else ""))

    @contextmanager
    def watching(self) -> Iterator[None]:
        kept = {name: getattr(os, name) for name in self.ASKED}

        def asking(name: str) -> Any:
            def asked(path: Any, *rest: Any, **options: Any) -> Any:
                self.seen.append((f"os.{name}", str(path)))
                return kept[name](path, *rest, **options)

            return asked

        self.seen.clear()
        for name in self.ASKED:
            setattr(os, name, asking(name))
        tracer = sys.gettrace()  # coverage asks about every file that code comes from
        sys.settrace(None)
        self._on = True
        try:
            yield
        finally:
            self._on = False
            sys.settrace(tracer)
            for name, function in kept.items():
                setattr(os, name, function)

    def strange(self, image: Path) -> list[tuple[str, str]]:
        """What was touched beside the image and its certificate."""
        own = {str(image), str(certificate_path(image))}
        events = {"open", *(f"os.{name}" for name in self.ASKED)}
        return [seen for seen in self.seen if seen[0] not in events or seen[1] not in own]


WATCH = Watch()
