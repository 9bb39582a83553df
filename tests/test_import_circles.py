"""The import graph has no circle: every module can be read, and loaded, after those that it needs."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

grimp = pytest.importorskip("grimp", reason="comes with import-linter")


def needs() -> dict[str, set[str]]:
    """Return what every module of dpveil imports, anywhere in it, but for what only type checkers read."""
    graph = grimp.build_graph("dpveil", exclude_type_checking_imports=True)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def test_no_module_needs_itself():
    found = needs()
    TopologicalSorter(found).prepare()
    store, files = "dpveil.assets.store", "dpveil.codecs.files"
    with pytest.raises(CycleError, match=store):
        TopologicalSorter({**found, store: {*found[store], files}}).prepare()
