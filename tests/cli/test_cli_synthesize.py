"""`dpveil synthesize`: whole sets or nothing, counted people, and what `verify` says of sets."""

import hashlib
import json
import shutil
import signal

import pytest
from made_faces import faces, source_of, train

import dpveil
from dpveil.assets.trained_files import save
from dpveil.bench.items import PhotoFile
from dpveil.cli import synthesize
from dpveil.cli.synthesize import Album
from dpveil.codecs import PCA
from dpveil.io import writing
from dpveil.io.folders import DATA_SET
from dpveil.ledger import Reservation
from dpveil.synthesis import Simulator
from dpveil.synthesis import plan as of_set
from people_made import folder

FEW = ("--epsilon", "100", "--delta", "1e-6", "--crop", "middle", "--pictures", "5")


@pytest.fixture(scope="module")
def codec(tmp_path_factory):
    path = tmp_path_factory.mktemp("codec") / "small.safetensors"
    save(train(PCA, source_of(faces(90, seed=1, canvas=(20, 20, 3)))), path)
    return path


@pytest.fixture
def made(shell, tmp_path, codec):
    """Runs the command on 8 people; returns what `shell` does."""
    folder(tmp_path / "photos", people=8, photos=3)

    def call(*more):
        return shell("synthesize", "photos", "--out", "made", *FEW, "--codec", codec, *more)

    return call


def text_of(tmp_path):
    return (tmp_path / "made" / DATA_SET).read_text(encoding="utf-8")


def test_a_set_is_made_and_verified(made, shell, tmp_path):
    code, answer, err = made("--json")
    document = json.loads(answer)
    (one,) = document["synthesized"]
    assert (code, document["photos"], document["failed"]) == (0, 24, [])
    assert one["guarantee"]["relation"] == {"name": "person"}
    assert (one["guarantee"]["epsilon"], one["guarantee"]["delta"]) == (100, 1e-6)
    assert "8 people vote for" in err
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == [*(f"00000{n}.png" for n in range(1, 6)), DATA_SET, of_set.SHEET]
    code, answer, err = shell("verify", "made", "--json")
    (checked,) = json.loads(answer)["verified"]
    assert (code, checked["guarantee"], checked["publishable"]) == (0, "(100, 1e-06)-DP, person", False)


def test_a_seed_makes_the_set_again_and_is_said(made, tmp_path):
    assert made("--seed", "7")[0] == 0
    first = text_of(tmp_path)
    shutil.rmtree(tmp_path / "made")
    err = made("--seed", "7")[2]
    assert text_of(tmp_path) == first
    assert "NOT FOR PUBLICATION" in err
    assert not dpveil.verify(tmp_path / "made").publishable


def test_nothing_of_names_or_photos_is_in_the_set(made, tmp_path):
    made()
    written = b"".join(path.read_bytes() for path in (tmp_path / "made").iterdir())
    assert b"person 0" not in written
    assert b"photos/" not in written
    photo = (tmp_path / "photos" / "person 0" / "0.png").read_bytes()
    assert hashlib.sha256(photo).hexdigest().encode() not in written


def test_an_output_that_holds_something_is_left_alone(made, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine.txt").write_text("mine", encoding="utf-8")
    code, _, err = made()
    assert code == 4
    assert err.startswith("dpveil: made is not empty, and a data set is written to a folder of its own: ")
    assert err.endswith("choose another --out\n")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("synthesize nowhere --out made --epsilon 1 --delta 1e-6", 2, "is not a folder"),
        ("synthesize . --out ../made --epsilon 1 --delta 1e-6", 4, "there are no photos"),
        ("synthesize . --out made --epsilon 1 --delta 1e-6", 2, "--out made lies in ., where its pictures"),
        ("synthesize photos --out photos/a/made --epsilon 9 --delta 1e-6", 2, "lies in photos, where"),
        ("synthesize photos --out made --epsilon 9 --delta 1e-6 --pictures 0", 2, "choose from 1 to 10000"),
        ("synthesize photos --out made --epsilon 9 --delta 1e-6 --candidates 0", 2, "choose 1 or more"),
        ("synthesize photos --out made --delta 1e-6", 2, "epsilon is missing"),
        ("synthesize photos --out made --epsilon 1", 2, "delta is missing"),
        (
            "synthesize photos --out made --epsilon 9 --delta 1e-6 --ledger sqlite:///a.db",
            2,
            "needs --subject",
        ),
    ],
)
def test_wrong_calls_say_what_to_do(shell, tmp_path, line, code, told):
    if "photos" in line:
        folder(tmp_path / "photos", people=40, photos=2)
    found = shell(*line.split())
    assert found[0] == code
    assert told in found[2]
    assert not (tmp_path / "made").exists()


def test_photos_that_cannot_be_read_are_left_out_and_their_people_stay(made, tmp_path):
    whole = json.loads(made("--json")[1])["synthesized"][0]["parameters"]["people"]
    shutil.rmtree(tmp_path / "made")
    for path in (tmp_path / "photos" / "person 3").iterdir():
        path.write_bytes(b"no photo")
    code, answer, err = made("--json")
    document = json.loads(answer)
    assert (code, len(document["failed"])) == (1, 3)
    assert document["synthesized"][0]["parameters"]["people"] == whole == 8
    assert "left out:" in err


@pytest.mark.parametrize(
    ("layout", "owned"),
    [
        ("CelebA", {"a": ("img_celeba/1.png", "img_celeba/2.png"), "b": ("img_celeba/3.png",)}),
        ("RaFD", {"a": ("Rafd090_01_x.png", "Rafd045_01_y.png"), "b": ("Rafd090_02_x.png",)}),
        ("KDEF", {"a": ("AF01/1.png", "BF01/1.png"), "b": ("AM01/1.png",)}),
        ("CASIA-Iris", {"a": ("anna/L/1.png", "anna/R/1.png"), "b": ("ben/L/1.png", "ben/x/2.png")}),
        ("UTKFace", {"a": ("anna/1.png", "anna/2.png"), "b": ("1_0_0_20170109.jpg",)}),
        ("FFHQ", {"a": ("anna/1.png", "anna/2.png"), "b": ("00000/00001.png",), "c": ("00002.png",)}),
        ("folders", {"a": ("anna/1.png", "anna/2020/2.png"), "b": ("ben/1.png",), "c": ("1.png",)}),
    ],
)
def test_all_photos_of_a_person_have_one_number_in_every_layout(tmp_path, layout, owned):
    """A number for each eye, or each photo beside one of UTKFace's, gave people several votes."""
    people = {name: who for who, names in owned.items() for name in names}
    for name in people:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if layout == "CelebA":
        (tmp_path / "identity_CelebA.txt").write_text("1.png 7\n2.png 07\n3.png 8\n", encoding="utf-8")
    album = Album.of(tmp_path)
    numbers = {item.name: number for item, number in zip(album.items, album.numbers, strict=True)}
    pairs = {(people[name], number) for name, number in numbers.items()}
    assert numbers.keys() == people.keys()
    assert album.people == len(pairs) == len(owned)


def test_photos_beside_people_refuse_a_set_whose_folders_are_people(made, tmp_path):
    shutil.copy(tmp_path / "photos" / "person 0" / "0.png", tmp_path / "photos" / "Rafd090_01_x.png")
    assert made("--people", "who.csv")[0] == 2
    assert made("--people", "folders")[0] == 4
    assert not (tmp_path / "made").exists()
    (tmp_path / "photos" / "Rafd090_01_x.png").rename(tmp_path / "photos" / "person 1" / "Rafd090_01_x.png")
    assert json.loads(made("--people", "folders", "--json")[1])["synthesized"][0]["parameters"]["people"] == 8


def test_a_ledger_pays_before_anything_is_drawn(made, shell, tmp_path):
    url = "sqlite:///budget.db"
    limit = ("ledger", "limit", "album", "--delta", "1e-5", "--ledger", url, "--epsilon")
    assert shell(*limit, "50")[0] == 0
    code, _, err = made("--ledger", url, "--subject", "album")
    assert code == 3
    assert "album has" in err
    assert not (tmp_path / "made").exists()
    assert shell(*limit, "150")[0] == 0
    assert made("--ledger", url, "--subject", "album")[0] == 0
    shown = json.loads(shell("ledger", "show", "album", "--ledger", url, "--json")[1])
    assert shown["spent"]["epsilon"] == 100
    assert shown["spent"]["relation"] == "person"


URL = "sqlite:///budget.db"
PAID = ("--ledger", URL, "--subject", "album")


@pytest.fixture
def budget(shell):
    """A ledger with room for two sets."""
    limit = ("ledger", "limit", "album", "--epsilon", "200", "--delta", "1e-5", "--ledger", URL)
    assert shell(*limit)[0] == 0


def counted(shell):
    """Return how many debits there are, stored files, and debits without one."""
    told = json.loads(shell("ledger", "check", "--ledger", URL, "--json")[1])
    return told["debits"], told["files"], told["unstored"]


def test_the_ledger_knows_the_set_that_it_paid_for(made, shell, tmp_path, budget):
    """`ledger check` computes the hash of its certificate, and verifies all of it."""
    assert made(*PAID)[0] == 0
    assert counted(shell) == (1, 1, 0)
    digest = hashlib.sha256((tmp_path / "made" / DATA_SET).read_bytes()).hexdigest()
    check = ("ledger", "check", "--ledger", URL)
    for place in ("made", f"made/{DATA_SET}", "."):
        code, answer, _ = shell(*check, place, "--json")
        (paid,) = json.loads(answer)["paid"]
        assert (code, paid["sha256"], paid["paid_by"]) == (0, digest, ["album"])
    code, answer, _ = shell("ledger", "history", "--ledger", URL, "--json")
    assert [entry["kind"] for entry in json.loads(answer)["entries"]][-2:] == ["debit", "stored"]
    assert f"; sha256 {digest[:12]}\n" in shell("verify", "made", "-v")[1]
    code, answer, _ = shell(*check, "made/000001.png", "--json")
    (failed,) = json.loads(answer)["failed"]
    assert (code, failed["error"].startswith("the file has no certificate")) == (1, True)
    (tmp_path / "made" / "000001.png").unlink()
    code, answer, _ = shell(*check, "made", "--json")
    (failed,) = json.loads(answer)["failed"]
    assert (code, failed["error"]) == (1, "000001.png is missing")


@pytest.mark.parametrize("moment", ["drawing", "writing", "noting", "naming"])
def test_whatever_fails_costs_one_debit_at_most_and_shows_nothing_unpaid(
    made, shell, tmp_path, monkeypatch, budget, moment
):
    def fails(*_, **__):
        raise OSError(28, "no space")

    places = {
        "drawing": (synthesize, "evolve"),
        "writing": (writing, "_write_beside"),
        "noting": (Reservation, "stored"),
        "naming": (writing, "_place"),
    }
    with monkeypatch.context() as broken:
        broken.setattr(*places[moment], fails)
        assert made(*PAID)[0] != 0
    seen = moment == "naming"
    assert counted(shell) == (1, int(seen), int(not seen))
    assert not any((tmp_path / "made").glob("*"))


def test_a_seeded_set_is_not_paid_for(made, tmp_path, budget):
    assert made(*PAID, "--seed", "1")[0] == 2
    assert not (tmp_path / "made").exists()


def test_an_interrupt_after_the_payment_waits_for_the_set(made, shell, tmp_path, monkeypatch, budget):
    """And the ledger knows whose set it paid for."""
    real = Simulator.draw

    def draw(*given):
        signal.raise_signal(signal.SIGINT)
        return real(*given)

    monkeypatch.setattr(Simulator, "draw", draw)
    code, _, err = made(*PAID)
    assert (code, err.splitlines()[-1]) == (
        130,
        "dpveil: interrupted: the set was paid, and made is complete",
    )
    assert dpveil.verify(tmp_path / "made").status == "consistent"
    code, answer, _ = shell("ledger", "check", "made", "--ledger", URL)
    assert (code, "paid by album" in answer) == (0, True)


PRICE = (
    "price: a set of 5 pictures, epsilon 100 and delta 1e-06 (person); album: limit epsilon {0} and"
    " delta {1}, left epsilon {0} and delta {1}"
)
DRY = (*PAID, "--dry-run")


def lines_of(err, *words):
    """Return the lines that begin with one of these words."""
    return [line for line in err.splitlines() if line.startswith(words)]


@pytest.fixture
def unread(monkeypatch):
    """Fails where a photo is read, and where anything is drawn."""
    monkeypatch.setattr(PhotoFile, "read", lambda *_: pytest.fail("a dry run reads a photo"))
    monkeypatch.setattr(Simulator, "draw", lambda *_: pytest.fail("a dry run draws"))


def test_a_dry_run_says_what_a_set_promises_and_costs(made, shell, tmp_path, budget, unread):
    before = sorted(tmp_path.rglob("*"))
    code, answer, err = made(*DRY)
    assert (code, counted(shell)) == (0, (0, 0, 0))
    assert answer.splitlines()[0] == ("made: would be 5 pictures, (100, 1e-06)-DP, person: practically none")
    assert answer.splitlines()[1].startswith("neighbours    two sets of photos")
    assert [line.startswith("not hidden    ") for line in answer.splitlines()[2:]] == [True] * 2
    assert lines_of(err, "note: 8 people", "price") == [
        "note: 8 people with 24 photos: each folder is a person, with the folders in it",
        "note: 8 people vote for 14 candidates in one round: 0.6 votes each on average, under noise with a"
        " standard deviation of 0.14",
        PRICE.format(200, "1e-05"),
    ]
    assert err.endswith("a dry run reads no photo, draws, pays and writes nothing\n")
    assert sorted(tmp_path.rglob("*")) == before
    code, answer, err = made("--dry-run", "--seed", "1", "--json")
    document = json.loads(answer)
    (one,) = document["priced"]
    assert (code, document["synthesized"], document["photos"], lines_of(err, "price")) == (0, [], 24, [])
    assert (one["guarantee"]["epsilon"], one["parameters"]["people"], one["candidates"]) == (100, 8, 14)
    assert (one["publishable"], any("NOT FOR PUBLICATION" in text for text in one["warnings"])) == (
        False,
        True,
    )


# What verify says of changed sets


def test_a_folder_above_sets_is_verified_with_each_of_them_as_a_whole(made, shell, tmp_path):
    assert made()[0] == 0
    (tmp_path / "all").mkdir()
    shutil.copytree(tmp_path / "made", tmp_path / "all" / "a" / "one")
    shutil.copytree(tmp_path / "made", tmp_path / "all" / ".two")
    code, answer, err = shell("verify", "all")
    assert (code, answer.count("unmodified    all/"), answer.count("\n")) == (0, 2, 2)
    assert "2 unmodified, 2 of them not publishable;" in err
    assert "without a certificate" not in err
    assert shell("verify", "all", "all/a/one", f"all/.two/{DATA_SET}")[1] == answer
    inner = tmp_path / "all" / "a" / "one"
    shutil.copytree(tmp_path / "made", inner / "deeper")
    (tmp_path / "all" / "a" / "loose.png").write_bytes((inner / "000001.png").read_bytes())
    code, answer, err = shell("verify", "all")
    lines = sorted(answer.splitlines())
    assert (code, [line.split()[0] for line in lines]) == (1, ["INCONSISTENT", "UNCERTIFIED", "unmodified"])
    assert lines[0].startswith("INCONSISTENT  all/a/one  deeper is not part of the set")
    assert "without a certificate: all/a/loose.png" in err


def test_changed_missing_and_added_files_are_found(made, shell, tmp_path):
    made()
    place = tmp_path / "made"
    (place / "000001.png").write_bytes((place / "000002.png").read_bytes())
    (place / "000003.png").unlink()
    (place / "000004.png").unlink()
    (place / "000004.png").symlink_to(place / "000005.png")
    (place / "more.png").write_bytes(b"")
    code, answer, _ = shell("verify", "made", "--json")
    (failed,) = json.loads(answer)["failed"]
    assert code == 1
    for told in (
        "000001.png was changed",
        "000003.png is missing",
        "000004.png is a symbolic link",
        "more.png is not part of the set",
    ):
        assert told in failed["error"]
