from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_samples import file_bytes
from PIL import Image


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write bytes, or an image in a format, to a file and return its path."""

    def write(content: bytes | np.ndarray | Image.Image, name: str = "photo.png", **options: Any) -> Path:
        path = tmp_path / name
        if not isinstance(content, bytes):
            fmt = {"jpg": "jpeg", "tif": "tiff"}.get(path.suffix[1:], path.suffix[1:])
            content = file_bytes(content, fmt, **options)
        path.write_bytes(content)
        return path

    return write
