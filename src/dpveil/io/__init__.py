"""Reading and writing photos: the only code that touches image files; metadata is never passed on."""

from dpveil.io.locking import leftovers, sole_writer
from dpveil.io.names import FORMATS, format_of
from dpveil.io.reading import MAX_PIXELS, Source, most_bytes, read, read_bytes, read_mask
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.writing import encode, make_folder, place_together, write_together

__all__ = [
    "FORMATS",
    "MAX_PIXELS",
    "Source",
    "encode",
    "format_of",
    "is_present",
    "leftovers",
    "make_folder",
    "most_bytes",
    "place_together",
    "read",
    "read_bytes",
    "read_mask",
    "read_untrusted",
    "sole_writer",
    "write_together",
]
