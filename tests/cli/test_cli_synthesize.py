"""`dpveil synthesize`: whole sets or nothing, counted people, and what `verify` says of sets."""

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
from made_faces import faces, source_of, train
from PIL import Image

from dpveil.assets import save
from dpveil.bench.layouts import LAYOUTS, alone
from dpveil.cli.synthesize_photos import Album
from dpveil.codecs import PCA
from dpveil.core.certificate import canonical, checksum
from dpveil.errors import PhotoError
from dpveil.io import encode
from dpveil.synthesis import names as of_set
from dpveil.synthesis.saving import verify
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
    return (tmp_path / "made" / of_set.NAME).read_text(encoding="utf-8")


def rewritten(tmp_path, change):
    """Change a certificate as somebody does who knows how its checksum is made."""
    data = json.loads(text_of(tmp_path))
    change(data)
    data["checksum"] = checksum(data)
    (tmp_path / "made" / of_set.NAME).write_text(canonical(data), encoding="utf-8")


def test_a_set_is_made_and_verified(made, shell, tmp_path):
    code, answer, err = made("--json")
    document = json.loads(answer)
    (one,) = document["synthesized"]
    assert (code, document["photos"], document["failed"]) == (0, 24, [])
    assert one["guarantee"]["relation"] == {"name": "person"}
    assert (one["guarantee"]["epsilon"], one["guarantee"]["delta"]) == (100, 1e-6)
    assert "8 people vote for" in err
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == [*(f"00000{n}.png" for n in range(1, 6)), of_set.NAME, of_set.SHEET]
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
    assert not verify(tmp_path / "made").certificate.publishable


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


def test_few_people_are_refused_before_photos_are_read(shell, tmp_path, codec):
    folder(tmp_path / "photos", people=3)
    for path in (tmp_path / "photos").rglob("*.png"):
        path.write_bytes(b"no photo")
    line = ("synthesize", "photos", "--out", "made", "--epsilon", "1", "--delta", "1e-6", "--codec", codec)
    code, _, err = shell(*line)
    assert code == 2
    assert "people = 3 are too few" in err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("synthesize nowhere --out made --epsilon 1 --delta 1e-6", 2, "is not a folder"),
        ("synthesize . --out made --epsilon 1 --delta 1e-6", 4, "there are no photos"),
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


def test_photos_of_nobody_count_as_people_and_it_is_said(made, tmp_path):
    shutil.copy(tmp_path / "photos" / "person 0" / "0.png", tmp_path / "photos" / "loose.png")
    code, answer, err = made("--json")
    assert code == 0
    assert json.loads(answer)["synthesized"][0]["parameters"]["people"] == 9
    assert "one photo has no person's name" in err
    assert [item.name for item in alone(tmp_path / "photos")] == ["loose.png"]


def test_people_are_folders(tmp_path):
    folder(tmp_path / "photos", people=4, photos=3)
    album = Album.of(tmp_path / "photos")
    assert (album.people, len(album.items), len(album.notes)) == (4, 12, 1)
    assert album.numbers == tuple(number for number in range(4) for _ in range(3))
    assert album.notes[0].startswith(
        "4 people with 12 photos, in the layout folders; people are told apart by a"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(PhotoError):
        Album.of(empty)


@pytest.mark.parametrize(
    ("layout", "owned"),
    [
        ("CelebA", {"a": ("img_celeba/1.png", "img_celeba/2.png"), "b": ("img_celeba/3.png",)}),
        ("RaFD", {"a": ("Rafd090_01_x.png", "Rafd045_01_y.png"), "b": ("Rafd090_02_x.png",)}),
        ("KDEF", {"a": ("AF01/1.png", "BF01/1.png"), "b": ("AM01/1.png",)}),
        ("CASIA-Iris", {"a": ("anna/L/1.png", "anna/R/1.png"), "b": ("ben/L/1.png", "ben/x/2.png")}),
        ("UTKFace", {"a": ("anna/1.png", "anna/2.png"), "b": ("1_0_0_20170109.jpg",)}),
        ("FFHQ", {"a": ("anna/1.png", "anna/2.png"), "b": ("00000/00001.png",), "c": ("00002.png",)}),
        ("WebDataset shards", {"a": ("1.png", "2.png"), "b": ("3.png",)}),
        ("folders", {"a": ("anna/1.png", "anna/2020/2.png"), "b": ("ben/1.png",), "c": ("1.png",)}),
    ],
)
def test_all_photos_of_a_person_have_one_number_in_every_layout(tmp_path, layout, owned):
    """A number for each eye, or each photo beside one of UTKFace's, gave people several votes."""
    people = {name: who for who, names in owned.items() for name in names}
    if layout == "WebDataset shards":
        members = dict.fromkeys(people, b"")
        members |= {name[0] + ".json": json.dumps({"person": who}).encode() for name, who in people.items()}
        with tarfile.open(tmp_path / "a.tar", "w") as shard:
            for name, data in members.items():
                told = tarfile.TarInfo(name)
                told.size = len(data)
                shard.addfile(told, io.BytesIO(data))
        people = {f"a.tar/{name}": who for name, who in people.items()}
    else:
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


def test_every_layout_is_tried():
    (mark,) = test_all_photos_of_a_person_have_one_number_in_every_layout.pytestmark
    assert [name for name, _ in mark.args[1]] == [layout.name for layout in LAYOUTS]


def test_photos_that_a_layout_leaves_out_are_counted(tmp_path):
    folder(tmp_path, people=2, photos=3)
    (tmp_path / "Rafd090_01_x.png").touch()
    album = Album.of(tmp_path)
    assert (album.people, len(album.items)) == (1, 1)
    assert any("6 photos in the folder left out" in text for text in album.notes)


def test_photos_that_cannot_be_read_refuse_no_set(made, tmp_path):
    """Whether one could be read depends on the photos: only noise may decide what is made."""
    for path in (tmp_path / "photos").rglob("*.png"):
        path.write_bytes(b"no photo")
    code, answer, _ = made("--json")
    assert (code, len(json.loads(answer)["failed"])) == (1, 24)
    assert verify(tmp_path / "made").consistent


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


# What verify says of changed sets


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


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["guarantee"].update(epsilon=1),
        lambda data: data.update(strength="strong"),
        lambda data: data.update(publishable=True),
        lambda data: data["parameters"].update(epsilon=1),
        lambda data: data["parameters"].update(people=7),
        lambda data: data["parameters"].update(codec="/etc/passwd"),
        lambda data: data["parameters"].update(rounds=10**30),
        lambda data: data["parameters"].update(epsilon=[1]),
        lambda data: data.update(parameters=None),
        lambda data: data.update(warnings=[]),
        lambda data: data.update(bits="none"),
        lambda data: data.update(bits=["secure"]),
        lambda data: data.update(tool=7),
        lambda data: data["files"].update({"../x.png": 64 * "0"}),
        lambda data: data["files"].pop("000002.png"),
        lambda data: data["files"].update({"000002.png": "no hash"}),
        lambda data: data.update(files=[]),
        lambda data: data.update(schema="dpveil.certificate/2"),
        lambda data: data.pop("schema"),
    ],
)
def test_an_edited_certificate_is_noticed(made, shell, tmp_path, change):
    made()
    rewritten(tmp_path, change)
    code, answer, _ = shell("verify", "made", "--json")
    (failed,) = json.loads(answer)["failed"]
    assert (code, failed["status"], failed["publishable"]) == (1, "inconsistent", False)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"schema": NaN}', "1" * 10_000, "\ud800"])
def test_what_is_no_certificate_ends_no_run(shell, tmp_path, text):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / of_set.NAME).write_bytes(text.encode("utf-8", "surrogatepass"))
    code, answer, err = shell("verify", "made", "--json")
    assert (code, len(json.loads(answer)["failed"])) == (1, 1)
    assert "Traceback" not in err


def broken(data):
    at = data.index(b"IDAT") + 8
    return data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sheet.png", lambda _: encode(np.zeros((20, 320, 3), np.uint8), "png")),
        ("sheet.png", lambda _: encode(np.zeros((30, 50, 1), np.uint8), "png")),
        ("sheet.png", broken),
        ("000002.png", broken),
        ("000002.png", lambda _: encode(np.zeros((20, 20, 3), np.uint8), "png")),
        ("000002.png", lambda _: encode(np.zeros((20, 20, 1), np.uint8), "png")),
        ("000005.png", lambda _: encode(np.zeros((50, 30, 3), np.uint8), "png")),
        ("000001.png", lambda _: encode(np.zeros((300, 300, 3), np.uint8), "png")),
    ],
)
def test_pictures_of_their_hash_that_no_set_has_are_found(made, shell, tmp_path, name, change):
    made()
    path = tmp_path / "made" / name
    path.write_bytes(change(path.read_bytes()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    rewritten(tmp_path, lambda data: data["files"].update({name: digest}))
    assert shell("verify", "made")[0] == 1


def test_sets_are_held_to_what_is_asked_for(made, shell):
    made()
    assert shell("verify", "made", "--at-least", "weak")[0] == 1
    shell("key", "new", "own.key")
    code, answer, _ = shell("verify", "made", "--trust", "own.key.pub", "--json")
    assert code == 1
    assert "not signed" in json.loads(answer)["failed"][0]["error"]


def test_pictures_are_the_codec_s_and_the_sheet_shows_them(made, tmp_path):
    made()
    shown = np.asarray(Image.open(tmp_path / "made" / of_set.SHEET))
    first = np.asarray(Image.open(Path(tmp_path / "made" / "000001.png")))
    assert first.shape == (20, 20, 3)
    assert np.array_equal(shown[:20, :20], first)
    assert (shown[:20, 100:] == 255).all()
