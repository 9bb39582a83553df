"""Every trainer, callable from Python: codecs and attribute models, on public images.

An order names the training images and the output file; the trainer writes the model with its card and
returns it. A model reveals its training data: never train on images that have to stay private.

    order = CodecOrder(codec="pca", paths=(Path("faces-00.tar"),), out=Path("faces.safetensors"), length=40)
    codec = train_codec(order).model

`train_pca`, `train_mixture`, `train_dictionary` and `train_aam` train on a `Source` of crops and write no
file.
"""

from dpveil_train.aam import train_aam
from dpveil_train.attributes import AttributeOrder, train_attributes
from dpveil_train.codecs import PASSES, TRAINERS, CodecOrder, train_codec
from dpveil_train.dictionary import train_dictionary
from dpveil_train.mixture import train_mixture
from dpveil_train.order import Trained
from dpveil_train.pca import train_pca

__all__ = [
    "PASSES",
    "TRAINERS",
    "AttributeOrder",
    "CodecOrder",
    "Trained",
    "train_aam",
    "train_attributes",
    "train_codec",
    "train_dictionary",
    "train_mixture",
    "train_pca",
]
