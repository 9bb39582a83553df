"""The engines that run a detector's network: the same outputs, whatever the sizes and the threads."""

from __future__ import annotations

import itertools

import cv2
import numpy as np
import pytest
from skimage import data

from dpveil.assets import engines
from dpveil.assets.engines import ENGINES, OnnxRuntime, OpenCV, fastest
from dpveil.errors import InstallationWarning, UsageError
from dpveil.regions.detectors import centerface as centerface_file
from dpveil.regions.detectors.centerface import OUTPUTS, CenterFace, network, network_path
from tiny_onnx import field, mixing

pytestmark = pytest.mark.skipif(not CenterFace.is_installed(), reason="needs dpveil install faces")
needs_onnxruntime = pytest.mark.skipif(not OnnxRuntime.is_installed(), reason="needs dpveil install faces")
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


@needs_onnxruntime
def test_a_network_that_onnxruntime_refuses_is_no_fault_of_the_installation():
    operators = [field(8, field(1, "") + field(2, version)) for version in (13, 99)]
    contents = mixing().replace(*operators)
    assert fastest.__wrapped__(mixing()) is OnnxRuntime
    with pytest.warns(InstallationWarning, match="onnxruntime refuses a network") as told:
        assert fastest.__wrapped__(contents) is OpenCV
    assert len(told) == 1
    assert "install" not in str(told[0].message)


@pytest.mark.parametrize("asked", [None, "auto", *engines.DEVICES, "gpu"])
def test_a_device_is_the_one_that_was_named_or_the_first_that_is_there(monkeypatch, asked):
    monkeypatch.setenv(engines.DEVICE, asked or "auto")
    every, cpu = [*engines.DEVICES.values()], engines.DEVICES["cpu"]
    for there in itertools.chain.from_iterable(itertools.combinations(every[:-1], n) for n in range(5)):
        has = ["AzureExecutionProvider", *there, cpu]
        monkeypatch.setattr(engines.processes, "confined", True)
        assert engines.providers(has) == [cpu]
        monkeypatch.setattr(engines.processes, "confined", False)
        if asked in (None, "auto"):
            assert engines.providers(has) == [*there, cpu]
        elif engines.DEVICES.get(asked) in has:
            assert engines.providers(has) == [*dict.fromkeys([engines.DEVICES[asked], cpu])]
        else:
            with pytest.raises(UsageError):
                engines.providers(has)


@needs_onnxruntime
def test_a_device_that_cannot_be_used_is_no_reason_for_another(monkeypatch):
    engines.session.cache_clear()
    monkeypatch.setenv(engines.DEVICE, "cuda")
    with pytest.raises(UsageError):
        fastest.__wrapped__(mixing())
    monkeypatch.setenv(engines.DEVICE, "cpu")
    assert fastest.__wrapped__(mixing()) is OnnxRuntime
    assert engines.session(mixing(), 1).get_providers() == [engines.DEVICES["cpu"]]
