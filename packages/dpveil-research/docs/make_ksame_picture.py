"""The picture of the page on k-same: public faces, and each method's release of them."""

from __future__ import annotations

import numpy as np
from make_code_pictures import faces, sheet, trained

from dpveil.codecs import PCA
from dpveil_research.ksame_methods import KSameM, KSamePixel

SHOWN = 6


def groups() -> bytes:
    """Return the first faces of the gallery, and each method's picture for them, as PNG."""
    every, codec = faces(), trained(PCA)
    methods = {
        "k-same-pixel, k = 2": KSamePixel(2),
        "k-same-pixel, k = 10": KSamePixel(10),
        "k-same-m, k = 10": KSameM(10, codec),
    }
    rows = [("original", every)]
    rows += [(name, method.release(every).faces) for name, method in methods.items()]
    return sheet([(label, np.ascontiguousarray(crops[:SHOWN])) for label, crops in rows])
