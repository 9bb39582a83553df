"""Photos from files and back: the only code that touches image files; metadata never crosses it."""

from dpveil.io.encoding import encode
from dpveil.io.locking import leftovers, sole_writer
from dpveil.io.names import FORMATS, format_of
from dpveil.io.reading import MAX_PIXELS, read, read_bytes, read_mask
from dpveil.io.writing import make_folder, write_together

__all__ = [
    "FORMATS",
    "MAX_PIXELS",
    "encode",
    "format_of",
    "leftovers",
    "make_folder",
    "read",
    "read_bytes",
    "read_mask",
    "sole_writer",
    "write_together",
]
