"""Cards of strangers' releases: certificates lead nowhere, open nothing, and are told as they are."""

import json
import random
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hardening_certificates import WATCH, honest, placed, sealed
from hardening_forgeries import legal

import dpveil
from dpveil.cards.croissant import About, by_folder, card, releases, totals
from dpveil.core.numbers import exact
from dpveil.errors import BudgetRefused, CertificateError

HONEST = {name: data for name, data in honest().items() if name != "copy"}
NUMBERS = ("epsilon", "delta", "rho", "diameter")
HOSTILE = "../../etc/passwd\x1b[2J\n<script>&?#%2e%2e/\u202e"


def told(folder: Path, *images: Path) -> dict:
    """Return the card of verified images; nothing is touched while it is made."""
    found = [dpveil.verify(image) for image in images]
    with WATCH.watching():
        files = releases(folder, found)
        document = card(About("set"), files, totals(files, by_folder(one.name for one in files)), "out/")
    assert WATCH.seen == []
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize("name", HONEST)
def test_every_promise_is_told_in_whole_and_no_better(tmp_path, name):
    data = HONEST[name]
    stated = data["composition"]
    image = placed(tmp_path, sealed(data))
    if stated["kind"] == "heuristic" or (stated["kind"] == "metric" and stated["diameter"] is None):
        with pytest.raises((BudgetRefused, CertificateError), match=r"formal guarantee|diameter"):
            told(tmp_path, image)
        return
    document = told(tmp_path, image)
    own = document["distribution"][0]["dpveil:guarantee"]
    for number in NUMBERS:
        given = stated.get(number)
        assert (f"dpveil:{number}" in own) == (given is not None)
        assert given is None or Fraction(repr(own[f"dpveil:{number}"])) >= exact(given)
    assert (own["dpveil:kind"], own["dpveil:relation"]) == (stated["kind"], stated["relation"]["name"])
    assert own.get("dpveil:pixels") == stated["relation"].get("m")
    assert own.get("dpveil:metric") == stated.get("metric")
    assert own["dpveil:covers"]
    assert own["dpveil:inTheClear"]
    assert own["dpveil:strength"] == data["strength"]
    assert document["distribution"][0]["dpveil:postProcessing"] == data["post_processing"]
    (most,) = document["dpveil:perPerson"]
    assert "dpveil:people" not in most  # nobody is named
    if stated["kind"] == "metric":
        assert (most["dpveil:kind"], most.get("dpveil:metric")) == ("pure", None)
        total = exact(stated["epsilon"]) * exact(stated["diameter"])
        assert Fraction(repr(most["dpveil:epsilon"])) >= total
        assert most["dpveil:relation"] == stated["relation"]["name"]
    else:
        assert {key: most.get(key) for key in own if key != "dpveil:covers"} == {
            key: value for key, value in own.items() if key not in ("dpveil:covers",)
        } | dict.fromkeys(["dpveil:inTheClear"])


def made(folder: Path, data: dict) -> bool:
    """Whether a forged certificate gets a card, which then holds addresses of its own files only."""
    image = placed(folder, sealed(data))
    try:
        document = told(folder, image)
    except (BudgetRefused, CertificateError):
        return False
    assert HOSTILE not in json.dumps(document, ensure_ascii=False)
    one = document["distribution"][0]
    addresses = {one["contentUrl"]: "out/a.png", one["dpveil:certificate"]: "out/a.png.certificate.json"}
    for address, expected in addresses.items():
        parts = urlsplit(address)
        assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
        assert (unquote(parts.path), address.isascii()) == (expected, True)
    return True


def test_extreme_settings_end_in_a_card_or_in_a_refusal(tmp_path):
    draws = (legal(random.Random(index)) for index in range(60))  # noqa: S311
    assert sum(made(tmp_path, data) for data in draws if data is not None) > 10
