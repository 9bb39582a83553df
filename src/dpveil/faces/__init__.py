"""Face-space methods: each a class, and a row in `core.registry`.

Their road: `base` → `head_placement` (places of faces, by `geometry`) → the method's draw (`drawn_face`) →
`paint_faces` (into the photo).
"""

from typing import TYPE_CHECKING

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.faces.attributes_method import Attributes
    from dpveil.faces.base import FaceMethod
    from dpveil.faces.gallery_method import Gallery
    from dpveil.faces.latent import Latent

__all__ = ["Attributes", "FaceMethod", "Gallery", "Latent"]
__getattr__, __dir__ = lazy(__name__, {"base": "FaceMethod"}, registry.FACES.homes)
