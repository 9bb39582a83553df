"""dlib's frontal detector from the user's cache: the same answers, and nothing but the known file is read."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from skimage import data

from dpveil.assets.engines import NAME, SHA256, frontal_detector

dlib = pytest.importorskip("dlib")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dpveil" / NAME


def decoded_none(*args: Any) -> Any:
    raise AssertionError("decoded, though the file was there")


def test_the_kept_file_gives_the_same_answers(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo = data.astronaut()
    first = frontal_detector().run(photo, 0, -1.0)
    assert sha256(kept.read_bytes()).hexdigest() == SHA256
    assert [path.name for path in kept.parent.iterdir()] == [NAME]
    monkeypatch.setattr(dlib, "get_frontal_face_detector", decoded_none)
    assert frontal_detector().run(photo, 0, -1.0) == first
    assert len(first[0]) > 0


@pytest.mark.parametrize("content", [b"", b"anything", b"\0" * 4096])
def test_another_file_is_not_read_and_is_written_anew(
    kept: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.parent.mkdir()
    kept.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(dlib, "fhog_object_detector", None)
        frontal_detector()
    assert sha256(kept.read_bytes()).hexdigest() == SHA256
