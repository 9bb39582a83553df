"""Certificates as records of the DP Deployments Registry: its fields, and numbers never rounded down."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpveil
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.origin import Origin
from dpveil.errors import CertificateError
from dpveil.release.deployment import TO_FILL, VARIANTS, deployment, rounded_up

PHOTO = (np.arange(40 * 30 * 3) % 251).astype(np.uint8).reshape(30, 40, 3)
FIELDS = {  # as the registry's schema has them; those of evidence, and some free texts, are left to the user
    "basic": {
        "name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
        "data_product_sector", "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
        "privacy_parameters_details",
    },
    "deployment_model": {
        "model_name", "model_name_details", "trust_assumptions", "actors", "release_type",
        "release_type_details", "data_source_type", "data_source_type_details", "access_type",
        "access_type_details",
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing",
        "justification", "utility", "additional_information",
    },
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}  # fmt: skip
WORDS = {
    "data_product_type": {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data"},
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Interactive", "Non-interactive"},
    "status": {"Draft"},
}


def stated(folder: Path, **changes):
    call = {"regions": "2,3,20,10", "epsilon": "1/3", "block": 8, "neighbourhood": 16} | changes
    image = dpveil.obfuscate(PHOTO, "dp-pix", **call).save(folder / "a.png")[0]
    return dpveil.verify(image).certificate


def with_total(certificate, **numbers):
    total = Guarantee(relation=Relation("any-image"), scope=Scope("all", ("the size",)), **numbers)
    return replace(certificate, composition=total)


def parameters(record):
    return record["deployment"]["privacy_loss"].get("privacy_parameters")


def test_a_record_has_the_fields_of_the_registry_and_its_words(tmp_path):
    record = deployment(stated(tmp_path))
    assert set(record) == {"url_slug", "deployment"}
    assert set(record["deployment"]) == set(FIELDS)
    for part, fields in record["deployment"].items():
        assert set(fields) <= FIELDS[part]
        for name, words in WORDS.items():
            assert fields.get(name) in {None, *words}
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    for path in TO_FILL:
        at = record
        for name in path.split("."):
            at = at.get(name, "")
        assert at in ("", []), path


def test_a_record_says_what_the_certificate_says(tmp_path):
    certificate = stated(tmp_path, post_processing="median:3")
    parts = deployment(certificate)["deployment"]
    assert parts["dp_variant"]["variant_name"] == "Pure DP"
    assert parts["privacy_loss"]["privacy_unit"] == "m-pixels (m = 16)"
    assert "differ in at most 16 pixels" in parts["privacy_loss"]["privacy_unit_details"]
    assert parts["privacy_loss"]["privacy_parameters_details"].startswith("epsilon = 1/3, for the photo.")
    assert parts["implementation"]["post_processing"] == "median:3"
    assert '"block": 8' in parts["implementation"]["mechanisms"]
    assert parts["implementation"]["composition"] == certificate.accountant
    for text in certificate.composition.scope.in_the_clear:
        assert text in parts["dp_variant"]["unprotected_quantities"]
    for text in certificate.warnings:
        assert text in parts["implementation"]["additional_information"]
    assert (
        parts["implementation"]["preprocessing_and_hyperparameter_tuning"]
        == "Regions were chosen by the user."
    )
    face = replace(certificate.regions[0], origin=Origin("face", "faces", found=True))
    found = deployment(replace(certificate, regions=(face,), missing=("text",)))["deployment"]
    said = found["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert "not accounted" in said
    assert "text was not found and is not protected" in said


def test_each_kind_has_its_variant_and_its_numbers(tmp_path):
    certificate = stated(tmp_path)
    assert parameters(deployment(with_total(certificate, kind="zcdp", rho="1/3"))) == {
        "rho": 0.33333333333333337
    }
    both = parameters(deployment(with_total(certificate, kind="approximate", epsilon=2, delta=1e-6)))
    assert both == {"epsilon": 2, "delta": 1e-6}
    assert {*VARIANTS.values()} <= WORDS["variant_name"]
    free = deployment(with_total(certificate, kind="pure", epsilon=0))
    assert parameters(free) == {"epsilon": 0}


def test_a_metric_guarantee_has_no_epsilon_that_could_be_taken_for_one(tmp_path):
    record = deployment(with_total(stated(tmp_path), kind="metric", epsilon=1, metric="d", diameter=9))
    assert record["deployment"]["dp_variant"]["variant_name"] == "Custom"
    assert parameters(record) is None
    assert "diameter 9" in record["deployment"]["privacy_loss"]["privacy_parameters_details"]


def test_a_number_beyond_all_floats_is_left_out_and_said_in_words(tmp_path):
    record = deployment(with_total(stated(tmp_path), kind="pure", epsilon=Fraction(10) ** 400))
    assert parameters(record) is None
    assert "0" * 400 in record["deployment"]["privacy_loss"]["privacy_parameters_details"]


@given(st.fractions(0, 10**6, max_denominator=10**12))
def test_numbers_are_rounded_up_as_a_reader_of_decimals_has_them(value):
    rounded = rounded_up(value)
    assert Fraction(repr(rounded)) >= value
    assert Fraction(repr(math.nextafter(math.nextafter(rounded, 0), 0))) < value or value == 0


def test_what_has_no_guarantee_is_no_deployment(tmp_path):
    certificate = stated(tmp_path)
    for changes in (
        {"composition": None, "guarantees": (), "regions": ()},
        {"composition": replace(certificate.composition, kind="heuristic", epsilon=None, broken_by=("a",))},
        {"output": None},
    ):
        with pytest.raises(CertificateError, match="no formal guarantee"):
            deployment(replace(certificate, **changes))
