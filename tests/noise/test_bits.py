"""Bit sources: independent, reproducible only when asked, safe across threads and forks."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest

from dpveil.errors import InvalidParameter, UsageError
from dpveil.noise.bits import BitSource, SecureBits, SeededBits


def test_the_seeded_stream_is_aes_in_counter_mode_and_stays_what_it_was():
    """Published experiments are reproduced by seed, so the stream may never change."""
    assert [hex(word) for word in SeededBits(7).words(3)] == GOLDEN


GOLDEN = ["0xbed3f358e3f11b45", "0x1f7f54c626c3ef0", "0x84752affef3a1107"]


def test_equal_seeds_repeat_and_other_seeds_and_streams_do_not():
    first = SeededBits(1).words(100)
    assert np.array_equal(first, SeededBits(1).words(100))
    for other in (SeededBits(2), SeededBits(1, "a.png"), SeededBits(12), SeededBits(1, "2")):
        assert not np.any(first == other.words(100))


@pytest.mark.parametrize("source", [SecureBits(), SeededBits(3)])
def test_no_word_comes_twice(source: BitSource):
    """Two of 200 000 random words are equal with probability below 2e-9."""
    words = np.concatenate([source.words(n) for n in (1, 8191, 8192, 8193, 100_000, 75_423)])
    assert len(np.unique(words)) == len(words) == 200_000


def test_every_bit_is_even():
    """Each of 64 counts of 2^20 fair bits is within 7 standard deviations: fails by chance below 2e-10."""
    words = SecureBits().words(1 << 20)
    counts = np.array([np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)) for bit in range(64)])
    assert np.all(np.abs(counts - (1 << 19)) < 7 * 512)


def test_two_secure_sources_differ():
    assert not np.any(SecureBits().words(1000) == SecureBits().words(1000))


def test_the_key_is_used_up():
    source = SeededBits(5)
    keys = {source._key}
    for _ in range(3):
        source.words(1)
        keys.add(source._key)
    assert len(keys) == 4


def test_threads_never_share_words():
    source = SecureBits()
    parts: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: parts.extend(source.words(50) for _ in range(200))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(parts)
    assert len(words) == 80_000
    assert len(np.unique(words)) == 80_000


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_draws_other_words_even_when_a_thread_held_the_lock():
    source = SecureBits()
    source.words(10)
    read, write = os.pipe()
    with source._lock:
        child = os.fork()
        if child == 0:
            os.write(write, source.words(10).tobytes())
            os._exit(0)
    theirs = np.frombuffer(os.read(read, 80), np.uint64)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    assert len(theirs) == 10
    assert not np.any(theirs == source.words(10))


def test_fill_is_words_without_the_memory():
    buffer = np.empty(20_000, np.uint64)
    SeededBits(4).fill(buffer)
    assert np.array_equal(buffer, SeededBits(4).words(20_000))


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_seed_is_a_whole_number(seed: object):
    with pytest.raises(InvalidParameter, match="seed"):
        SeededBits(seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [SecureBits, lambda: SeededBits(3)])
@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_has_no_twin_that_gives_the_same_bits(make, twin):
    with pytest.raises(UsageError, match="cannot be copied or pickled"):
        twin(make())
