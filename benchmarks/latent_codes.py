"""Private codes as they are drawn beside likely ones, for every latent mechanism: likeness and realism.

Held-out faces of UTKFace are encoded by the `gan` of dpveil-faces, released by each mechanism, and decoded
from the private code (snapped) and from its likely code, both of one draw. "SSIM" is to the same face decoded
without noise, with 95 % intervals by bootstrap over faces; "found": landmarks are sure; "apart" is the sliced
Wasserstein distance of levels at 16 × 16 pixels to originals of as many other people, in grey levels,
"Fréchet" the squared Fréchet distance to them on the hidden units of dpveil's attribute model, which is no
FID. All pictures are seen within the public ellipse, grey beyond. `pca-basis` has the ratio 0.9 of Croft's
thesis.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import cv2
import numpy as np

from dpveil.assets.trained_files import default_path
from dpveil.attacks.measures import by_person
from dpveil.codecs import Codec, load
from dpveil.codecs.network_codecs import ellipse_mask
from dpveil.core.registry import LATENT
from dpveil.errors import DPVeilError, RegionError
from dpveil.faces import Latent
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.place import check
from dpveil.faces.portrait_placement import centred
from dpveil.metrics import ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.picture_sets import colours, frechet, sliced_wasserstein
from dpveil_train.crops import photos
from dpveil_train.landmarks import _face
from timing import report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
CODEC = "gan"
SIDE, SMALL = 128, 64
FACE = _face(Frame(SIDE))
BUDGETS = (10, 200, 1000)
FACES = 80
EVERY = 20  # networks hold out one face of UTKFace in so many, from the first on


def sized(crops: np.ndarray, side: int) -> np.ndarray:
    """Return crops of another side."""
    if crops.shape[1] == side:
        return crops
    way = cv2.INTER_AREA if side < crops.shape[1] else cv2.INTER_CUBIC
    return np.stack([cv2.resize(crop, (side, side), interpolation=way) for crop in crops])


def found(crops: np.ndarray) -> np.ndarray:
    """Return for which crops landmarks are sure."""
    out = np.zeros(len(crops), np.bool_)
    for row, crop in enumerate(sized(crops, SIDE)):
        try:
            check(predictor().near(crop, FACE))
            out[row] = True
        except RegionError:
            continue
    return out


def share(right: np.ndarray, people: list[str]) -> list[float]:
    """Return a mean with its interval."""
    low, high = by_person(right.astype(np.float64), people, draws=2000, level=0.95, seed=0)
    return [round(float(one), 3) for one in (right.mean(), low, high)]


def main() -> None:
    """Measure every mechanism at every budget."""
    held_out = islice(photos(sorted((SHARED / "utkface_128").glob("*.tar"))), 0, 2 * FACES * EVERY, EVERY)
    crops = np.stack([centred(one, (SIDE, SIDE, 3)) for one in held_out])
    model = AttributeModel.load(default_path("attributes"))
    beyond = ~ellipse_mask(SMALL)

    def within(pictures: np.ndarray) -> np.ndarray:
        shown = sized(pictures, SMALL).copy()
        shown[:, beyond] = 128
        return shown

    real = within(crops[FACES:])
    units = model.units(sized(real, SIDE))
    rows = []
    codec = load(default_path(CODEC))
    small = sized(crops[:FACES], codec.canvas[0])
    still = within(codec.decode(codec.encode(small)))
    for mechanism, budget, kind, made in pairs(codec, small):
        shown = within(made)
        alike = [ssim(a, b, data_range=255) for a, b in zip(still, shown, strict=True)]
        row = {
            "codec": CODEC,
            "mechanism": mechanism,
            "budget": budget,
            "codes": kind,
            "SSIM": share(np.array(alike), [str(n) for n in range(FACES)]),
            "found": round(float(found(shown).mean()), 3),
            "apart": round(sliced_wasserstein(colours(shown), colours(real)), 1),
            "Fréchet": round(frechet(model.units(sized(shown, SIDE)), units)),
        }
        print(row, flush=True)
        rows.append(row)
    report("latent_codes", rows)


def pairs(codec: Codec, crops: np.ndarray) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Yield a mechanism, its budget, which codes are decoded, and the releases: both of one draw."""
    for mechanism, kind in LATENT.items():
        for budget in BUDGETS:
            given = {"mechanism": mechanism, "metric": kind.metric, "epsilon": budget}
            if kind.kind == "zcdp":
                given["rho"] = given.pop("epsilon")
            if mechanism == "pca-basis":
                given["ratio"] = "0.9"  # that of Croft's thesis
            for one in kind.codes:
                try:
                    method = Latent(codec=codec, codes=one, **given)
                    bits = SeededBits(7, f"{mechanism} {budget}")
                    yield mechanism, str(budget), one, method.release(crops, bits=bits)
                except DPVeilError as error:
                    print(codec.name, given, error)


if __name__ == "__main__":
    main()
