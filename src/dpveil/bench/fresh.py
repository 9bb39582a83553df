"""Fresh copies of a fitted attacker: what it remembers of one release must not help it with the next."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

from dpveil.attacks.base import Fitted
from dpveil.errors import PluginError


def fresh(fitted: Fitted) -> Callable[[], Fitted]:
    """Return what makes copies of an attacker as it is now, however often; it is itself never used.

    It is pickled once, and copied deeply each time where that cannot be, as for functions within functions.
    What it keeps in modules, classes and the variables of such functions is not undone. Raises `PluginError`
    for an attacker that cannot be copied in either way.
    """
    try:
        held = pickle.dumps(fitted, pickle.HIGHEST_PROTOCOL)
        pickle.loads(held)  # noqa: S301  made here, one line above
    except Exception:  # noqa: BLE001  whatever a class makes of being pickled
        return _deeply(fitted)
    return lambda: pickle.loads(held)  # noqa: S301


def _deeply(fitted: Fitted) -> Callable[[], Fitted]:
    try:
        kept = copy.deepcopy(fitted)
    except Exception as error:
        name = f"{type(fitted).__module__}.{type(fitted).__qualname__}"
        told = " ".join(f"{type(error).__name__}: {error}".split())
        problem = f"the attacker {name} cannot be copied, so that releases cannot be scored apart: {told}"
        raise PluginError(problem, hint="let it be pickled, or give it __deepcopy__") from error
    return lambda: copy.deepcopy(kept)
