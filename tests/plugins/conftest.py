"""Packages for this process alone, and a photo."""

import importlib

import pytest
from PIL import Image
from plugin_packages import again, install
from skimage import data

from dpveil.core.registry import ATTACKS, CODECS, DETECTORS, METHODS


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return `install` into a folder that this process imports from; tables look for plug-ins again."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def here(*arguments):
        install(folder, *arguments)
        importlib.invalidate_caches()
        for table in (ATTACKS, CODECS, DETECTORS, METHODS):
            monkeypatch.setitem(vars(table), "plugins", again(table).plugins)
            monkeypatch.setitem(vars(table), "_ready", {})

    return here


@pytest.fixture(scope="session")
def photo(tmp_path_factory):
    """Return the file of a photo with one face."""
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    Image.fromarray(data.astronaut()[:240, 100:340]).save(path)
    return path
