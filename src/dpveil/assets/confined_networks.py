"""Networks that a user brings, in a process of their own, as a damaged file may end the one that reads it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dpveil.assets.engines import Engine, fastest, session
from dpveil.errors import ModelError
from dpveil.opencv import cv2
from dpveil.processes import Answering, Channel, Ended, Pool, answer

TARGET: Final = "dpveil.assets.confined_networks:serve"
SECONDS: Final = 300  # time of a run; a search of 4096 × 3072 pixels takes 6 seconds
MEMORY_BYTES: Final = 1 << 34  # memory of the process in bytes; large detectors take some gigabytes
MOST_OUTPUT_BYTES: Final = 1 << 27
"""Most bytes of what a network gives: who asked is not to run out of memory for it."""
MOST_NAMES: Final = 10_000
MOST_LETTERS: Final = 100  # most names of classes, and letters of one
WHY: Final = {
    "time": "the network takes too long",
    "memory": "the network takes too much memory",
    "start": "the network needs a process of its own",
}


class Confined:
    """The `contents` of an ONNX file, for one of `JOBS`, in a process of its own.

    A damaged file can end that process: then this one goes on, with one error. May be called from several
    threads, each of which gets a process.
    """

    def __init__(
        self, job: str, contents: bytes, *, memory: int = MEMORY_BYTES, seconds: float = SECONDS
    ) -> None:
        self.job = job
        self.pool = Pool(TARGET, (job, contents), memory=memory, seconds=seconds)

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the only array that the job gives for `arrays`; raises as `all`."""
        found = self.all(*arrays)
        if len(found) != 1:
            raise ModelError("the network gives several arrays")
        return found[0]

    def all(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Return the arrays that the job gives for `arrays`; raises `ModelError`."""
        return self._ask(*arrays)[1]

    def describe(self) -> tuple[list[list[int]], dict[int, str]]:
        """Return the shapes of the inputs, with 0 where a length is free, and the names of the classes.

        Needs onnxruntime. Raises `ModelError`, also for names that are no list.
        """
        told, _ = self._ask(question="described")
        shapes, names = told["shapes"], told["names"]
        if not isinstance(shapes, list) or any(
            not isinstance(shape, list) or any(type(side) is not int for side in shape) for shape in shapes
        ):
            raise ModelError("the network does not tell what it takes")
        plain = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not plain or not all(0 < len(name) <= MOST_LETTERS and "\n" not in name for name in names):
            raise ModelError("its list of names cannot be read")
        return shapes, dict(enumerate(names))

    def _ask(self, *arrays: np.ndarray, question: str = "run") -> tuple[dict[str, Any], list[np.ndarray]]:
        asked = {"do": question, "threads": cv2.getNumThreads()}
        try:
            told, found = self.pool.ask(asked, *arrays, most=MOST_OUTPUT_BYTES)
        except Ended as error:
            raise ModelError(WHY.get(error.why, "the network ends the process that reads it")) from error
        if not isinstance(told, dict) or told.get("refused"):
            raise ModelError("the network does not run")
        return told, found


# In the process


def serve(channel: Channel) -> None:
    """Answer questions about the network of the first message."""
    answer(channel, _prepare_worker)


def _prepare_worker(job: str, network: np.ndarray) -> Answering:
    contents = network.tobytes()

    def answers(asked: dict[str, Any], *arrays: np.ndarray) -> tuple[Any, ...]:
        cv2.setNumThreads(asked["threads"])
        try:
            if asked["do"] == "described":
                return ({"refused": False, **_describe_network(contents)},)
            found = JOBS[job](contents, *arrays)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  whatever a damaged network raises
            return ({"refused": True},)
        made = [found] if isinstance(found, np.ndarray) else found
        if sum(one.nbytes for one in made) > MOST_OUTPUT_BYTES:
            return ({"refused": True},)
        return ({"refused": False}, *made)

    return answers


def everything(contents: bytes, image: np.ndarray) -> list[np.ndarray]:
    """Return all outputs of a network for an image, 1 × 3 × h × w, in the order of the file.

    A second input gets the image's width and height.
    """
    made = session(contents, max(1, cv2.getNumThreads()))
    first, *more = (one.name for one in made.get_inputs())
    sizes = dict.fromkeys(more, np.array([image.shape[:1:-1]], np.int64))
    return [np.asarray(one, np.float32) for one in made.run(None, {first: image, **sizes})]


def first_output(contents: bytes, given: np.ndarray) -> np.ndarray:
    """Return the first output of a network for its only input, by the fastest engine on one thread."""
    return np.asarray(_engine(contents)(given)[0], np.float32)


@lru_cache(maxsize=1)
def _engine(contents: bytes) -> Engine:
    return fastest(contents, 1)(contents, threads=1)


JOBS: Final[dict[str, Callable[..., np.ndarray | list[np.ndarray]]]] = {
    "everything": everything,
    "alone": first_output,
}
"""What the process can do with a network."""


def _describe_network(contents: bytes) -> dict[str, Any]:
    """Return shapes of inputs, and names of classes as Ultralytics writes them: {0: 'person', 1: 'car'}."""
    made = session(contents, 1)
    shapes = [[side if type(side) is int else 0 for side in one.shape] for one in made.get_inputs()]
    words = made.get_modelmeta().custom_metadata_map.get("names", "")
    try:
        names = ast.literal_eval(words) if words else {}
        found = [names[number] for number in range(len(names))][: MOST_NAMES + 1]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError):
        found = [None]
    return {"shapes": shapes, "names": found if len(found) <= MOST_NAMES else [None]}
