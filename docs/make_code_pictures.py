"""The picture of the page on codecs: public faces as they are, as codecs keep them, and drawn anew."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from dpveil.codecs import PCA, Card, Codec, Dictionary
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.noise.bits import SeededBits

TRAINED = slice(0, 90)
SHOWN = slice(91, 97)
LENGTH = 40
ZOOM = 5
GAP = 8
LABEL = 290


def faces() -> np.ndarray:
    """Return the 100 faces of 25 × 25 pixels that ship with scikit-image, n × 25 × 25 × 1."""
    return np.rint(data.lfw_subset()[:100, :, :, None] * 255).astype(np.uint8)


def trained(kind: type[Codec]) -> Codec:
    """Return a codec of 40 coordinates, fitted to 90 of the faces."""
    card = Card(kind.name, data="scikit-image's faces", terms="public", seed=0)
    return kind.train(lambda: [faces()[TRAINED]], card=card, seed=0, length=LENGTH)


def round_trip() -> bytes:
    """Return faces that no codec has seen, row by row: originals, decoded codes, private codes. As PNG."""
    shown, pca, dictionary = faces()[SHOWN], trained(PCA), trained(Dictionary)
    rows = [("original\nnot protected", shown)]
    rows += [
        (f"{c.name}, {LENGTH} coordinates\nnot protected", c.decode(c.encode(shown)))
        for c in (pca, dictionary)
    ]
    for epsilon in (400, 100, 40):
        mechanism = BoxLaplace(epsilon=epsilon, clip=5)
        released = mechanism.release(pca.encode(shown), pca, bits=SeededBits(epsilon))
        rows.append((f"pca, box-laplace\nepsilon {epsilon}", pca.decode(released)))
    side = ZOOM * shown.shape[1]
    canvas = Image.new("RGB", (LABEL + len(shown) * (side + GAP), len(rows) * (side + GAP)), "white")
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=22)
    for row, (label, crops) in enumerate(rows):
        top = row * (side + GAP)
        pen.multiline_text((2, top + side // 3), label, fill="black", font=font)
        for column, crop in enumerate(crops):
            tile = Image.fromarray(crop[:, :, 0]).resize((side, side), Image.Resampling.NEAREST)
            canvas.paste(tile, (LABEL + column * (side + GAP), top))
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
