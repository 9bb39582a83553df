"""The audit as a whole: what is right passes, what is wrong on purpose is seen, nothing is left out."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpveil_audit as audit
from dpveil import faces
from dpveil.errors import InvalidParameter, UnknownName
from dpveil.mechanisms import latent, scalar
from dpveil.mechanisms.latent.base import STEPS
from dpveil.mechanisms.pixel import TABLE as METHODS
from dpveil.mechanisms.pixel import BitPlanes, DPPix, DPPixGaussian, MSEExponential, Snow, SSIMExponential
from dpveil.mechanisms.pixel.base import cell_areas
from dpveil.noise import SeededBits, laplace
from dpveil_audit.faces import gallery_table
from dpveil_audit.latent import case as latent_case
from dpveil_audit.latent import table as latent_table
from dpveil_audit.numbers import queries_table
from dpveil_audit.pixel import gates as pixel_gates
from dpveil_audit.pixel.case import Case, Drawn
from dpveil_audit.pixel.gates import bound_gate
from dpveil_audit.pixel.table import TABLE
from dpveil_audit.runner import entries, learners
from dpveil_audit.scalar.table import NOISY, OWN

SEED = 20261121
RHO = DPPix(rho=2, block=2, neighbourhood=2)
SNOW = Snow(delta="0.4")
WINDOWS = SSIMExponential(epsilon=3, window=2, levels=3)
LEVELS = MSEExponential(rho="0.5", block=2, levels=16)
PLANES = BitPlanes(epsilon=5, neighbourhood=1)
PURE = DPPix(epsilon=1, block=2, neighbourhood=2)
ZCDP = DPPixGaussian(rho=Fraction(1, 2), block=2, neighbourhood=2)
BUDGET = DPPixGaussian(epsilon=1, delta="1e-4", block=2, neighbourhood=2)


def broken_gates(report: audit.Report) -> set[str]:
    return {f.gate for one in report.audited for f in one.findings if not f.passed}


def documented_killers(name: str) -> dict[str, str]:
    """Return what the page says about the mutants of a method: mutant to the gates that reject it."""
    page = (Path(__file__).parents[3] / "docs" / "audit.md").read_text(encoding="utf-8")
    head = f"`{name}`: rejected by"
    [table] = [lines for lines in page.split("\n\n") if head in lines]
    heads, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    column = heads.index(head)
    return {row[0]: row[column] for row in rows if row[column]}


def test_every_method_and_mechanism_has_its_audit():
    kinds = {**METHODS, **scalar.TABLE, **latent.TABLE, **faces.TABLE}
    assert {name: entry.method for name, entry in entries().items() if name in kinds} == kinds
    assert latent_case.SIDE == STEPS


@pytest.mark.parametrize("name", audit.names())
def test_mutants_have_names_and_the_deep_level_has_more_settings(name):
    entry = entries()[name]
    names = {mutant.name for mutant in entry.mutants}
    assert len(names) == len(entry.mutants)
    assert len(names) >= 5 or entry.note
    quick, deep = entry.levels["quick"], entry.levels["deep"]
    assert quick < deep if isinstance(quick, int) else entry.note or set(quick.exact) < set(deep.exact)


@pytest.mark.parametrize("name", audit.names())
def test_the_quick_audit_passes_and_every_mutant_dies(name: str):
    """Seeded; a right method is rejected with probability below 1e-7 over all seeds (`false_alarm`)."""
    report = audit.run(name, seed=SEED)
    assert report.passed, [f for one in report.audited for f in one.findings if not f.passed]
    [audited] = report.audited
    assert not [mutant.name for mutant in audited.mutants if mutant.survived]
    assert len(audited.mutants) >= 5 or audited.note
    others = {"growth", "recombination", *queries_table.AUDITS, *learners()}
    if (
        name in {*METHODS, *NOISY, *OWN, *latent_table.AUDITS, *gallery_table.AUDITS, *others}
        and audited.mutants
    ):
        assert {m.name: ", ".join(m.killed_by) for m in audited.mutants} == documented_killers(name)
    assert report.false_alarm < 1e-7
    assert json.loads(json.dumps(report.to_json(), allow_nan=False))["survived"] == 0


@pytest.mark.parametrize(
    "method",
    [RHO, ZCDP, BUDGET, SNOW, WINDOWS, LEVELS, PLANES],
    ids=["laplace ρ", "zcdp", "(ε, δ)", "snow", "windows", "levels", "planes"],
)
def test_a_method_of_the_users_own_is_audited_as_it_is(method):
    """The page `docs/audit.md` runs one under pure ε, and its output is compared."""
    report = audit.run(method, seed=SEED)
    assert report.passed
    assert {"exact", "fit", "bound"} <= set(report.audited[0].gates)
    assert report.audited[0].mutants == ()


def test_deep_looks_harder_at_what_is_intact_and_no_harder_at_mutants(monkeypatch: pytest.MonkeyPatch):
    """Mutants meet the quick settings at both levels."""
    met: dict[str, list[int]] = {"intact": [], "mutants": []}
    entry = TABLE["snow"]

    def bound(version, setting, *rest, **options):
        met["intact" if version is entry.intact else "mutants"].append(setting.draws)
        return iter(())

    monkeypatch.setattr(pixel_gates, "bound_gate", bound)
    report = audit.run("snow", "deep", seed=SEED)
    quick, deep = ([drawn.draws for drawn in entry.levels[name].bound] for name in ("quick", "deep"))
    assert met["intact"] == deep == [5 * draws for draws in quick]
    assert met["mutants"] == quick * len(entry.mutants)
    assert not any(mutant.survived for mutant in report.audited[0].mutants)


def test_mutants_are_not_tried_where_they_are_not_wrong():
    entry, case = TABLE["dp-pix"], Case(3, 4, 1, DPPix(epsilon=1, block=2))
    assert not entry.mutant("channels not counted").unlike(entry.intact, case.method, case.size)
    assert entry.mutant("channels not counted").unlike(entry.intact, case.method, (3, 4, 3))
    assert entry.mutant("noise ×0.8").unlike(entry.intact, case.method, case.size)
    assert entry.mutant("one-sided noise").unlike(entry.intact, case.method, case.size)


def test_too_small_a_laplace_scale_breaks_the_promise(monkeypatch: pytest.MonkeyPatch):
    right = DPPix.sum_scale
    monkeypatch.setattr(DPPix, "sum_scale", lambda self, **size: right(self, **size) * 4 / 5)
    assert {"exact", "fit"} <= broken_gates(audit.run(PURE, seed=SEED))


@pytest.mark.parametrize("method", [ZCDP, BUDGET], ids=["zcdp", "(ε, δ)"])
def test_too_small_a_gaussian_variance_breaks_the_promise(method, monkeypatch: pytest.MonkeyPatch):
    right = DPPixGaussian.sum_variance
    monkeypatch.setattr(DPPixGaussian, "sum_variance", lambda self, **size: right(self, **size) * 16 / 25)
    assert {"exact", "fit"} <= broken_gates(audit.run(method, seed=SEED))


def test_a_sampler_that_loses_its_ties_and_signs_is_seen(monkeypatch: pytest.MonkeyPatch):
    right = laplace.draw

    def positive(tables, size, bits):
        return np.abs(right(tables, size, bits))

    monkeypatch.setattr(laplace, "draw", positive)
    assert "fit" in broken_gates(audit.run("discrete-laplace", seed=SEED))


def test_a_seed_repeats_an_audit():
    first, second = (audit.run("integer-matrix", seed=3).to_json() for _ in range(2))
    assert first == second
    assert audit.run("integer-matrix", seed=4).to_json() != first


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'dp-pix'"):
        audit.run("dp-pixx")
    with pytest.raises(InvalidParameter, match="level"):
        audit.run("integer-matrix", "thorough")
    with pytest.raises(InvalidParameter, match="too large"):
        audit.run(DPPix(epsilon=10**6))
    with pytest.raises(InvalidParameter, match="too many to audit"):
        audit.run(SSIMExponential(epsilon=1))
    with pytest.raises(InvalidParameter, match="wavelet"):
        audit.run(BitPlanes(epsilon=1, wavelet=2))
    with pytest.raises(InvalidParameter, match="too many bits"):
        audit.run(BitPlanes(epsilon=150, neighbourhood=1))


def test_errata_e12_published_scale_overspends_256_fold():
    """17×17 at b = 16 has a corner cell of one pixel: b² noise on its mean costs 256ε, also in samples."""
    method = DPPix(epsilon="0.01", block=16, neighbourhood=1)
    areas = cell_areas(17, 17, 16).ravel()
    published = 255 / (256 * method.epsilon)  # the scale on every mean
    assert max(Fraction(255, int(area)) / published for area in areas) == 256 * method.epsilon
    assert Fraction(255) / method.sum_scale(height=17, width=17, channels=1) == method.epsilon

    case = Case(17, 17, 1, method)
    entry = TABLE["dp-pix"]
    for version, broken in ((entry.intact, False), (entry.mutant("b² noise on ragged means"), True)):
        found = list(bound_gate(version, Drawn(case, 10_000), entry, bits=SeededBits(SEED, "e12")))
        assert any(not finding.passed for finding in found) == broken
    assert max(finding.value for finding in found) > 1  # where 0.01 is promised
