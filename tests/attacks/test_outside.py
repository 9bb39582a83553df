"""What attacks see of regions: nothing, in releases and in photos."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from crowd import HEIGHT, WIDTH, face, sides, view

from dpveil.attacks import attack
from dpveil.attacks.around import PAINT, painted
from dpveil.attacks.base import CONTEXT, PIXELS, PLACEMENT, View
from dpveil.attacks.measures import named
from dpveil.bench.measuring import scored

HIDDEN = np.zeros((HEIGHT, WIDTH), np.bool_)
HIDDEN[10:44, 8:38] = True


def filled(image: np.ndarray, level: int) -> np.ndarray:
    changed = image.copy()
    changed[HIDDEN] = level
    return changed


def crowd(level: int):
    """People whose regions have one level, in photos and in releases; what is outside is their own."""
    background, shown, owners = sides(None)
    clean = tuple(replace(one, image=filled(one.image, level)) for one in background.clean)
    mine = tuple(view(one.image, HIDDEN, certificate={}, size=level) for one in clean)
    releases = [view(filled(one.image, level), HIDDEN, certificate={}, size=level) for one in shown]
    return replace(background, clean=clean, released=mine), releases, owners


def test_scores_follow_from_what_lies_outside_alone() -> None:
    for label in ("outside(pixels)", "outside(appearance)"):
        found = []
        for level in (0, 255):
            background, releases, _ = crowd(level)
            fitted = attack(label).fit(background)
            found += [fitted.score(releases).likeness, fitted.enrol(background).score(releases).likeness]
        assert (found[0] == found[2]).all(), label
        assert (found[1] == found[3]).all(), label


def test_surroundings_name_people_and_regions_alone_do_not() -> None:
    background, releases, owners = crowd(7)
    fitted = attack("outside(pixels)").fit(background)
    assert named(scored(fitted, [(one, None) for one in releases], background.names), owners).mean() > 0.5
    same = [painted([view(one.image)])[0].image for one in releases]
    assert all((one == PAINT).all() for one in same)


def test_what_it_reads_is_said_whatever_the_inner_attack_reads() -> None:
    assert attack("outside(pixels)").reads == (PLACEMENT, CONTEXT)
    assert PIXELS in attack("outside(pixels)").inner.reads
    twice = View(face(1, 1), HIDDEN, {}, 9, (View(face(1, 2), HIDDEN, {}, 9),))
    (shown,) = painted([twice])
    assert (shown.more[0].image[HIDDEN] == PAINT).all()
    assert (shown.more[0].image[~HIDDEN] == face(1, 2)[~HIDDEN]).all()
