"""The decoder of each format: Pillow's classes, and for HEIC the optional package pi-heif.

They are called directly and not through `Image.open`, which would apply Pillow's global limit on pixels.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
    features,
)

from dpveil.io.refused import Refused

INSTALL: Final = "pip install 'dpveil[formats]'"
OPENERS: Final[dict[str, type[ImageFile.ImageFile]]] = {
    "JPEG": JpegImagePlugin.JpegImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "WEBP": WebPImagePlugin.WebPImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "Netpbm": PpmImagePlugin.PpmImageFile,
}


def opener(name: str) -> Callable[..., ImageFile.ImageFile]:
    """Return the class that opens files of format `name`; raises `Refused` if it is not installed."""
    if name in OPENERS:
        return OPENERS[name]
    try:
        return _avif() if name == "AVIF" else _heic()
    except ImportError as error:
        raise Refused(f"is {name}, and its decoder is not installed", INSTALL) from error


def _avif() -> type[ImageFile.ImageFile]:
    if not features.check("avif"):
        raise ImportError("this Pillow was built without AVIF")
    found: type[ImageFile.ImageFile] = import_module("PIL.AvifImagePlugin").AvifImageFile
    return found


def _heic() -> type[ImageFile.ImageFile]:
    found: type[ImageFile.ImageFile] = import_module("pi_heif.as_plugin").HeifImageFile
    return found


_lock = threading.Lock()
_inside = 0
_saved = warnings.catch_warnings()


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Ignore warnings from Pillow's modules until the last thread has left this context.

    Where two threads overlap, `warnings.catch_warnings` alone would leave one thread's filters in force for
    ever; here the first thread to enter saves the filters and the last to leave restores them.
    """
    global _inside, _saved
    with _lock:
        if _inside == 0:
            _saved = warnings.catch_warnings()
            _saved.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\.")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _saved.__exit__(None, None, None)
