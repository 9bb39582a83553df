"""Which known name is suggested for a misspelt one."""

import pytest

from dpveil.errors import meant, nearest

NAMES = ("telea", "default", "box", "mean", "head", "yunet")


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("tella", "telea"),
        ("yunte", "yunet"),
        ("tlea", "telea"),
        ("ttelea", "telea"),
        ("elea", "telea"),
        ("teleas", "telea"),
        ("heda", "head"),
        ("hea", "head"),
        ("defualt", "default"),
        ("tllea", "telea"),
        ("etela", None),
        ("tleea", "telea"),
        ("median", None),
        ("bax", None),
        ("", None),
    ],
)
def test_one_slip_is_understood(typed, name):
    assert nearest(typed, NAMES) == name
    assert meant(typed, NAMES) == (f"did you mean {name}? " if name else "")


def test_between_two_names_nothing_is_guessed():
    assert nearest("tele0", ["telea", "teleb"]) is None
