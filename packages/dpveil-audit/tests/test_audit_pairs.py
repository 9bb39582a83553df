"""Adversarial pairs: always neighbours, and every kind that quality gate 3 names is there."""

import numpy as np
import pytest

from dpveil_audit.pixel.images import adversarial_pairs

SIZES = [(1, 1), (1, 7), (7, 1), (3, 5), (17, 17), (4, 4), (2, 33)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("block", [1, 2, 16, 50])
@pytest.mark.parametrize("neighbourhood", [1, 2, 5, None])
def test_pairs_are_distinct_neighbours(size, channels, block, neighbourhood):
    pairs = adversarial_pairs(
        height=size[0], width=size[1], channels=channels, block=block, neighbourhood=neighbourhood
    )
    most = min(neighbourhood or size[0] * size[1], size[0] * size[1])
    assert all(1 <= pair.pixels <= most for pair in pairs)
    assert max(pair.pixels for pair in pairs) == most
    assert all(pair.first.shape == pair.second.shape == (*size, channels) for pair in pairs)
    assert len({(p.first.tobytes(), p.second.tobytes()) for p in pairs}) == len(pairs)


def changed(pair):
    return {(int(r), int(c)) for r, c in np.argwhere(np.any(pair.first != pair.second, axis=2))}


def test_each_kind_changes_what_it_says():
    pairs = {p.name: p for p in adversarial_pairs(height=5, width=5, channels=3, block=2, neighbourhood=3)}
    assert changed(pairs["smallest cell"]) > {(4, 4)}
    assert {(r // 2, c // 2) for r, c in changed(pairs["largest cell"])} == {(1, 1)}
    assert len({(r // 2, c // 2) for r, c in changed(pairs["spread over cells"])}) == 3
    assert {c for _, c in changed(pairs["last column"])} == {4}
    assert {r for r, _ in changed(pairs["last row"])} == {4}
    assert pairs["single pixel"].pixels == 1
    for channel in range(3):
        pair = pairs[f"channel {channel} alone"]
        assert {int(k) for *_, k in np.argwhere(pair.first != pair.second)} == {channel}


def test_any_image_includes_black_against_white():
    pairs = adversarial_pairs(height=2, width=3, channels=3, block=2, neighbourhood=None)
    assert any(np.all(p.first == 0) and np.all(p.second == 255) for p in pairs)


def test_the_rounding_edge_is_just_below_half_a_level():
    pairs = adversarial_pairs(height=32, width=32, channels=1, block=32, neighbourhood=1)
    edge = next(p for p in pairs if p.name == "rounding edge")
    assert int(edge.first.sum()) == 511  # 511/1024 rounds to 0
    assert int(edge.second.astype(int).sum()) == 511 + 255  # 766/1024 rounds to 1
