"""diffprivlib's GaussianNB on given splits: run as a script in its own environment, without dpveil.

Arguments: a .npz file with values, labels, lower, upper, orders (one permutation per row, 80 % of which
train) and epsilons. Writes the accuracies as JSON, a list for every budget.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np


def accuracies(path: str) -> list[list[float]]:
    from diffprivlib.models import GaussianNB  # of the other environment

    given = np.load(path)
    values, labels = given["values"], given["labels"]
    found: list[list[float]] = []
    for epsilon in given["epsilons"]:
        found.append([])
        for seed, order in enumerate(given["orders"]):
            train, test = np.split(order, [len(order) * 4 // 5])
            bounds = (given["lower"], given["upper"])
            model = GaussianNB(epsilon=float(epsilon), bounds=bounds, random_state=seed)
            model.fit(values[train], labels[train])
            found[-1].append(float((model.predict(values[test]) == labels[test]).mean()))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps(accuracies(sys.argv[1])))
