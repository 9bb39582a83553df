"""A gallery of nobody and a model that reads brightness, so that tests know what every crop looks like."""

from __future__ import annotations

from itertools import product

import cv2
import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.faces.attribute_model import LENGTH, READ, TONE, VALUES, AttributeModel
from dpveil.faces.face_gallery import FaceGallery, webp
from dpveil.faces.geometry.tone import tones

CARD = Card("any", data="made faces", terms="none", seed=3)
CELL = 8


def level(place, count):
    """The brightness that stands for a value."""
    return 30 + 195 * place // (count - 1)


def lightness(grey):
    """What the model sees of a grey level, between 0 and 1."""
    pixel = np.full((1, 1, 3), grey, np.uint8)
    return float(cv2.cvtColor(pixel, cv2.COLOR_RGB2LAB)[0, 0, 0]) / 255


def crop(answers, seed=0):
    """A crop that looks like these places of the values of every attribute, and like noise elsewhere."""
    picture = np.random.default_rng(seed).integers(0, 256, (128, 128, 3)).astype(np.uint8)
    for number, (name, words) in enumerate(READ.items()):
        part = picture[CELL * number : CELL * (number + 1), :CELL]
        part[:] = level(answers.get(name, 0), len(words))
    return picture


def model():
    """For each attribute one unit, the lightness of its cell, and lines: the nearest is the highest."""
    hidden, columns = np.zeros((LENGTH, len(READ)), np.float32), []
    slopes, shifts = [], []
    for number, words in enumerate(READ.values()):
        hidden[LENGTH - 768 + 16 * number * 3, number] = 1
        wanted = np.array([lightness(level(place, len(words))) for place in range(len(words))])
        slopes.append(2 * wanted)
        shifts.append(-(wanted**2))
    answers = sum(map(len, slopes))
    out, at = np.zeros((len(READ), answers), np.float32), 0
    for number, own in enumerate(slopes):
        out[number, at : at + len(own)] = own
        at += len(own)
        columns.append(own)
    bias = np.full(len(READ), 0.5, np.float32)
    return AttributeModel(dict(READ), hidden, bias, out, np.concatenate(shifts).astype(np.float32), CARD)


def gallery(names=("gender", "age"), each=2, without=(), younger=0, least=0):
    """A gallery with `each` faces of every combination of `names`, but none of those `without`.

    Every second one smiles; their levels begin at `least`. The first `younger` of a combination look one age
    band younger than their label.
    """
    combinations = [c for c in product(*(range(len(VALUES[n])) for n in names)) if c not in without]
    rows = [dict(zip(names, c, strict=True)) for c in combinations for _ in range(each)]
    pictures = []
    for number, row in enumerate(rows):
        looks = {**row, "smile": number % 2}
        if number % each < younger:
            looks["age"] = max(0, row["age"] - 1)
        face = crop(looks)
        face[48:] = least + 5 * number
        pictures.append(webp(face))
    labels = {name: np.array([row[name] for row in rows], np.int8) for name in names}
    features = np.ones((1, 3072), np.float32)
    return with_readings(tuple(pictures), labels, {n: VALUES[n] for n in names}, features)


def with_readings(pictures, labels, values, rows):
    """A gallery with what the model reads in its faces, and their tones."""
    ahead = np.zeros(len(pictures), np.int8)
    faces = FaceGallery(pictures, labels, values, {}, ahead, rows, CARD).faces
    read = {**model().read(faces), TONE: tones(faces)}
    own = {name: answers.astype(np.int8) for name, answers in read.items()}
    return FaceGallery(pictures, labels, values, own, ahead, rows, CARD)
