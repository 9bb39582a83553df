"""Settings as they arrive: JSON or a query from strangers, read without anything heavy."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from dpveil.errors import UsageError

WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")
MOST_NAMES: Final = 200
"""Most settings in a request; no method has 30."""
EXAMPLE: Final = 'such as {"method": "dp-pix", "epsilon": 2}'


def read_settings(text: bytes) -> dict[str, Any]:
    """Return the object of a JSON text, decimals as text, so that they stay exact.

    Raises `UsageError` for anything else: another type, a name that is given twice or cannot be printed, NaN,
    deep nesting, half a surrogate pair, which is no text.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_float=str, parse_constant=_no_number)
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise UsageError("the settings are nested too deeply", hint="write one object of values") from None
    except UnicodeEncodeError:
        raise UsageError("the settings have text that is no Unicode", hint="leave it out") from None
    except ValueError as error:  # also UnicodeDecodeError, and integers of thousands of digits
        raise UsageError("the settings are not JSON", hint=EXAMPLE) from error
    if not isinstance(found, dict):
        raise UsageError("the settings are no object", hint=EXAMPLE)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of names and values; takes time in proportion to their number."""
    if len(pairs) > MOST_NAMES:
        raise UsageError(f"an object has {len(pairs):,} settings", hint=f"at most {MOST_NAMES}")
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not name.isprintable():  # messages show it
            raise UsageError("a setting has a name that cannot be printed", hint="leave it out")
        if name in found:
            raise UsageError(f"the setting {name[:100]!r} is given twice", hint="give it once")
        found[name] = value
    return found


def _no_number(text: str) -> Any:
    raise UsageError(f"{text} is no number of JSON", hint="leave it out")


def of_query(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the settings of a query's names and values: whole numbers and true or false are such.

    >>> of_query([("block", "16"), ("epsilon", "0.5")])
    {'block': 16, 'epsilon': '0.5'}
    """
    words: dict[str, Any] = {"true": True, "false": False}
    settings = _once(list(pairs))
    return {n: int(v) if WHOLE.fullmatch(v) else words.get(v, v) for n, v in settings.items()}
