"""What `obfuscate` says of a price before it is paid, and its dry runs, which pay and write nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dpveil.cli import obfuscate
from dpveil.ledger import Ledger
from dpveil.mechanisms.pixel import DCTGaussian, DPPix, DPPixGaussian
from dpveil.release.plan import plan
from dpveil.release.quote import noisiest, remedy

URL = "sqlite:///budget.db"
PAID = ("--ledger", URL, "--subject", "album")
CLEAR = ("--method", "dp-pix", "--epsilon", "1", "--block", "16", "--neighbourhood", "1")
NOISY = ("--method", "dp-pix", "--epsilon", "1", "--block", "2", "--neighbourhood", "16")
WARNING = (
    "practically pure noise, of scale 3,060 grey levels where 255 is white; a smaller neighbourhood, or a"
    " larger block or epsilon, means less; epsilon 24 would have 128, and the promise be practically none"
    " about any 16 pixels"
)
FEW = (
    "PROMISED ABOUT ANY 16 PIXELS ALONE: about all pixels of a region together the promise is practically"
    " none (see dpveil explain)"
)
CORNER = ("--regions", "0,0,8,8")
Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(shell: Shell) -> Shell:
    """Three photos, and a ledger with a budget of 4."""
    Path("in").mkdir()
    for number, name in enumerate(("anna", "bob", "cleo")):
        Image.fromarray(np.full((16, 16 + number, 3), 100, np.uint8)).save(f"in/{name}.png")
    assert shell("ledger", "limit", "album", "--epsilon", 4, "--ledger", URL)[0] == 0
    return shell


def spent() -> float:
    with Ledger(URL) as ledger:
        found: Any = ledger.show("album").spent.to_json()["epsilon"]
    return float(found)


def told(err: str, word: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith(word)]


def test_the_price_is_said_before_anything_is_paid(cli: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by which budget noise would be none; and a quiet release has no such warning."""
    before: list[float] = []
    real = obfuscate.tell_price
    monkeypatch.setattr(obfuscate, "tell_price", lambda *given: (real(*given), before.append(spent())))
    code, _, err = cli("obfuscate", "in", "--out", "out", *NOISY, *PAID)
    assert (code, before, spent()) == (0, [0], 3)
    assert told(err, "price") == [
        "price: 3 photos, epsilon 3 (m-pixels:16) together; album: limit epsilon 4, left 4"
    ]
    assert told(err, "warning: nothing is paid yet") == [
        f"warning: nothing is paid yet: in/anna.png and 2 more: {text}" for text in (WARNING, FEW)
    ]
    code, _, err = cli("obfuscate", "in/bob.png", "--out", "clear", *CLEAR, *PAID)
    assert (code, spent(), "noise" in err) == (0, 4, False)
    assert told(err, "price") == ["price: one photo, epsilon 1 (m-pixels:1); album: limit epsilon 4, left 1"]


@pytest.mark.parametrize(("jobs", "paid"), [("1", ()), ("1", PAID), ("2", PAID)])
def test_a_dry_run_pays_and_writes_nothing(cli: Shell, jobs: str, paid: tuple[str, ...]) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.suffix == ".png"}
    line = ("obfuscate", "in", "--out", "out", *NOISY, *paid, "--dry-run", "--jobs", jobs)
    code, answer, err = cli(*line)
    assert (code, spent()) == (0, 0)
    assert answer.splitlines() == [
        f"in/{name}.png  1-DP (strong about any 16 pixels), m-pixels (m = 16)"
        for name in ("anna", "bob", "cleo")
    ]
    assert (
        "would release 3, failed 0, skipped 0, no region 0; a dry run draws, pays and writes nothing" in err
    )
    assert "\nwould be promised: in the worst of 3 photos, 1-DP" in err
    done = "paid" if paid else "drawn"
    assert told(err, "warning") == [
        f"warning: nothing is {done} yet: in/anna.png and 2 more: {text}" for text in (WARNING, FEW)
    ]
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.suffix == ".png"} == before
    assert not Path("out").exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_photos_that_a_ledger_will_refuse_are_named_before_any_is_paid(cli: Shell, jobs: str) -> None:
    """They were released with other regions, by whichever subject; who accepts that is told of none."""
    cli("ledger", "limit", "other", "--epsilon", 4, "--ledger", URL)
    cli("obfuscate", "in/bob.png", "--out", "b.png", *CLEAR, *CORNER, *PAID[:3], "other")
    line = ("obfuscate", "in", "--out", "out", *CLEAR, *PAID, "--jobs", jobs)
    beside = "(beside in/bob.png, refused for releases with other regions before)"
    price = f"price: 2 photos {beside}, epsilon 2 (m-pixels:1) together; album: limit epsilon 4, left 4"
    code, answer, err = cli(*line, "--dry-run")
    assert (code, spent(), told(err, "price")) == (3, 0, [price])
    assert [row.split()[0] for row in answer.splitlines()] == ["in/anna.png", "in/cleo.png"]
    assert "in/bob.png: this photo was released with other regions before" in err
    assert "add --other-regions" in err
    assert "would release 2, failed 1" in err
    code, _, err = cli(*line, "--dry-run", "--other-regions")
    assert (code, "would release 3, failed 0" in err, "beside" in err) == (0, True, False)
    code, _, err = cli(*line)
    assert (code, spent(), told(err, "price")) == (3, 2, [price])


def test_a_dry_run_tells_what_the_run_would_fail_of(cli: Shell) -> None:
    Path("in/bob.png").write_bytes(b"no photo")
    code, _, err = cli("obfuscate", "in", "--out", "out", *CLEAR, "--dry-run")
    assert (code, "would release 2, failed 1" in err) == (1, True)
    dear = ("--method", "dp-pix", "--epsilon", "2.5", "--block", "16", "--neighbourhood", "1")
    code, _, err = cli("obfuscate", "in", "--out", "out", *dear, *PAID, "--dry-run")
    assert code == 3
    assert err.startswith(
        "dpveil: nothing would be released: album has epsilon 4 left, and 2 photos cost 5 together: "
    )
    assert "\nwould release none of 2, failed 1, skipped 0" in err
    real, _, _ = cli("obfuscate", "in", "--out", "out", *dear, *PAID)
    assert (real, spent()) == (code, 0)
    code, _, err = cli("obfuscate", "in/anna.png", "--out", "out", *dear, *PAID, "--dry-run")
    assert code == 0
    cli("ledger", "limit", "album", "--epsilon", 2, "--ledger", URL)
    code, _, err = cli("obfuscate", "in/anna.png", "--out", "out", *dear, *PAID, "--dry-run")
    assert (code, "album has epsilon 2 left and this release costs 2.5" in err) == (3, True)
    for option in ("--manifest", "--review"):
        code, _, err = cli("obfuscate", "in", "--out", "out", *CLEAR, "--dry-run", option, "a.csv")
        assert (code, "--dry-run writes nothing" in err) == (2, True)


@pytest.mark.parametrize(
    "method",
    [
        DPPix(epsilon=1),
        DPPix(epsilon="1e-3", block=16, neighbourhood=7),
        DPPixGaussian(rho="0.001", block=4),
        DPPixGaussian(epsilon=1, delta="1e-6", block=4),
        DCTGaussian(rho="0.01"),
    ],
)
def test_the_budget_that_is_named_has_less_noise_and_hardly_a_smaller_one(method: Any) -> None:
    planned = plan(np.full((40, 30, 3), 9, np.uint8), method, regions="whole")
    assert planned.quote is not None
    found = noisiest(planned.quote)
    assert found is not None
    knob, value = remedy(method, found).split()[:2]
    below = method.with_budget(**{knob: float(value) * 0.85})
    assert method.with_budget(**{knob: float(value)}).noise_scale(**found.size) <= 128
    assert below.noise_scale(**found.size) > 128
