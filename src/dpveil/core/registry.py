"""The registry of every role: the names of its classes, which are loaded on demand, and plug-ins.

A row is "module:Class", so that listing names imports nothing. To add a method, a detector or a codec to
dpveil, add its file and a row here. Other packages add theirs by entry point (docs, "Adding a method");
their names come after dpveil's own and cannot replace them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from importlib import import_module
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final

from dpveil.errors import PluginError, PluginWarning, UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")  # names of plug-ins: kebab case


class Table(Mapping[str, Any]):
    """The names of one role, each mapped to its class, which is loaded on lookup; dpveil's own come first.

    `group` is the entry-point group of this role, `base` the class that plug-ins must extend. Names that are
    not dpveil's own must equal the name of an installed entry point, so that the author of a certificate can
    select an installed plug-in but import nothing else. Looking up a name raises `UnknownName`, and
    `PluginError` for a plug-in that fails.

    >>> METHODS["dp-pix"].__name__, "dp-picks" in METHODS
    ('DPPix', False)
    """

    def __init__(self, role: str, rows: Mapping[str, Any], *, group: str = "", base: str = "") -> None:
        self.role, self.rows, self.group, self.base = role, dict(rows), group, base
        self._ready: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._ready:
            row = self.rows[name] if name in self.rows else self._load_plugin(name)
            self._ready[name] = _load_row(row) if isinstance(row, str) else row
        return self._ready[name]

    def __contains__(self, name: object) -> bool:
        return name in self.rows or name in self.plugins

    def __iter__(self) -> Iterator[str]:
        yield from self.rows
        yield from self.plugins

    def __len__(self) -> int:
        return len(self.rows) + len(self.plugins)

    @property
    def homes(self) -> dict[str, str]:
        """The module of each of dpveil's own classes, by class name."""
        return {name: module for module, _, name in (str(row).partition(":") for row in self.rows.values())}

    def usable(self) -> Iterator[tuple[str, Any]]:
        """Yield every name and its class; a plug-in that fails is skipped with a `PluginWarning`."""
        for name in self:
            try:
                yield name, self[name]
            except PluginError as error:
                warnings.warn(str(error), PluginWarning, stacklevel=2)

    @cached_property
    def plugins(self) -> dict[str, tuple[EntryPoint, ...]]:
        """Entry points of installed packages by name; a name has several where packages conflict.

        An entry point with one of dpveil's own names is left out with a `PluginWarning`.
        """
        from importlib.metadata import entry_points  # slow to import, and only plug-ins need it

        found: dict[str, tuple[EntryPoint, ...]] = {}
        for entry in entry_points(group=self.group) if self.group else ():
            if entry.name in self.rows:
                text = f"{_package(entry)} cannot replace dpveil's own {self.role} {entry.name!r}"
                warnings.warn(text, PluginWarning, stacklevel=2)
            else:
                found[entry.name] = (*found.get(entry.name, ()), entry)
        return found

    def _load_plugin(self, name: str) -> Any:
        if name not in self.plugins:
            raise UnknownName(self.role, str(name), self)
        offers = self.plugins[name]
        packages = " and ".join(sorted(_package(entry) for entry in offers))
        if len(offers) > 1:
            raise PluginError(f"the {self.role} {name!r} is in {packages}", hint="uninstall all but one")
        what, hint = f"the {self.role} {name!r} of {packages}", "update or uninstall that package"
        try:
            found = offers[0].load()
        except (Exception, SystemExit) as error:  # a third party's module must not end a run
            told = " ".join(f"{type(error).__name__}: {error}".split())
            raise PluginError(f"{what} cannot be loaded: {told}", hint=hint) from error
        if problem := _misfit_reason(name, found, _load_row(self.base) if self.base else None):
            raise PluginError(f"{what} {problem}", hint=hint)
        return found


def _load_row(row: str) -> Any:
    module, _, name = row.partition(":")
    return getattr(import_module(module), name)


def _misfit_reason(name: str, found: Any, base: Any) -> str:
    """Return why a plug-in cannot be used, or an empty string if it can."""
    from dpveil.core.parameters import Parameter  # listing names imports nothing

    if not NAME.fullmatch(name):
        return "is not named in kebab case"
    if base is None:
        return ""
    if not isinstance(found, type) or not issubclass(found, base):
        return f"does not extend {base.__module__}.{base.__name__}"
    own: Any = found
    told = [key for key, kind in base.__annotations__.items() if str(kind).startswith("ClassVar")]
    if lacking := [*own.__abstractmethods__, *(key for key in told if not hasattr(own, key))]:
        return f"lacks {', '.join(sorted(lacking))}"
    if own.name != name:
        return f"calls itself {own.name!r}"
    if not hasattr(own, "stated"):
        return ""
    if "__dataclass_fields__" not in vars(own):
        return "is not a dataclass"
    # Certificates state fields of these kinds alone.
    plain = [f.name for f in fields(own) if not isinstance(getattr_static(own, f.name, None), Parameter)]
    return f"has fields that are not parameters of dpveil.core: {', '.join(plain)}" if plain else ""


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


PIXEL: Final = Table(
    "method",
    {
        "dp-pix": "dpveil.mechanisms.pixel.dp_pix:DPPix",
        "dp-pix-gaussian": "dpveil.mechanisms.pixel.dp_pix:DPPixGaussian",
        "ssim-exponential": "dpveil.mechanisms.pixel.ssim.method:SSIMExponential",
        "mse-exponential": "dpveil.mechanisms.pixel.mse_exponential:MSEExponential",
        "bit-planes": "dpveil.mechanisms.pixel.bit_planes:BitPlanes",
        "dct-gaussian": "dpveil.mechanisms.pixel.dct_gaussian:DCTGaussian",
        "dp-svd": "dpveil.mechanisms.pixel.dp_svd:DPSVD",
        "dp-samp": "dpveil.mechanisms.pixel.dp_samp:DPSamp",
        "snow": "dpveil.mechanisms.pixel.common_practice:Snow",
        "blur": "dpveil.mechanisms.pixel.common_practice:Blur",
        "mosaic": "dpveil.mechanisms.pixel.common_practice:Mosaic",
        "fill": "dpveil.mechanisms.pixel.common_practice:Fill",
    },
)
FACES: Final = Table(
    "method",
    {
        "latent": "dpveil.faces.latent:Latent",
        "gallery": "dpveil.faces.gallery_method:Gallery",
        "attributes": "dpveil.faces.attributes_method:Attributes",
    },
)
METHODS: Final = Table(
    "method", {**PIXEL.rows, **FACES.rows}, group="dpveil.methods", base="dpveil.mechanisms.method:Method"
)
"""Every method that releases photos: pixel methods, face methods, and plug-ins."""

LATENT: Final = Table(
    "latent mechanism",
    {
        "croft-metric": "dpveil.mechanisms.latent.coordinate_noise:CroftMetric",
        "pca-basis": "dpveil.mechanisms.latent.coordinate_noise:PCABasis",
        "box-laplace": "dpveil.mechanisms.latent.coordinate_noise:BoxLaplace",
        "box-truncated-laplace": "dpveil.mechanisms.latent.coordinate_noise:BoxTruncatedLaplace",
        "box-gaussian": "dpveil.mechanisms.latent.coordinate_noise:BoxGaussian",
        "directional": "dpveil.mechanisms.latent.directional:Directional",
    },
)
SCALAR: Final = Table(
    "mechanism",
    {
        "laplace": "dpveil.mechanisms.scalar.laplace:Laplace",
        "truncated-laplace": "dpveil.mechanisms.scalar.laplace:TruncatedLaplace",
        "staircase": "dpveil.mechanisms.scalar.laplace:Staircase",
        "geometric": "dpveil.mechanisms.scalar.laplace:Geometric",
        "explicit-fair": "dpveil.mechanisms.scalar.explicit_fair:ExplicitFair",
        "uniform": "dpveil.mechanisms.scalar.explicit_fair:Uniform",
        "linear-program-1": "dpveil.mechanisms.scalar.linear_program:LinearProgram1",
        "linear-program-2": "dpveil.mechanisms.scalar.linear_program:LinearProgram2",
    },
)
CODECS: Final = Table(
    "codec",
    {
        "pca": "dpveil.codecs.pca:PCA",
        "dictionary": "dpveil.codecs.pca:Dictionary",
        "aam": "dpveil.codecs.aam:AAM",
        "mixture": "dpveil.codecs.pca:Mixture",
        "gan": "dpveil.codecs.network_codecs:GAN",
        "stylegan": "dpveil.codecs.network_codecs:StyleGAN",
        "upconv": "dpveil.codecs.upconv:UpConv",
    },
    group="dpveil.codecs",
    base="dpveil.codecs.base:StoredCodec",
)
DETECTORS: Final = Table(
    "detector",
    {"centerface": "dpveil.regions.detectors.centerface:CenterFace"},
    group="dpveil.detectors",
    base="dpveil.regions.detectors:Detector",
)
"""Detectors; the first is the default."""

ATTACKS: Final = Table(
    "attack",
    {
        "pixels": "dpveil.attacks.vectors:PixelDiscriminant",
        "eigenfaces": "dpveil.attacks.vectors:Eigenfaces",
        "embedding": "dpveil.attacks.faces:Embedding",
        "embedding-parrot": "dpveil.attacks.faces:EmbeddingParrot",
        "network": "dpveil.attacks.networks:NetworkParrot",
        "residual": "dpveil.attacks.networks:ResidualParrot",
        "shown": "dpveil.attacks.method_specific:ShownPixels",
        "subspaces": "dpveil.attacks.method_specific:Subspaces",
        "attributes": "dpveil.attacks.faces:AttributeProfile",
        "placement": "dpveil.attacks.surroundings:Placement",
        "context": "dpveil.attacks.surroundings:Context",
        "joint": "dpveil.attacks.combined:Joint",
        "restored": "dpveil.attacks.restoration:Restored",
        "denoised": "dpveil.attacks.restoration:Denoised",
        "outside": "dpveil.attacks.surroundings:GreyedRegions",
        "averaged": "dpveil.attacks.preprocessing:Averaged",
    },
    group="dpveil.attacks",
    base="dpveil.attacks.base:Attack",
)
