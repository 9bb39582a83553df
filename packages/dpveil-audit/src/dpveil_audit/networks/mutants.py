"""`latent` with codecs of networks, whole and with faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dpveil.codecs.statistics import Statistics
from dpveil.faces import Latent
from dpveil_audit.networks.case import (
    LENGTH,
    SIDE,
    Audited,
    Crops,
    NetworkCase,
    NetworkVersion,
    Planes,
    Reads,
    coloured,
    light,
    linear,
)

PART: Final = 0.05
"""How much of what it should not see a faulty network adds."""
Made = Callable[[NetworkCase], Audited]


class Memory:
    """Networks that remember the pictures that they have seen, as those with skip connections do."""

    def __init__(self) -> None:
        self.planes: list[Planes] = [np.zeros((3, SIDE, SIDE), np.float32)]

    def encode(self, given: Planes) -> Planes:
        """Encode a picture, and remember it."""
        self.planes.append(given[0])
        return light(given)

    def skipping(self, given: Planes) -> Planes:
        """Decode, and add a part of the last picture that was encoded."""
        return coloured(given) + PART * self.planes[-1]

    def turned(self, given: Planes) -> Planes:
        """Decode in the pose, or with the expression, that the brightness of the last picture stands for."""
        told = given.copy()
        told[:, LENGTH + 1 if told.shape[1] > LENGTH + 1 else -1] += PART * self.planes[-1].mean()
        return coloured(told)

    def normalised(self, given: Planes) -> Planes:
        """Encode a picture by how it differs from the mean of those seen, as with batch statistics."""
        self.planes.append(given[0])
        return light(np.asarray(given - np.mean(self.planes, axis=0) / 2))

    def mixing(self, given: Planes) -> Planes:
        """Decode, and let the last decoded face show through."""
        self.planes.append(coloured(given))
        return np.asarray(self.planes[-1] + PART * self.planes[-2])


class Near:
    """Statistics whose box lies around the codes at hand."""

    def __init__(self, codes: Any, own: Statistics) -> None:
        self._codes, self._own = codes, own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def bounds(self, clip: Any = 0) -> Any:
        """Return the usual box, moved to the first code."""
        box = self._own.bounds(clip)
        return type(box)(box.low + self._codes[0], box.high + self._codes[0])


def _codec(name: str, make: Made, gates: tuple[str, ...]) -> NetworkVersion:
    """Return a version with another codec."""
    return NetworkVersion(name=name, make=lambda case: case.method(make(case)), gates=gates)


def _skipping(case: NetworkCase) -> Audited:
    memory = Memory()
    return linear(case.kind, memory.encode, memory.skipping)


def _turned(case: NetworkCase) -> Audited:
    memory = Memory()
    return linear(case.kind, memory.encode, memory.turned)


def _normalised(case: NetworkCase) -> Audited:
    return linear(case.kind, Memory().normalised)


def _mixing(case: NetworkCase) -> Audited:
    return linear(case.kind, decode=Memory().mixing)


def _wide(case: NetworkCase) -> Audited:
    """Return a codec that reads and draws the whole crop."""
    kind = type(case.kind.__name__, (case.kind,), {"_encode": _whole, "_rendered": _everywhere})
    return linear(kind)


def _whole(codec: Any, crops: Crops) -> Any:
    planes = crops.transpose(0, 3, 1, 2)[:, :2].astype(np.float64) / 127.5 - 1
    return planes.mean(axis=(2, 3))


def _everywhere(codec: Any, codes: Any, conditions: Any) -> Crops:
    given = [np.concatenate([code, conditions])[None].astype(np.float32) for code in codes]
    drawn = np.array([codec.decoder(one)[0] for one in given]).reshape(-1, 3, SIDE, SIDE)
    return np.clip(np.rint((drawn.transpose(0, 2, 3, 1) + 1) * 127.5), 0, 255).astype(np.uint8)


def _own(name: str, release: Callable[..., Any]) -> NetworkVersion:
    """Return a version whose mechanism releases codes in another way: (mechanism, codes, space, bits)."""

    def make(case: NetworkCase) -> Latent:
        method = case.method(linear(case.kind))
        method.__dict__["_own"] = Replaced(method._own, release)
        return method

    return NetworkVersion(name=name, make=make, gates=("bound",))


class Replaced:
    """A mechanism with another `release`."""

    def __init__(self, own: Any, other: Callable[..., Any]) -> None:
        self._own, self._other = own, other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def release(self, codes: Any, space: Any, *, bits: Any) -> Any:
        """Return what the other function makes of codes."""
        return self._other(self._own, codes, space, bits)


def _moved(own: Any, codes: Any, space: Any, bits: Any) -> Any:
    return own.release(codes, Near(codes, space), bits=bits)


def _late(own: Any, codes: Any, space: Any, bits: Any) -> Any:
    """Add the noise of the centre, then clip: codes beyond the box are as far apart as they come."""
    box = space.bounds(own.clip)
    noise = own.release(np.zeros_like(codes), space, bits=bits)
    return box.clip(codes + noise)


def _unread(name: str) -> NetworkVersion:
    """Return a version that tells the decoder what the model reads, without randomised response."""

    def make(case: NetworkCase) -> Latent:
        method = case.method(linear(case.kind))
        names = method.told.responses

        def answers(crops: Crops, *_: object) -> Any:
            read = Reads().read(crops)
            return {name: read[name] for name in names}

        object.__setattr__(method.told, "answers", answers)
        return method

    return NetworkVersion(name=name, make=make, gates=("bound",))


INTACT: Final = NetworkVersion(name="intact", make=lambda case: case.method(linear(case.kind)))
MUTANTS: Final = (
    _codec("skip connection", _skipping, ("around",)),
    _codec("pose or expression of the original", _turned, ("around",)),
    _codec("batch statistics in the encoder", _normalised, ("alone",)),
    _codec("faces of a batch mixed in the decoder", _mixing, ("alone",)),
    _codec("what is beyond the ellipse read", _wide, ("beyond",)),
    _own("box around the code", _moved),
    _own("noise before clipping", _late),
    _unread("attribute of the face itself"),
)
