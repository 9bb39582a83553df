"""What runs in a process of its own (`assets.apart`): readers of networks, which damaged ones end.

It is started as a script and needs nothing but NumPy and OpenCV, and takes onnxruntime where it is there.
Messages are lists of arrays.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from typing import IO, Any, Final

import numpy as np

TYPES: Final = ("|u1", "<f4", "<f8")
"""Types of arrays in messages."""
MOST: Final = 1 << 31
"""Most bytes of a message; a network of 1 GiB is one."""
MOST_FOUND: Final = 1 << 27
"""Most bytes of what a network gives, all arrays together: what asked is not to run out of memory for it."""
MEMORY: Final = 1 << 34
"""Most memory that the process gets, in bytes, where the system can limit it."""
LONGEST: Final = 330
"""Seconds after which a run ends itself, if the one that asked for it is no longer there to do so."""
HEAD: Final = 4096
"""Longest line that describes arrays."""


def write(stream: IO[bytes], arrays: Sequence[np.ndarray] | None) -> None:
    """Write a message; None says that OpenCV refused."""
    told = None if arrays is None else [[array.dtype.str, array.shape] for array in arrays]
    stream.write(json.dumps(told).encode() + b"\n")
    for array in arrays or ():
        stream.write(np.ascontiguousarray(array).data)
    stream.flush()


def read(stream: IO[bytes], most: int = MOST) -> list[np.ndarray] | None:
    """Return the arrays of a message; raises `EOFError` at the end and `ValueError` for anything else.

    Nothing is read of arrays that have more than `most` bytes together.
    """
    line = stream.readline(HEAD)
    if not line.endswith(b"\n"):
        raise EOFError("the other process ended")
    told = json.loads(line)
    if told is None:
        return None
    if sum(_size(*one) for one in told) > most:
        raise ValueError("it is no message")
    return [_array(stream, *one) for one in told]


def _size(kind: str, shape: list[int]) -> int:
    """Return how many bytes an array has; raises `ValueError` for what is none."""
    if kind in TYPES and len(shape) <= 8 and all(type(side) is int and 0 <= side < MOST for side in shape):
        return math.prod(shape) * np.dtype(kind).itemsize
    raise ValueError("it is no message")


def _array(stream: IO[bytes], kind: str, shape: list[int]) -> np.ndarray:
    size = _size(kind, shape)
    contents = stream.read(size)
    if len(contents) < size:
        raise EOFError("the other process ended")
    return np.frombuffer(contents, kind).reshape(shape)


def detect(contents: np.ndarray, image: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """Return YuNet's rows of 15 numbers for an image; `settings` are threshold and overlap."""
    import cv2

    height, width = image.shape[:2]
    threshold, overlap = settings.tolist()
    finder: Any = cv2.FaceDetectorYN.create(
        "onnx", contents, np.zeros(0, np.uint8), (width, height), threshold, overlap, top_k=5000
    )
    done, rows = finder.detect(image)
    if not done:
        raise cv2.error("it did not run")
    return np.zeros((0, 15)) if rows is None else np.asarray(rows, np.float64)


def inpaint(contents: np.ndarray, image: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return what a network of LaMa's inputs gives for an image and a mask, as it is.

    Loads a new net for each call: OpenCV's nets keep earlier inputs.
    """
    import cv2

    net = cv2.dnn.readNetFromONNX(contents)
    net.setInput(cv2.dnn.blobFromImage(image, 1 / 255), "image")
    net.setInput(cv2.dnn.blobFromImage(mask), "mask")
    return np.asarray(net.forward(), np.float32)


def everything(contents: np.ndarray, image: np.ndarray) -> list[np.ndarray]:
    """Return all outputs of a network for an image, 1 × 3 × h × w, in the order of the file.

    A second input gets the image's width and height. onnxruntime runs it where it is installed, or else
    OpenCV; raises `cv2.error` for any error of theirs.
    """
    import cv2

    if find_spec("onnxruntime") is None:
        net = cv2.dnn.readNetFromONNX(contents)
        net.setInput(image)
        return [np.asarray(one, np.float32) for one in net.forward(net.getUnconnectedOutLayersNames())]
    try:
        session = _session(contents.tobytes(), max(1, cv2.getNumThreads()))
        first, *more = (one.name for one in session.get_inputs())
        sizes = dict.fromkeys(more, np.array([image.shape[:1:-1]], np.int64))
        return [np.asarray(one, np.float32) for one in session.run(None, {first: image, **sizes})]
    except Exception as error:  # whatever a damaged network raises
        raise cv2.error("it did not run") from error


@lru_cache(maxsize=1)
def _session(contents: bytes, threads: int) -> Any:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = threads
    settings.add_session_config_entry("session.load_model_format", "ONNX")
    return onnxruntime.InferenceSession(contents, settings, providers=["CPUExecutionProvider"])


JOBS: Final[dict[str, Callable[..., np.ndarray | list[np.ndarray]]]] = {
    "yunet": detect,
    "lama": inpaint,
    "everything": everything,
}
"""What the process can do with a network."""


def serve(job: str, asked: IO[bytes], answers: IO[bytes]) -> None:
    """Answer messages about the network of the first one until there are no more."""
    import cv2

    alarm = getattr(signal, "alarm", lambda _: None)  # there is none on Windows
    with suppress(EOFError):
        contents = (read(asked) or [])[0]
        while True:
            threads, *arrays = read(asked) or []
            cv2.setNumThreads(int(threads))
            alarm(LONGEST)
            try:
                found = JOBS[job](contents, *arrays)
            except cv2.error:
                found = None
            alarm(0)
            made = [found] if isinstance(found, np.ndarray) else found
            write(answers, None if sum(one.nbytes for one in made or ()) > MOST_FOUND else made)


def main() -> None:
    """Serve on the standard streams, within limits; what OpenCV prints goes nowhere."""
    with suppress(ImportError, ValueError, OSError):  # no such limits, or lower ones
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.argv[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
