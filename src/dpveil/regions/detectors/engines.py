"""What runs a detector's network: onnxruntime where it is installed, or else OpenCV."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import Float32

from dpveil.errors import InstallationWarning

NETS: Final = 2
"""OpenCV's nets in memory, one per size of image (the downscaled photo and its tiles); one for 1280 × 960
pixels takes 280 MB and 0.25 s to load."""

ERRORS_ONLY: Final = 3
"""onnxruntime's level of messages."""


class Engine(ABC):
    """A network with one input, from the contents of an ONNX file whose height and width are free.

    It runs on as many threads as OpenCV is set to when it is called.
    """

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, contents: bytes, outputs: Sequence[str]) -> None:
        """Prepare the network; `outputs` are the names of its outputs."""

    @classmethod
    @abstractmethod
    def installed(cls) -> bool:
        """Whether the engine can be used."""

    @classmethod  # noqa: B027  OpenCV works wherever it is installed
    def check(cls, contents: bytes) -> None:
        """Raise any error if the installed engine cannot prepare the network."""

    @abstractmethod
    def __call__(self, image: Float32[np.ndarray, "1 c h w"]) -> list[Float32[np.ndarray, ...]]:
        """Return the outputs for an image, in the order of their names."""


class OnnxRuntime(Engine):
    """onnxruntime: CenterFace in 0.4 of OpenCV's time, whatever the sizes of the images."""

    name = "onnxruntime"

    def __init__(self, contents: bytes, outputs: Sequence[str]) -> None:
        self._contents, self._outputs = contents, list(outputs)

    @classmethod
    def installed(cls) -> bool:
        """Whether the package onnxruntime is installed."""
        return find_spec("onnxruntime") is not None

    @classmethod
    def check(cls, contents: bytes) -> None:
        """Load the package and prepare the network; raises whatever a broken package raises."""
        _session(contents, _threads())

    def __call__(self, image: Float32[np.ndarray, "1 c h w"]) -> list[Float32[np.ndarray, ...]]:
        """Return the outputs for an image of any size."""
        session = _session(self._contents, _threads())
        return list(session.run(self._outputs, {session.get_inputs()[0].name: image}))


def _threads() -> int:
    """Return how many threads OpenCV is set to."""
    import cv2

    return max(1, cv2.getNumThreads())


@lru_cache(maxsize=2)
def _session(contents: bytes, threads: int) -> Any:
    """Return onnxruntime's session, for all threads of the process together; loading it takes 0.03 s."""
    # From its import on, it would store an identifier of the computer and report to Microsoft.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # its older builds for Windows do not read the variable
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = ERRORS_ONLY
    settings.enable_mem_pattern = False  # patterns for several sizes take twice the memory
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(contents, settings, providers=["CPUExecutionProvider"])


class OpenCV(Engine):
    """OpenCV's dnn, which silently gives wrong outputs if one net is given images of two sizes: every size
    has a net of its own.
    """

    name = "opencv"

    def __init__(self, contents: bytes, outputs: Sequence[str]) -> None:
        self._contents, self._outputs = np.frombuffer(contents, np.uint8), tuple(outputs)
        self._nets: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    @classmethod
    def installed(cls) -> bool:
        """Return True: dpveil requires OpenCV."""
        return True

    def __call__(self, image: Float32[np.ndarray, "1 c h w"]) -> list[Float32[np.ndarray, ...]]:
        """Return the outputs for an image."""
        net = self._net(image.shape)
        net.setInput(image)
        return [np.asarray(output) for output in net.forward(self._outputs)]

    def _net(self, shape: tuple[int, ...]) -> Any:
        import cv2

        if shape not in self._nets:
            while len(self._nets) >= NETS:
                self._nets.popitem(last=False)
            self._nets[shape] = cv2.dnn.readNetFromONNX(self._contents)
        self._nets.move_to_end(shape)
        return self._nets[shape]


ENGINES: Final[dict[str, type[Engine]]] = {engine.name: engine for engine in (OnnxRuntime, OpenCV)}
"""All engines; the first one that is installed and works is used."""
BROKEN: Final = (
    "{name} is installed and does not work ({error}), so OpenCV finds faces, in more time: {remedy}"
)
REMEDY: Final = "dpveil install faces, or pip uninstall {name}"


@lru_cache(maxsize=2)
def fastest(contents: bytes) -> type[Engine]:
    """Return the first engine that is installed and can prepare a network, the contents of an ONNX file.

    One that cannot is passed over with one `InstallationWarning`.
    """
    installed = {name: engine for name, engine in ENGINES.items() if engine.installed()}
    for name, engine in installed.items():
        try:
            engine.check(contents)
        except Exception as error:  # noqa: BLE001  whatever a broken package raises
            text = BROKEN.format(name=name, error=type(error).__name__, remedy=REMEDY.format(name=name))
            warnings.warn(text, InstallationWarning, stacklevel=2)
        else:
            return engine
    return OpenCV
