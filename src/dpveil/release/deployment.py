"""A certificate as a record of the Differential Privacy Deployments Registry.

The fields are those of the registry's schema, `schemas/deployments-schema.yaml` of the public repository
opendp/deployments-registry-data, as it was in 2026. Source: Nanayakkara, Ghazi & Vadhan 2025 (arXiv
2509.13509).
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Final

from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.numbers import Json, float_above, to_json
from dpveil.errors import CertificateError

VARIANTS: Final = {
    "pure": "Pure DP",
    "approximate": "Approximate DP",
    "zcdp": "Zero-concentrated DP",
    "metric": "Custom",
}
"""The registry's name of each kind of formal guarantee."""
TO_FILL: Final = (
    *("url_slug", "deployment.basic.name", "deployment.basic.data_curators", "deployment.basic.intended_use"),
    *("deployment.basic.data_product_region", "deployment.basic.publication_date"),
    *("deployment.deployment_model.model_name", "deployment.administrative.registry_authors"),
)
"""Fields that no certificate knows, and that the registry asks for."""
TIER: Final = 2
UNFOUNDED: Final = "there is no formal guarantee to register"


def deployment(certificate: Certificate) -> dict[str, Json]:
    """Return the record of a certificate that was verified, with the fields of `TO_FILL` empty.

    Numbers are rounded up, where a JSON number cannot state them exactly. Raises `CertificateError` for
    copies and heuristic methods.
    """
    total, output = certificate.composition, certificate.output
    if total is None or not total.formal or not certificate.guarantees or output is None:
        raise CertificateError(UNFOUNDED, hint="register releases by a method with a guarantee")
    regions = counted(len(certificate.regions), "region")
    basic: dict[str, Json] = {
        "name": "",
        "data_curators": [],
        "description": (
            f"A photo of {output.width} × {output.height} pixels in which {certificate.method} replaced"
            f" {regions}: {total} ({certificate.strength})."
        ),
        "intended_use": "",
        "data_product_type": "Dataset",
        "data_product_region": "",
        "publication_date": "",
    }
    return {
        "url_slug": "",
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(total),
            "privacy_loss": _loss(certificate, total),
            "deployment_model": _model(),
            "implementation": _implementation(certificate),
            "administrative": {"status": "Draft", "registry_authors": [], "tier": TIER},
        },
    }


def _variant(total: Guarantee) -> dict[str, Json]:
    return {
        "variant_name": VARIANTS[total.kind],
        "data_domain": "photos with the same size and the same number of channels",
        "unprotected_quantities": "; ".join(total.scope.in_the_clear) or "none",
    }


def _loss(certificate: Certificate, total: Guarantee) -> dict[str, Json]:
    covers = dict.fromkeys(guarantee.scope.covers for guarantee in certificate.guarantees)
    numbers = {
        name: value for name in ("epsilon", "delta", "rho") if (value := getattr(total, name)) is not None
    }
    rounded = {name: rounded_up(value) for name, value in numbers.items()}
    stated = total.kind != "metric" and all(map(math.isfinite, rounded.values()))
    parameters: dict[str, Json] = {**rounded} if stated else {}
    exactly = ", ".join(f"{name} = {to_json(value)}" for name, value in numbers.items())
    if total.kind == "metric":
        exactly = f"{total}: {exactly} for each unit of the distance"
    return {
        "privacy_unit": str(total.relation),
        "privacy_unit_details": f"Neighbours are {total.relation.in_words()}. Covered: {'; '.join(covers)}.",
        **({"privacy_parameters": parameters} if parameters else {}),
        "privacy_parameters_details": (
            f"{exactly}, for the photo. Each region: {'; '.join(map(str, certificate.guarantees))}."
        ),
    }


def _model() -> dict[str, Json]:
    return {
        "release_type": "One release",
        "release_type_details": "The certificate is about one release. Others of the same photo add to it.",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(certificate: Certificate) -> dict[str, Json]:
    found = any(region.origin.found for region in certificate.regions)
    chosen = (
        "Regions were found in the photo, which is not accounted: what this shows is listed as unprotected."
    )
    given = json.dumps(dict(certificate.parameters), sort_keys=True, ensure_ascii=False)
    missing = "".join(f" {text} was not found and is not protected." for text in certificate.missing)
    return {
        "preprocessing_and_hyperparameter_tuning": (
            (chosen if found else "Regions were chosen by the user.") + missing
        ),
        "mechanisms": (f"{certificate.method} with {given}, by {certificate.tool}; bits: {certificate.bits}"),
        "composition": certificate.accountant,
        "post_processing": "; ".join(certificate.post_processing) or "none",
        "additional_information": " ".join(certificate.warnings),
    }


def rounded_up(value: Fraction) -> int | float:
    """Return a number whose JSON text is the decimal `value`, or the nearest above that a float can have.

    Returns infinity beyond all floats.

    >>> rounded_up(Fraction(1, 10)), rounded_up(Fraction(1, 3))
    (0.1, 0.33333333333333337)
    """
    written = to_json(value)
    if isinstance(written, int | float):
        return written
    rounded = float_above(value)
    while math.isfinite(rounded) and Fraction(repr(rounded)) < value:
        rounded = math.nextafter(rounded, math.inf)
    return rounded
