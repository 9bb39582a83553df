"""A received folder is hostile: certificates open nothing, end in one line each, and cost in proportion."""

from copy import deepcopy

import pytest
from fuzz import fuzz
from hardening_certificates import FILES, WATCH, honest, placed, sealed

import dpveil
from dpveil.io.names import escape_text
from dpveil.release.verification import UNFORESEEN

FORGED = range(2131, 2231)
"""Of all kinds; `make fuzz` goes over 100 000."""

HONEST = honest()


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """First uses import modules, which open files."""
    for data in HONEST.values():
        dpveil.verify(placed(tmp_path_factory.mktemp("warm"), sealed(data)))
    escape_text("\x1b")


def looked_at(image):
    """What `verify` says of a file, having touched nothing but the image and its certificate."""
    with WATCH.watching():
        result = dpveil.verify(image)
    assert WATCH.strange(image) == []
    assert len(result.problems) <= 21
    assert not any(problem.startswith(f"{UNFORESEEN} (") for problem in result.problems)
    assert all(problem.isprintable() and len(problem) <= 500 for problem in result.problems)
    return result


def test_the_watch_notices(tmp_path):
    (tmp_path / "b").write_bytes(b"")
    with WATCH.watching():
        (tmp_path / "b").is_file()
        (tmp_path / "b").read_bytes()
        list(tmp_path.iterdir())
    assert {event for event, _ in WATCH.strange(tmp_path / "a")} == {"os.stat", "open", "os.listdir"}
    assert {event for event, _ in WATCH.strange(tmp_path / "b")} == {"os.listdir"}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_certificate_of_every_method_is_consistent_without_any_model(tmp_path, name):
    result = looked_at(placed(tmp_path, sealed(HONEST[name])))
    assert (result.status, result.problems) == ("unprotected" if name == "copy" else "consistent", ())


COMMON = ("request", "post_processing", "bits", "method", "tool")
"""What all certificates have: looked at in one of a method of pixels, one of faces, and one of a copy."""
PLACES = [
    (name, key)
    for name, data in HONEST.items()
    for key in (*data["parameters"], *(COMMON if name in ("dp-pix 0", "latent 14", "copy") else ()))
]


@pytest.mark.parametrize(("name", "key"), PLACES)
def test_no_place_of_a_certificate_opens_or_asks_about_a_file(tmp_path, name, key):
    trap = tmp_path / "secret"
    trap.write_bytes(b"\x08\x07" * 100)
    values = [str(trap), str(tmp_path), "default", "a\0b", "x" * 300, f"{FILES.get(key, '')}\n", "\ud800"]
    for value in [
        *values,
        f"file://{trap}",
        "../secret",
        "~/secret",
        "heads sha256:" + 64 * "g",
        [str(trap)],
    ]:
        data = deepcopy(HONEST[name])
        data["tool"] = "dpveil 9.9" if key in data["parameters"] else data["tool"]
        if key in data["parameters"]:
            data["parameters"][key] = value
        else:
            data[key] = [value] if isinstance(data[key], list) else value
        result = looked_at(placed(tmp_path, sealed(data)))
        if key in data["parameters"]:
            assert result.status == "inconsistent", value


@pytest.mark.parametrize("name", HONEST)
def test_a_parameter_that_is_left_out_is_not_taken_from_the_defaults(tmp_path, name):
    for key in HONEST[name]["parameters"]:
        data = deepcopy(HONEST[name])
        del data["parameters"][key]
        assert looked_at(placed(tmp_path, sealed(data))).status == "inconsistent"


def test_forged_certificates_end_in_one_line_each_and_open_nothing():
    """A short run of the fuzzer: `make fuzz` feeds it 100 000."""
    tally = fuzz("certificates", len(FORGED), first=FORGED.start, workers=1)
    assert [(entry["index"], entry["finding"]) for entry in tally.findings] == []
    assert tally.counts.total() == len(FORGED)
    assert {kind for kind, _ in tally.counts} == {"mutant", "bytes", "legal"}
    assert {status for _, status in tally.counts} >= {"consistent", "inconsistent"}
