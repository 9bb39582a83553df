"""The words of every command: usage lines, and options that were given twice."""

import pytest

TWICE = {
    "obfuscate a.png --out b --method dp-pix --block 8 --epsilon 1 --epsilon=2": "--epsilon",
    "obfuscate a.png --out b --method blur --method dp-pix": "--method",
    "explain --method dp-pix --epsilon 1 --block 8 --size 8x8 --size 9x9": "--size",
    "compare a.png --block 8 --block 16": "--block",
    "verify a.png --at-least weak --at-least strong": "--at-least",
    "mechanism query a.csv --epsilon 1 --epsilon 2": "--epsilon",
}
LOCAL = {
    "verify {}": "OUTPUT",
    "ledger check {} --ledger sqlite:///a.db": "RELEASE",
    "card {} --out made.json": "FOLDER",
    "card made --out made.json --people {}": "--people",
    "synthesize {} --out made --epsilon 1 --delta 1e-6": "FOLDER",
    "synthesize faces --out {} --epsilon 1 --delta 1e-6": "--out",
    "synthesize faces --out made --epsilon 1 --delta 1e-6 --people {}": "--people",
    "obfuscate a.png --out made --manifest {}": "--manifest",
    "obfuscate a.png --out made --review {}": "--review",
    "obfuscate a.png --out made --review={}": "--review",
}
SECRETS = (
    "s3://key:marker@bucket/x",
    " s3://bucket/x?marker",
    "s3:/key:marker@bucket/x",
    "S3://key:a/marker@b",
)


@pytest.mark.parametrize("line", TWICE)
def test_an_option_with_one_value_is_refused_when_given_twice(shell, line):
    code, answer, err = shell(*line.split())
    assert (code, answer, err) == (2, "", f"dpveil: {TWICE[line]} is given twice: give it once\n")


@pytest.mark.parametrize("line", LOCAL)
def test_a_url_in_the_place_of_a_path_is_refused_in_a_line_without_it(shell, line):
    hint = "name a path on this disk, and download first what is elsewhere"
    for url in SECRETS:
        told = shell(*(word.replace("{}", url) for word in line.split()))
        assert told == (2, "", f"dpveil: {LOCAL[line]} takes a path on this disk, and no URL: {hint}\n")


@pytest.mark.parametrize("line", ["obfuscate {} --out made", "obfuscate a.png --out {}"])
def test_credentials_in_nearly_a_url_are_not_told_again(shell, line):
    for url in ("s3://key:marker@b/x", " s3://key:marker@b/x", "s3:/key:marker@b/x", "s3://key:a/marker@b/x"):
        code, answer, err = shell(*(word.replace("{}", url) for word in line.split()))
        assert (code, answer) == (2, "")
        assert "a URL has credentials in it: leave them out" in err
        assert "marker" not in err
