"""What runs a network: onnxruntime where it is installed, or else OpenCV."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, ClassVar, Final

import numpy as np

from dpveil import processes
from dpveil.core.array_types import Float32
from dpveil.errors import InstallationWarning, UnknownName, UsageError
from dpveil.opencv import cv2

SIZE: Final = 155_005  # size of the state in bytes
NAME: Final = "dlib-frontal-face-detector.svm"
SHA256: Final = "f3f7aa833fb4a14a46fc48689f45b98d85ef72d6dfaf8bdc012b7d3c522a5426"
"""SHA-256 of the state of dlib 20.0.1's detector; a dlib with another one only starts more slowly."""


def frontal_detector() -> Any:
    """Return dlib's frontal face detector; raises `ImportError` if dlib is not installed."""
    import dlib

    with suppress(OSError, RuntimeError):  # there may be no home folder, or no such file
        with _path().open("rb") as file:
            kept = file.read(SIZE + 1)
        if sha256(kept).hexdigest() == SHA256:
            detector = dlib.fhog_object_detector.__new__(dlib.fhog_object_detector)
            detector.__setstate__((kept,))
            return detector
    detector = dlib.get_frontal_face_detector()
    with suppress(OSError, RuntimeError):
        _keep(detector.__getstate__()[0], _path())
    return detector


def _path() -> Path:
    """Return the cache file: in $XDG_CACHE_HOME/dpveil or ~/.cache/dpveil; on Windows in %LOCALAPPDATA%."""
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "dpveil" / NAME


def _keep(state: bytes, path: Path) -> None:
    """Write the detector's state atomically if it is the known one."""
    if sha256(state).hexdigest() != SHA256:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as file:
        part = Path(file.name)
        try:
            file.write(state)
            file.close()
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


NETS: Final = 2
"""OpenCV's nets in memory, one per size of image (the downscaled photo and its tiles); one for 1280 × 960
pixels takes 280 MB and 0.25 s to load."""

FATAL_ONLY: Final = 4  # onnxruntime's level of messages; it raises what it would print below


class Engine(ABC):
    """A network with one input, from the contents of an ONNX file; its height and width may be free.

    One object is for one thread at a time.
    """

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, contents: bytes, outputs: Sequence[str] = (), *, threads: int | None = None) -> None:
        """Prepare the network; `outputs` are the names of its outputs, or none for all.

        It runs on so many `threads`, or on as many as OpenCV is set to when it is called, which is what
        OpenCV always does.
        """

    @classmethod
    @abstractmethod
    def is_installed(cls) -> bool:
        """Whether the engine can be used."""

    @classmethod
    @abstractmethod
    def check(cls, contents: bytes, threads: int | None = None) -> None:
        """Raise any error if the installed engine cannot prepare the network for so many threads."""

    @abstractmethod
    def __call__(self, image: Float32[np.ndarray, "1 c h w"]) -> list[Float32[np.ndarray, ...]]:
        """Return the outputs for an image, in the order of their names."""


class OnnxRuntime(Engine):
    """onnxruntime: CenterFace in 0.4 of OpenCV's time, whatever the sizes of the images."""

    name = "onnxruntime"

    def __init__(self, contents: bytes, outputs: Sequence[str] = (), *, threads: int | None = None) -> None:
        self._contents, self._outputs, self._threads = contents, list(outputs) or None, threads

    @classmethod
    def is_installed(cls) -> bool:
        return find_spec("onnxruntime") is not None

    @classmethod
    def check(cls, contents: bytes, threads: int | None = None) -> None:
        session(contents, threads or _threads())

    def __call__(self, image: Float32[np.ndarray, "1 c h w"]) -> list[Float32[np.ndarray, ...]]:
        found = session(self._contents, self._threads or _threads())
        return list(found.run(self._outputs, {found.get_inputs()[0].name: image}))


def _threads() -> int:
    return max(1, cv2.getNumThreads())


@lru_cache(maxsize=8)
def session(contents: bytes, threads: int) -> Any:
    """Return onnxruntime's session, for all threads of the process together; loading it takes 0.03 s."""
    onnxruntime = _library()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = FATAL_ONLY
    settings.enable_mem_pattern = False  # patterns for several sizes take twice the memory
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Not its own format as well, of which nothing here reads the operators.
    settings.add_session_config_entry("session.load_model_format", "ONNX")
    # Numbers in other files are none that the hash of this one stands for.
    settings.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    names = providers(onnxruntime.get_available_providers())
    made = onnxruntime.InferenceSession(contents, settings, providers=names)
    if os.environ.get(DEVICE, AUTO) != AUTO and made.get_providers()[0] != names[0]:
        raise UsageError(
            f"onnxruntime cannot use {names[0]}", hint=f"take {{device}} {AUTO}", arguments=NAMED
        )
    return made


DEVICE: Final = "DPVEIL_DEVICE"
"""The variable that names the device of onnxruntime, for this process and its children."""
AUTO: Final = "auto"
CPU: Final = "cpu"
DEVICES: Final = {
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    CPU: "CPUExecutionProvider",
}
"""onnxruntime's execution providers by the names of devices, in the order in which `AUTO` takes them."""
NAMED: Final = {"device": "device"}


def providers(there: Sequence[str]) -> list[str]:
    """Return those of the execution providers that are `there` which are to be used, and the CPU's last.

    Confined processes have no device but the CPU. Raises `UnknownName` for another device, and `UsageError`
    for one that is not there.

    >>> providers(["OpenVINOExecutionProvider", "CPUExecutionProvider"])
    ['OpenVINOExecutionProvider', 'CPUExecutionProvider']
    """
    asked = CPU if processes.confined else os.environ.get(DEVICE, AUTO)
    if asked not in (AUTO, *DEVICES):
        raise UnknownName("device", asked, {AUTO, *DEVICES})
    wanted = [name for device, name in DEVICES.items() if asked in (AUTO, device)]
    found = [name for name in wanted if name in there]
    if not found:
        hint = f"install the onnxruntime that has it, or take {{device}} {AUTO}"
        raise UsageError(f"onnxruntime has no {wanted[0]} here", hint=hint, arguments=NAMED)
    return [*dict.fromkeys([*found, DEVICES[CPU]])]


def use_device(device: str) -> None:
    """Run networks on a device, in this process and its children; raises as `providers`."""
    os.environ[DEVICE] = device
    providers(_library().get_available_providers() if OnnxRuntime.is_installed() else [DEVICES[CPU]])


def _library() -> Any:
    # From its import on, it would store an identifier of the computer and report to Microsoft.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # its older builds for Windows do not read the variable
    return onnxruntime


class OpenCV(Engine):
    """OpenCV's dnn, with a net for each size of images: given two sizes, one net is silently wrong."""

    name = "opencv"

    def __init__(self, contents: bytes, outputs: Sequence[str] = (), *, threads: int | None = None) -> None:
        self._contents, self._outputs = np.frombuffer(contents, np.uint8), tuple(outputs)
        self._nets: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    @classmethod
    def is_installed(cls) -> bool:
        return True

    @classmethod
    def check(cls, contents: bytes, threads: int | None = None) -> None:
        cv2.dnn.readNetFromONNX(np.frombuffer(contents, np.uint8))

    def __call__(self, image: Float32[np.ndarray, "1 c h w"]) -> list[Float32[np.ndarray, ...]]:
        net = self._net(image.shape)
        net.setInput(image)
        outputs = self._outputs or net.getUnconnectedOutLayersNames()
        return [np.asarray(output) for output in net.forward(outputs)]

    def _net(self, shape: tuple[int, ...]) -> Any:
        if shape not in self._nets:
            while len(self._nets) >= NETS:
                self._nets.popitem(last=False)
            self._nets[shape] = cv2.dnn.readNetFromONNX(self._contents)
        self._nets.move_to_end(shape)
        return self._nets[shape]


ENGINES: Final[dict[str, type[Engine]]] = {engine.name: engine for engine in (OnnxRuntime, OpenCV)}
"""All engines; the first one that is installed and works is used."""
BROKEN: Final = (
    "{name} is installed and does not work ({error}), so OpenCV runs the networks, in more time:"
    " dpveil install faces, or pip uninstall {name}"
)
REFUSED: Final = "{name} refuses a network that OpenCV accepts ({error}), so OpenCV runs it, in more time"


@lru_cache(maxsize=8)
def fastest(contents: bytes, threads: int | None = None) -> type[Engine]:
    """Return the first engine that is installed and can prepare a network, the contents of an ONNX file.

    One that cannot is passed over with one `InstallationWarning`, if another one can; else raises whatever
    the last one raises. An error of the engine's own package is the network's fault, any other the
    installation's.
    """
    *others, last = (engine for engine in ENGINES.values() if engine.is_installed())
    failed = []
    for engine in others:
        try:
            engine.check(contents, threads)
        except UsageError:  # of a device that the user named
            raise
        except Exception as error:  # noqa: BLE001  whatever a broken package raises
            own = type(error).__module__.partition(".")[0] == engine.name
            text = REFUSED if own else BROKEN
            failed.append(text.format(name=engine.name, error=type(error).__name__))
        else:
            return engine
    if failed:
        last.check(contents, threads)
    for text in failed:
        warnings.warn(text, InstallationWarning, stacklevel=2)
    return last
