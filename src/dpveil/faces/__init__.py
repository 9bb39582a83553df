"""Face-space methods: one file each, and this table, the only list to edit."""

from typing import Final

from dpveil.faces.attributes import Attributes
from dpveil.faces.base import FaceMethod
from dpveil.faces.gallery import Gallery
from dpveil.faces.latent import Latent

TABLE: Final[dict[str, type[FaceMethod]]] = {method.name: method for method in (Latent, Gallery, Attributes)}

__all__ = ["TABLE", "Attributes", "FaceMethod", "Gallery", "Latent"]
