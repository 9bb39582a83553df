"""Bit sources: AES-256 in counter mode, keyed by the operating system or, to reproduce a run, by a seed.

Every mechanism takes its randomness from here and nowhere else. Each request replaces the key: the last 32
bytes of the stream become the next key and are never handed out, so that earlier draws cannot be recomputed
from memory that leaks later.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from typing import Final, NoReturn, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dpveil.core.array_types import Float64, UInt64
from dpveil.errors import InvalidParameter, UsageError

SECURE: Final = "secure"
SEEDED: Final = "seeded"
UNKNOWN: Final = "unknown"

_KEY = 32
_NONCE = bytes(16)
_ZEROS = memoryview(bytes(1 << 16))


class BitSource(ABC):
    """A stream of independent uniform bits. `bits_kind` returns what a certificate states about it.

    Instances have slots only, so that none of their methods can be replaced by accident.
    """

    __slots__ = ("__weakref__", "_key", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key = self._first_key()

    @abstractmethod
    def _first_key(self) -> bytes:
        """Return the first 32-byte key of the stream."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse copies and pickles: two sources with one key would draw the same noise twice."""
        raise UsageError(
            f"{type(self).__name__} cannot be copied or pickled: both would give the same bits",
            hint="make another one",
        )

    def words(self, count: int) -> UInt64[np.ndarray, " count"]:
        """Return `count` independent uniform 64-bit words.

        The stream is a function of the sequence of requests: asking for 2 and then 3 words differs from
        asking for 5. Thread-safe.

        >>> SeededBits(7).words(2).tolist() == SeededBits(7).words(2).tolist()
        True
        """
        out = np.empty(count, np.uint64)
        self.fill(out)
        return out

    def fill(self, out: UInt64[np.ndarray, ...]) -> None:
        """Overwrite a contiguous array of 64-bit words with uniform bits; `words` without allocating."""
        stream = out.reshape(-1).view(np.uint8).data
        with self._lock:
            encryptor = Cipher(algorithms.AES(self._key), modes.CTR(_NONCE)).encryptor()
            for start in range(0, len(stream), len(_ZEROS)):
                block = stream[start : start + len(_ZEROS)]
                encryptor.update_into(_ZEROS[: len(block)], block)
            self._key = encryptor.update(bytes(_KEY))
        if sys.byteorder == "big":
            out.byteswap(inplace=True)


@final
class SecureBits(BitSource):
    """Unpredictable bits: keyed by the operating system, and with a new key in every forked child.

    >>> SecureBits().words(3).shape
    (3,)
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        _alive.add(self)

    def _first_key(self) -> bytes:
        return os.urandom(_KEY)

    def _after_fork(self) -> None:
        """Take a new key and lock in a forked child: a thread that is gone may hold the old lock."""
        self._lock = threading.Lock()
        self._key = self._first_key()


@final
class SeededBits(BitSource):
    """Reproducible bits for tests and experiments; do not publish a release made with them.

    `seed` is a whole number of at least 0 (`InvalidParameter` otherwise). Another `stream` name gives an
    independent stream for the same seed.
    """

    __slots__ = ("seed", "stream")

    def __init__(self, seed: int, stream: str = "") -> None:
        whole: object = seed
        if isinstance(whole, bool) or not isinstance(whole, int) or whole < 0:
            raise InvalidParameter("seed", seed, "is not a whole number of at least 0", hint="such as 7")
        self.seed = seed
        self.stream = stream
        super().__init__()

    def _first_key(self) -> bytes:
        return hashlib.sha256(f"dpveil {self.seed} {self.stream}".encode()).digest()


@final
class KeptBits(BitSource):
    """Unpredictable bits of a run that may be killed and resumed: it draws the very same again, not anew.

    `key` is 32 bytes of the operating system (`os.urandom`), which the run keeps as secret as its input until
    what it drew is stored, and then deletes: whoever knows them undoes the release. Another `stream` name
    gives an independent stream for the same key. Raises `InvalidParameter` for a key of another length.

    >>> key = os.urandom(32)
    >>> KeptBits(key, "person 1").words(2).tolist() == KeptBits(key, "person 1").words(2).tolist()
    True
    """

    __slots__ = ("_first",)

    def __init__(self, key: bytes, stream: str) -> None:
        if type(key) is not bytes or len(key) != _KEY:
            raise InvalidParameter("key", None, "is not 32 bytes", hint="give os.urandom(32)")
        self._first = hmac.digest(key, f"dpveil {stream}".encode(), "sha256")
        super().__init__()
        self._first = b""  # as of every source, earlier draws cannot be recomputed from it

    def _first_key(self) -> bytes:
        return self._first


def bits_kind(bits: BitSource) -> str:
    """Return what a certificate states about `bits`: "secure", "seeded", or "unknown".

    Only the exact type counts: a subclass may override the draws, so it is "unknown". Code that sets private
    attributes of a source is outside the model, as it could change any part of this package.

    >>> bits_kind(SecureBits()), bits_kind(SeededBits(7))
    ('secure', 'seeded')
    """
    if type(bits) is SecureBits or type(bits) is KeptBits:
        return SECURE
    return SEEDED if type(bits) is SeededBits else UNKNOWN


def check_bits(bits: object) -> BitSource:
    """Return `bits` unchanged. Raises `InvalidParameter` if it is not a `BitSource`."""
    if not isinstance(bits, BitSource):
        raise InvalidParameter(
            "bits", type(bits).__name__, "is not a source of bits", hint="give dpveil.SecureBits()"
        )
    return bits


_alive: weakref.WeakSet[SecureBits] = weakref.WeakSet()


def _rekey_all() -> None:
    for source in list(_alive):
        source._after_fork()


os.register_at_fork(after_in_child=_rekey_all)


def uniforms(count: int, bits: BitSource) -> Float64[np.ndarray, " n"]:
    """Return numbers that are uniform between 0 and 1, neither included.

    53 bits each: 64 would round up to 1.
    """
    return np.asarray(((bits.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def normals(count: int, bits: BitSource) -> Float64[np.ndarray, " n"]:
    """Return numbers with a standard normal distribution."""
    from scipy.special import ndtri

    return np.asarray(ndtri(uniforms(count, bits)))
