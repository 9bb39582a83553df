"""How much faces change from frame to frame."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from render_made import HEIGHT, WIDTH, image, moving, rendered, scene_of

from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Similarity
from dpveil.video.facts import Frame
from dpveil.video.stability import calmness, change


def test_what_moves_as_stated_does_not_count_and_what_slides_does() -> None:
    noise = np.random.default_rng(9).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    world = cv2.resize(noise, None, fx=8, fy=8, interpolation=cv2.INTER_CUBIC)
    cut = [world[10 + n : 10 + n + HEIGHT, 20 + 2 * n : 20 + 2 * n + WIDTH] for n in range(5)]
    still = Similarity(1 / 90, 0.0, -0.4, -0.8)
    heads = [Similarity(1 / 90, 0.0, -0.4 + 2 * n / 90, -0.8 + n / 90) for n in range(5)]
    assert change(cut, heads) < 0.2 * change(cut, [still] * 5)
    assert change(cut, [still] * 5) > 5


def test_a_brighter_frame_counts_by_its_levels() -> None:
    head = [Similarity(1 / 90, 0.0, -0.4, -0.1)] * 2
    grey = [np.full((HEIGHT, WIDTH, 3), level, np.uint8) for level in (100, 110)]
    assert change(grey, head) == pytest.approx(10)
    assert calmness(grey, [grey[0], np.full_like(grey[0], 120)], head) == pytest.approx(0.5)
    with pytest.raises(InvalidParameter, match="fewer than two"):
        change(grey[:1], head[:1])


def test_a_head_that_stays_does_not_take_over_the_noise_of_frames() -> None:
    track = moving()
    still = replace(track, keys=tuple(replace(key, x=60, y=40) for key in track.keys))
    renderer = rendered(scene_of([still]))
    clip = [Frame(n, n, image(0, seed=n)) for n in range(12)]
    heads = [renderer.scene.course(still).shown(n) for n in range(12)]
    shown = [renderer.frame(frame) for frame in clip]
    assert calmness(shown, [frame.image for frame in clip], heads) < 0.3
