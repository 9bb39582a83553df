"""Pictures of the page on codecs: public faces, as encoded by codecs, and as released."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from dpveil.assets.model_cards import Card
from dpveil.codecs import PCA, Dictionary, StoredCodec
from dpveil.core.registry import LATENT
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.noise.bits import SeededBits
from dpveil_train import TRAINERS

TRAINED = slice(0, 90)
SHOWN = slice(91, 97)
LENGTH = 40
FACE = 94
BUDGETS = (5, 20, 80, 320, 1280)
RHOS = (1, 10, 100, 1000, 10_000)
ZOOM = 5
GAP = 8
LABEL = 330


def faces() -> np.ndarray:
    """Return the 100 faces of 25 × 25 pixels that ship with scikit-image, n × 25 × 25 × 1."""
    return np.rint(data.lfw_subset()[:100, :, :, None] * 255).astype(np.uint8)


def trained(kind: type[StoredCodec]) -> StoredCodec:
    """Return a codec of 40 coordinates, fitted to 90 of the faces."""
    card = Card(kind.name, data="scikit-image's faces", terms="public", seed=0)
    made: StoredCodec = TRAINERS[kind.name](lambda: [faces()[TRAINED]], card=card, seed=0, length=LENGTH)
    return made


def round_trip() -> bytes:
    """Return held-out faces row by row: originals, decoded codes, private codes. As PNG."""
    shown, pca, dictionary = faces()[SHOWN], trained(PCA), trained(Dictionary)
    rows = [("original\nnot protected", shown)]
    rows += [
        (f"{c.name}, {LENGTH} coordinates\nnot protected", c.decode(c.encode(shown)))
        for c in (pca, dictionary)
    ]
    for epsilon in (400, 100, 40):
        mechanism = BoxLaplace(epsilon=epsilon, clip=5)
        released = mechanism.release(pca.encode(shown), pca.statistics, bits=SeededBits(epsilon))
        rows.append((f"pca, box-laplace\nepsilon {epsilon}", pca.decode(released)))
    return sheet(rows)


def mechanisms() -> bytes:
    """Return a held-out face, released by every latent mechanism at several budgets, as PNG."""
    pca = trained(PCA)
    code = pca.encode(faces()[FACE : FACE + 1])
    rows = [("as the codec keeps it\nnot protected", np.repeat(pca.decode(code), len(BUDGETS), axis=0))]
    for name, kind in LATENT.items():
        budgets = RHOS if kind.kind == "zcdp" else BUDGETS
        letter = "rho" if kind.kind == "zcdp" else "epsilon"
        made = {budget: kind(clip=5, **{letter: budget}) for budget in budgets}
        codes = [each.release(code, pca.statistics, bits=SeededBits(n)) for n, each in made.items()]
        drawn = [pca.decode(one)[0] for one in codes]
        rows.append((f"{name}\n{letter} {', '.join(map(str, budgets))}", np.stack(drawn)))
    return sheet(rows)


def sheet(rows: list[tuple[str, np.ndarray]]) -> bytes:
    """Return rows of grey crops, each with its label to the left, as PNG."""
    side = ZOOM * rows[0][1].shape[1]
    columns = max(len(crops) for _, crops in rows)
    canvas = Image.new("RGB", (LABEL + columns * (side + GAP), len(rows) * (side + GAP)), "white")
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=22)
    for row, (label, crops) in enumerate(rows):
        top = row * (side + GAP)
        pen.multiline_text((2, top + side // 3), label, fill="black", font=font)
        for column, crop in enumerate(crops):
            tile = Image.fromarray(crop[:, :, 0]).resize((side, side), Image.Resampling.NEAREST)
            canvas.paste(tile, (LABEL + column * (side + GAP), top))
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG")
    return buffer.getvalue()
