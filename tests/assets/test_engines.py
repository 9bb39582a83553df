"""The engines that run a detector's network: the same outputs, whatever the sizes and the threads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import cv2
import numpy as np
import pytest
from skimage import data

from dpveil.assets import engines
from dpveil.assets.engines import ENGINES, NETS, OnnxRuntime, OpenCV, fastest
from dpveil.errors import InstallationWarning, UsageError
from dpveil.regions.detectors import centerface as centerface_file
from dpveil.regions.detectors.centerface import OUTPUTS, CenterFace, network, network_path
from tiny_onnx import completion, field

pytestmark = pytest.mark.skipif(not CenterFace.installed(), reason="needs dpveil install faces")
needs_onnxruntime = pytest.mark.skipif(not OnnxRuntime.installed(), reason="needs dpveil install faces")
EACH = [pytest.param(OnnxRuntime, marks=needs_onnxruntime), OpenCV]
SHAPES = ((320, 416), (64, 96), (320, 416), (416, 320))


def pictures() -> list[np.ndarray]:
    photo = data.astronaut()
    return [cv2.dnn.blobFromImage(np.ascontiguousarray(photo[:h, :w])) for h, w in SHAPES]


@pytest.mark.parametrize("engine", EACH)
def test_several_sizes_through_one_network_equal_the_original_in_fresh_nets(engine):
    """OpenCV's dnn silently gives other maps where one net sees a second size."""
    original = np.frombuffer(network_path().read_bytes(), np.uint8)
    run = engine(network(network_path()), OUTPUTS)
    for image in pictures():
        net = cv2.dnn.readNetFromONNX(original)
        net.setInput(image)
        for ours, theirs in zip(run(image), net.forward(OUTPUTS), strict=True):
            assert ours.shape == np.shape(theirs)
            assert np.abs(ours - theirs).max() < 1e-4
            assert np.abs(ours).max() > 1e-2


def test_opencv_keeps_few_nets_and_another_size_of_one_is_still_a_danger():
    """If the second half fails, OpenCV has mended its nets, and one net could serve all sizes."""
    run = OpenCV(network(network_path()), OUTPUTS)
    first, small, *_ = pictures()
    for image in pictures():
        fresh = run(image)
        assert len(run._nets) <= NETS
    run(first)
    run._nets[small.shape] = run._nets[first.shape]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_net", lambda shape: run._nets[first.shape])
        wrong = run(small)
    fresh = OpenCV(network(network_path()), OUTPUTS)(small)
    assert any(a.shape != b.shape or not np.allclose(a, b) for a, b in zip(wrong, fresh, strict=True))


@needs_onnxruntime
def test_onnxruntime_has_as_many_threads_as_opencv_and_one_session_for_each_number(monkeypatch):
    engines.session.cache_clear()
    image = pictures()[1]
    found = []
    for threads in (1, 2, 1):
        monkeypatch.setattr(cv2, "getNumThreads", lambda threads=threads: threads)
        found.append(OnnxRuntime(network(network_path()), OUTPUTS)(image))
    assert engines.session.cache_info().misses == 2
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(*found[:2], strict=True))


@needs_onnxruntime
def test_onnxruntime_reports_nothing_and_leaves_no_file_behind(tmp_path):
    """With its telemetry it writes an identifier of the computer and a database to the home directory."""
    script = (
        "import numpy as np; from dpveil.assets import engines as e;"
        "from dpveil.regions.detectors import centerface as c;"
        "e.OnnxRuntime(c.network(c.network_path()), c.OUTPUTS)(np.zeros((1, 3, 64, 64), np.float32))"
    )
    home = {name: str(tmp_path) for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME")}
    own = {"ORT_DISABLE_TELEMETRY": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", script], env=os.environ | home | own, check=True, timeout=120)
    assert not [*tmp_path.rglob("*")]


def test_the_network_is_read_once_per_process_while_its_file_is_the_same(tmp_path, monkeypatch):
    path = tmp_path / "centerface.onnx"
    path.write_bytes(network_path().read_bytes())
    monkeypatch.setattr(centerface_file, "network_path", lambda: path)
    CenterFace()
    hashed = []
    sha256 = hashlib.sha256
    monkeypatch.setattr(hashlib, "sha256", lambda contents: hashed.append(len(contents)) or sha256(contents))
    CenterFace()
    assert not hashed
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(UsageError, match="not the one"):
        CenterFace()
    assert hashed


@pytest.mark.parametrize("engine", EACH)
def test_every_engine_finds_the_same_faces(engine, monkeypatch):
    photo = data.astronaut()
    usual = CenterFace()(photo, 0.05)
    monkeypatch.setattr(centerface_file, "fastest", lambda _: engine)
    assert len(usual)
    assert np.allclose(CenterFace()(photo, 0.05), usual, atol=1e-2)


def test_without_onnxruntime_opencv_runs_the_network(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert fastest.__wrapped__(network(network_path())) is OpenCV
    assert [engine.name for engine in ENGINES.values()] == ["onnxruntime", "opencv"]


BROKEN = {
    "its import fails": "raise ImportError('DLL load failed')",
    "its import fails otherwise": "raise OSError('no such library')",
    "it makes no session": """
def disable_telemetry_events():
    pass
class SessionOptions:
    def add_session_config_entry(self, *_):
        pass
def InferenceSession(*_, **__):
    raise RuntimeError('illegal instruction')
""",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_onnxruntime_is_passed_over_with_one_line(how, tmp_path, monkeypatch):
    (tmp_path / "onnxruntime.py").write_text(BROKEN[how])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    engines.session.cache_clear()
    fastest.cache_clear()
    with pytest.warns(
        InstallationWarning, match=r"onnxruntime is installed and does not work \(\w+Error\)"
    ) as told:
        detectors = [CenterFace(), CenterFace()]
    assert len(told) == 1
    assert all(isinstance(each._net, OpenCV) for each in detectors)
    assert len(detectors[0](data.astronaut()[:200, 120:320], 0.2)) == 1
    fastest.cache_clear()


@needs_onnxruntime
def test_a_network_that_onnxruntime_refuses_is_no_fault_of_the_installation():
    operators = [field(8, field(1, "") + field(2, version)) for version in (13, 99)]
    contents = completion().replace(*operators)
    assert fastest.__wrapped__(completion()) is OnnxRuntime
    with pytest.warns(InstallationWarning, match="onnxruntime refuses a network") as told:
        assert fastest.__wrapped__(contents) is OpenCV
    assert len(told) == 1
    assert "install" not in str(told[0].message)
