"""What only the codec `gan` does: rendering in other conditions."""

from __future__ import annotations

import numpy as np
import pytest
from made_faces import faces
from made_gan import CANVAS, COUNT, SIDE, made

from dpveil.errors import InvalidParameter
from dpveil.faces import Latent


def others(count: int = 5) -> np.ndarray:
    return faces(count, seed=2, canvas=CANVAS)


def test_a_code_is_rendered_in_other_conditions() -> None:
    codec, codes = made(), made().encode(others())
    plain = codec.decode(codes)
    assert (codec.render(codes) == plain).all()
    turned, woman, man = (codec.render(codes, **x) for x in ({"yaw": 1.0}, {"gender": 1.0}, {"gender": -1.0}))
    middle = SIDE // 2
    assert (turned[:, 0, middle] >= plain[:, 0, middle]).all()
    assert (turned[:, 0, middle] > plain[:, 0, middle]).any()
    assert (turned[:, 1:] == plain[:, 1:]).all()
    assert (woman[:, -1, middle].astype(int) - man[:, -1, middle]).max() in (25, 26)
    far = codes + 1e6
    assert (codec.render(far) == codec.decode(far)).all()


@pytest.mark.parametrize(
    "given", [{"yaw": 1.3}, {"gender": -2.1}, {"pitch": float("nan")}, {"yaw": float("inf")}]
)
def test_conditions_out_of_range_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(given))) as refused:
        made().render(np.zeros((1, COUNT)), **given)
    assert refused.value.hint


def test_codes_of_another_length_are_not_rendered() -> None:
    with pytest.raises(InvalidParameter, match="codes"):
        made().render(np.zeros((1, COUNT + 1)))


@pytest.mark.parametrize("known", [True, False])
def test_faces_without_a_pose_are_turned_to_the_yaw_of_their_cells(known: bool) -> None:
    """Those of eigenfaces have the pose of the code, and stay as they are."""
    own = Latent(epsilon=5, codec=made() if known else f"gan {COUNT} sha256:" + 64 * "0")
    assert own.turned
    assert not Latent(epsilon=5, codec="pca 100 sha256:" + 64 * "0").turned
