"""dpveil: provably private photos and clips, each with a certificate that states the guarantee.

>>> import numpy, dpveil
>>> release = dpveil.obfuscate(numpy.zeros((8, 8), numpy.uint8), "dp-pix", epsilon=1, block=8)
>>> release.certificate.guarantees[0].kind
'pure'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.catalogue import methods
    from dpveil.core.certificate import Certificate
    from dpveil.core.guarantee import Guarantee, Relation, Scope
    from dpveil.core.photo import Photo
    from dpveil.core.region import Box, Region
    from dpveil.core.region_origin import Origin
    from dpveil.errors import DPVeilError
    from dpveil.io.reading import read
    from dpveil.ledger.ledger import Ledger
    from dpveil.noise.bits import BitSource, SecureBits, SeededBits
    from dpveil.release.keys import PublicKey, SigningKey
    from dpveil.release.plan import Plan, obfuscate, plan
    from dpveil.release.saving import Release
    from dpveil.release.verification import Verification
    from dpveil.verifying import verify, verify_each

    __version__: str

__all__ = [
    "BitSource",
    "Box",
    "Certificate",
    "DPVeilError",
    "Guarantee",
    "Ledger",
    "Origin",
    "Photo",
    "Plan",
    "PublicKey",
    "Region",
    "Relation",
    "Release",
    "Scope",
    "SecureBits",
    "SeededBits",
    "SigningKey",
    "Verification",
    "__version__",
    "methods",
    "obfuscate",
    "plan",
    "read",
    "verify",
    "verify_each",
]

_load, _ = lazy(
    __name__,
    {
        "catalogue": "methods",
        "core.certificate": "Certificate",
        "core.guarantee": "Guarantee Relation Scope",
        "core.region_origin": "Origin",
        "core.photo": "Photo",
        "core.region": "Box Region",
        "errors": "DPVeilError",
        "io.reading": "read",
        "ledger.ledger": "Ledger",
        "noise.bits": "BitSource SecureBits SeededBits",
        "release.keys": "PublicKey SigningKey",
        "release.plan": "Plan obfuscate plan",
        "release.saving": "Release",
        "release.verification": "Verification",
        "verifying": "verify verify_each",
    },
)
_MODULES: Final = ("numbers", "video")
"""Modules that are loaded when accessed as attributes."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dpveil.{name}")
    if name == "__version__":
        globals()[name] = import_module("importlib.metadata").version("dpveil")
        return globals()[name]
    return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
