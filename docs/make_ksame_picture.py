"""The picture of the page on k-same: public faces, and what each method shows in their place."""

from __future__ import annotations

import io

import numpy as np
from make_code_pictures import GAP, LABEL, ZOOM, faces, trained
from PIL import Image, ImageDraw, ImageFont

from dpveil.codecs import PCA
from dpveil.mechanisms.ksame import KSameFurthest, KSameM, KSamePixel

SHOWN = 6


def groups() -> bytes:
    """Return the first faces of the gallery, and the picture that each method shows for them. As PNG."""
    every, codec = faces(), trained(PCA)
    people = [str(number) for number in range(len(every))]
    methods = {
        "k-same-pixel, k = 2": KSamePixel(k=2),
        "k-same-pixel, k = 10": KSamePixel(k=10),
        "k-same-m, k = 10": KSameM(k=10, space=codec),
        "k-same-furthest, k = 10": KSameFurthest(k=10, space=codec),
    }
    rows = {"original": every} | {n: m.release(every, people=people).faces for n, m in methods.items()}
    side = ZOOM * every.shape[1]
    canvas = Image.new("RGB", (LABEL + SHOWN * (side + GAP), len(rows) * (side + GAP)), "white")
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=22)
    for row, (label, crops) in enumerate(rows.items()):
        top = row * (side + GAP)
        pen.text((2, top + side // 3), label, fill="black", font=font)
        for column, crop in enumerate(crops[:SHOWN]):
            tile = Image.fromarray(np.ascontiguousarray(crop[:, :, 0]))
            tile = tile.resize((side, side), Image.Resampling.NEAREST)
            canvas.paste(tile, (LABEL + column * (side + GAP), top))
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
