"""What is said about bits: the exact type of a source decides, and nothing that it says of itself."""

import os
import types

import numpy as np
import pytest

import dpveil
from dpveil.noise.bits import BitSource, SecureBits, SeededBits, bits_kind
from dpveil.numbers import PrivateGaussianNB, count


class SaysSecure(SeededBits):
    """Seeded, and says that it is secure."""

    kind = "secure"


class Constant(SecureBits):
    """Secure by descent; its bits are all zero."""

    def fill(self, out):
        out[...] = 0

    def words(self, count):
        return np.zeros(count, np.uint64)


class KnownKey(SecureBits):
    """Secure by descent; everyone knows its key."""

    def _first_key(self):
        return bytes(32)


class Property(SeededBits):
    """Answers when it is asked."""

    @property
    def kind(self):
        return "secure"


class Own(BitSource):
    """A source of its own that says it is secure."""

    kind = "secure"

    def _first_key(self):
        return bytes(32)


class Posing(SeededBits):
    """Passes `isinstance` as the secure source."""

    __class__ = SecureBits
    kind = "secure"


class Both(SeededBits):
    """Takes the class of another kind, and its own name, along."""

    __slots__ = ()
    kind = "secure"


Both.__name__, Both.__qualname__, Both.__module__ = "SecureBits", "SecureBits", SecureBits.__module__
IMPOSTORS = {
    "a kind of its own": lambda: SaysSecure(1),
    "constant bits": Constant,
    "a known key": KnownKey,
    "a property": lambda: Property(1),
    "a new source": Own,
    "another __class__": lambda: Posing(1),
    "another name": lambda: Both(1),
}


def release(bits):
    image = np.arange(64, dtype=np.uint8).reshape(8, 8)
    return dpveil.obfuscate(image, "dp-pix", epsilon=8, block=8, neighbourhood=1, bits=bits)


@pytest.mark.parametrize("made", IMPOSTORS.values(), ids=IMPOSTORS)
def test_no_source_says_of_itself_that_it_is_secure(made):
    certificate = release(made()).certificate
    assert certificate.bits == "unknown"
    assert not certificate.publishable
    assert "NOT FOR PUBLICATION: nothing is known about 'unknown' bits" in certificate.warnings


@pytest.mark.parametrize("made", IMPOSTORS.values(), ids=IMPOSTORS)
def test_queries_and_models_ask_the_same(made):
    answer = count(["yes", "no"], equals="yes", epsilon=1).release(made())
    assert answer.bits == "unknown"
    assert "NOT FOR PUBLICATION" in answer.warnings[0]
    model = PrivateGaussianNB(epsilon=1, bounds=(0, 1), random_state=made()).fit([[0.0], [1.0]], [0, 1])
    assert not model.for_publication_
    assert any("not for publication" in text for text in model.guarantee_.scope.in_the_clear)


def test_the_two_sources_are_what_they_are():
    assert (bits_kind(SecureBits()), bits_kind(SeededBits(1))) == ("secure", "seeded")
    assert release(SecureBits()).certificate.publishable
    assert release(SeededBits(1)).certificate.bits == "seeded"
    assert not release(SeededBits(1)).certificate.publishable


@pytest.mark.parametrize("source", [SecureBits(), SeededBits(1)], ids=["secure", "seeded"])
@pytest.mark.parametrize("name", ["kind", "words", "fill", "_first_key", "anything"])
def test_an_instance_takes_no_method_or_kind(source, name):
    with pytest.raises(AttributeError):
        setattr(source, name, lambda *_: 0)


def test_a_source_does_not_become_another():
    with pytest.raises(TypeError, match="layout"):
        SeededBits(1).__class__ = SecureBits  # type: ignore[assignment]
    with pytest.raises(TypeError, match="layout"):
        SaysSecure(1).__class__ = SecureBits  # type: ignore[assignment]
    lowered = SecureBits()
    with pytest.raises(TypeError, match="layout"):
        lowered.__class__ = Constant  # type: ignore[assignment]
    assert bits_kind(lowered) == "secure"


def test_a_class_that_says_it_equals_the_secure_one_does_not():
    class Meta(type(BitSource)):
        def __eq__(cls, other):
            return True

        def __hash__(cls):
            return hash(SecureBits)

    class Equal(BitSource, metaclass=Meta):
        __slots__ = ()

        def _first_key(self):
            return bytes(32)

    assert bits_kind(Equal()) == "unknown"


def test_what_only_looks_like_a_source_is_refused():
    duck = types.SimpleNamespace(kind="secure", words=os.urandom, fill=os.urandom)
    with pytest.raises(dpveil.errors.InvalidParameter, match="not a source of bits"):
        release(duck)


@pytest.mark.parametrize("claimed", ["", "Secure", "secure ", "sеcure", "unknown"])
def test_a_certificate_with_another_word_for_secure_is_not_for_publication(claimed):
    given = release(SecureBits()).certificate
    assert not dpveil.Certificate(**{**vars(given), "bits": claimed}).publishable
