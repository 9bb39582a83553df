"""The photographer's studio in Blender: materials, eyes, teeth, light, camera, and one picture at a time."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ["OPENCV_IO_ENABLE_OPENEXR"] = "1"

import bpy
import cv2
import numpy as np
from mathutils import Vector

import shaders
from hair import Strands
from mesh import Head, noise, posed, smooth, unit
from people import Person
from wear import Mesh

SIZE = 400  # side of a picture in pixels
SCALE = 102.0  # pixels per decimetre at the depth of the eyes
DISTANCE = 18.0  # from the camera to the eyes, in decimetres: a portrait's perspective
EYES = (200.0, 182.0)  # where the middle between the eyes of a frontal head is, in pixels
DEPTH = 1.35  # depth of the eyes


def blender(p: np.ndarray) -> np.ndarray:
    """Return points in Blender's axes, whose z points up, as float32."""
    p = np.asarray(p)
    return np.stack([p[..., 0], -p[..., 2], p[..., 1]], -1).astype(np.float32)


def subdivided(vertices: np.ndarray, faces: np.ndarray, values: list[np.ndarray], levels: int = 3):
    """Return Catmull-Clark's vertices, normals, quads, and values (n × 3 each) on them."""
    mesh = bpy.data.meshes.new("coarse")
    mesh.from_pydata(vertices.tolist(), [], faces.tolist())
    for i, value in enumerate(values):
        mesh.attributes.new(f"v{i}", "FLOAT_VECTOR", "POINT").data.foreach_set("vector", _flat(value))
    made = bpy.data.objects.new("coarse", mesh)
    bpy.context.scene.collection.objects.link(made)
    modifier = made.modifiers.new("s", "SUBSURF")
    modifier.levels = modifier.render_levels = levels
    fine = bpy.data.meshes.new_from_object(made.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    n = len(fine.vertices)

    def read(collection, name: str) -> np.ndarray:
        out = np.zeros(n * 3, np.float32)
        collection.foreach_get(name, out)
        return out.reshape(n, 3)

    quads = np.zeros(len(fine.loops), np.int32)
    fine.loops.foreach_get("vertex_index", quads)
    got = read(fine.vertices, "co"), read(fine.vertices, "normal"), quads.reshape(-1, 4)
    held = [read(fine.attributes[f"v{i}"].data, "vector") for i in range(len(values))]
    bpy.data.objects.remove(made)
    bpy.data.meshes.remove(mesh)
    bpy.data.meshes.remove(fine)
    return *got, held


def _flat(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a, np.float32).ravel()


@dataclass
class Placed:
    """An object in the scene and where its points are in a head that looks straight ahead."""

    thing: bpy.types.Object
    neutral: np.ndarray

    def turn(self, yaw: float) -> None:
        """Put the points where they are in a head turned by `yaw` degrees."""
        data, points = self.thing.data, blender(posed(self.neutral, yaw)).ravel()
        if isinstance(data, bpy.types.Mesh):
            data.vertices.foreach_set("co", points)
            data.update()
        else:
            data.attributes["position"].data.foreach_set("vector", points)
            data.update_tag()


class Studio:
    """A scene that is set up once; heads come and go."""

    def __init__(self, samples: int = 16, threads: int = 2) -> None:
        bpy.ops.wm.read_factory_settings(use_empty=True)
        self.scene = bpy.context.scene
        self.materials = shaders.all_materials()
        self.placed: list[Placed] = []
        self.folder = tempfile.TemporaryDirectory()
        self._set_cycles(samples, threads)
        self._set_light()
        self._set_camera()
        shaders.set_compositor(self.scene, self.folder.name)

    def _set_cycles(self, samples: int, threads: int) -> None:
        render, cycles = self.scene.render, self.scene.cycles
        render.engine = "CYCLES"
        render.film_transparent = True
        render.resolution_x = render.resolution_y = SIZE
        render.threads_mode, render.threads = "FIXED", threads
        cycles.samples, cycles.use_adaptive_sampling, cycles.use_denoising = samples, False, False
        cycles.max_bounces, cycles.transparent_max_bounces = 3, 8
        cycles.diffuse_bounces, cycles.glossy_bounces, cycles.transmission_bounces = 1, 1, 3
        cycles.sample_clamp_indirect, cycles.sample_clamp_direct = 3, 12
        cycles.caustics_reflective = cycles.caustics_refractive = False
        cycles.filter_width = 1.6
        self.scene.cycles_curves.shape, self.scene.cycles_curves.subdivisions = "RIBBONS", 1
        layer = self.scene.view_layers[0]
        layer.cycles.denoising_store_passes = True
        aov = layer.aovs.add()
        aov.name, aov.type = "mask", "COLOR"

    def _set_light(self) -> None:
        """One large key in front and above, and a bright room around: cool above, warm below."""
        world = bpy.data.worlds.new("room")
        self.scene.world, world.use_nodes = world, True
        shaders.set_room(world, 0.27)
        world.cycles.sampling_method = "NONE"  # smooth enough to be found by the surfaces' own samples
        self.lamps = []
        for power, size, colour in ((1.15, 3.5, (1.0, 0.955, 0.885)), (0.08, 9.0, (0.90, 0.95, 1.0))):
            light = bpy.data.lights.new("light", "AREA")
            light.energy, light.size, light.color = power * 14**2 * 4, size, colour
            self.lamps.append(bpy.data.objects.new("light", light))
            self.scene.collection.objects.link(self.lamps[-1])

    def light_from(self, azimuth: float, elevation: float) -> None:
        """Put the key where it shines from these degrees, and a weak fill on the other side."""
        for lamp, place in zip(self.lamps, ((azimuth, elevation), (azimuth - 60, 20)), strict=True):
            a, e = np.radians(place)
            d = np.array([np.sin(a) * np.cos(e), np.sin(e), np.cos(a) * np.cos(e)])
            lamp.location = blender(np.array([0, 8.1, 0.6]) + 14 * d)
            lamp.rotation_euler = Vector(blender(-d)).to_track_quat("-Z", "Y").to_euler()

    def _set_camera(self) -> None:
        camera = bpy.data.cameras.new("camera")
        camera.sensor_width, camera.clip_end = 36, 100
        camera.lens = 36 * SCALE * DISTANCE / SIZE
        self.camera = bpy.data.objects.new("camera", camera)
        self.camera.rotation_euler = (np.pi / 2, 0, 0)
        self.scene.collection.objects.link(self.camera)
        self.scene.camera = self.camera

    def clear(self) -> None:
        """Remove the last head."""
        for placed in self.placed:
            data = placed.thing.data
            bpy.data.objects.remove(placed.thing)
            (bpy.data.meshes if isinstance(data, bpy.types.Mesh) else bpy.data.hair_curves).remove(data)
        self.placed = []

    def look_at(self, eye_height: float) -> None:
        """Put the camera so that eyes of this height are where pictures have them."""
        self.height = eye_height + (EYES[1] - SIZE / 2) / SCALE
        self.camera.location = blender(np.array([0, self.height, DEPTH + DISTANCE]))

    def project(self, p: np.ndarray, yaw: float) -> np.ndarray:
        """Return points of a head that looks straight ahead, in pixels of the picture of the turned head."""
        q = posed(p, yaw)
        near = SCALE * DISTANCE / (DEPTH + DISTANCE - q[..., 2])
        x, y = SIZE / 2 + q[..., 0] * near, SIZE / 2 - (q[..., 1] - self.height) * near
        return np.stack([x, y], -1) - 0.5

    def add_mesh(self, mesh: Mesh, material: str, shadow: bool = True) -> None:
        """Add a mesh; values of one number are floats, those of three colours or (`rest`) vectors."""
        data = bpy.data.meshes.new(material)
        data.from_pydata(blender(mesh.vertices).tolist(), [], mesh.faces.tolist())
        data.polygons.foreach_set("use_smooth", np.ones(len(data.polygons), bool))
        for name, value in mesh.values.items():
            if value.ndim == 1:
                data.attributes.new(name, "FLOAT", "POINT").data.foreach_set("value", _flat(value))
            elif name == "rest":
                data.attributes.new(name, "FLOAT_VECTOR", "POINT").data.foreach_set("vector", _flat(value))
            else:
                value = np.c_[value, np.ones(len(value))]
                data.attributes.new(name, "FLOAT_COLOR", "POINT").data.foreach_set("color", _flat(value))
        self._place(data, mesh.vertices, material).visible_shadow = shadow

    def add_strands(self, strands: Strands, material: str) -> None:
        """Add curves."""
        n, k = strands.points.shape[:2]
        data = bpy.data.hair_curves.new(material)
        data.add_curves([k] * n)
        data.attributes["position"].data.foreach_set("vector", blender(strands.points).ravel())
        radius = strands.radius[:, None] * (1 - strands.taper * np.linspace(0, 1, k) ** 2)
        held = data.attributes.get("radius") or data.attributes.new("radius", "FLOAT", "POINT")
        held.data.foreach_set("value", _flat(radius))
        colour = np.c_[strands.colour, np.ones(n)]
        data.attributes.new("albedo", "FLOAT_COLOR", "CURVE").data.foreach_set("color", _flat(colour))
        self._place(data, strands.points, material)

    def _place(self, data, neutral: np.ndarray, material: str) -> bpy.types.Object:
        data.materials.append(self.materials[material])
        thing = bpy.data.objects.new(material, data)
        self.scene.collection.objects.link(thing)
        self.placed.append(Placed(thing, neutral))
        return thing

    def picture(self, yaw: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear premultiplied picture (RGBA) and the masks of hair, garment and skin."""
        for placed in self.placed:
            placed.turn(yaw)
        bpy.ops.render.render()
        read = {}
        for name in ("picture", "cover", "mask"):
            (file,) = Path(self.folder.name).glob(f"{name}*.exr")
            read[name] = cv2.imread(str(file), cv2.IMREAD_UNCHANGED)[..., 2::-1]
            file.unlink()
        rgba = np.dstack([read["picture"], np.clip(read["cover"][..., :1], 0, 1)])
        return rgba, np.clip(read["mask"], 0, 1)


# Eyes and teeth --------------------------------------------------------------------------------------

IRISES = {
    "dark": (0.035, 0.016, 0.009), "brown": (0.075, 0.034, 0.015), "hazel": (0.13, 0.085, 0.035),
    "green": (0.12, 0.14, 0.08), "grey": (0.15, 0.17, 0.175), "blue": (0.115, 0.155, 0.20),
}  # fmt: skip
IRIS = 0.395  # angle from an eye's axis to the edge of its iris


def eyeballs(head: Head, person: Person) -> list[tuple[Mesh, Mesh]]:
    """Return eyeball and cornea of both eyes."""
    rng = person.rng("eyes")
    fair = person.ancestry[2] > 0.6 and person.tone < 2
    odds = [0.05, 0.28, 0.17, 0.13, 0.12, 0.25] if fair else [0.6, 0.38, 0.02, 0, 0, 0]
    iris = np.array(IRISES[rng.choice(list(IRISES), p=odds)]) * rng.uniform(0.85, 1.3)
    theta, phi = np.meshgrid(
        np.linspace(0, np.pi, 96), np.linspace(0, 2 * np.pi, 96, endpoint=False), indexing="ij"
    )
    sphere = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1).reshape(
        -1, 3
    )
    index = np.arange(96 * 96).reshape(96, 96)
    faces = np.stack(
        [index[:-1], index[1:], np.roll(index[1:], -1, 1), np.roll(index[:-1], -1, 1)], -1
    ).reshape(-1, 4)
    t, f = theta.ravel(), phi.ravel()
    gaze = unit(np.array([0, 0, 1.0]) + rng.normal(0, [0.025, 0.015, 0]))
    colour = _eye_colour(t, f, iris, person, rng)
    # Iris and pupil are flat and lie behind a cornea that bulges.
    dent = 1 - 0.035 * smooth(IRIS, 0.2, t)
    bulge = 1.008 + 0.085 * np.exp(-((t / 0.36) ** 2))
    out = []
    for centre, radius in head.eyes.values():
        converged = unit(gaze - np.array([np.sign(centre[0]) * 0.02, 0, 0]))
        right = unit(np.cross([0, 1, 0], converged))
        axes = np.stack([right, np.cross(converged, right), converged], 1)
        ball = (sphere * dent[:, None]) @ axes.T * radius + centre
        cornea = (sphere * bulge[:, None]) @ axes.T * radius + centre
        front = t < 1.2
        keep = front[faces].all(1)
        out.append((Mesh(ball, faces, {"albedo": colour}), Mesh(cornea, faces[keep], {})))
    return out


def _eye_colour(t: np.ndarray, f: np.ndarray, iris: np.ndarray, person: Person, rng) -> np.ndarray:
    around = np.c_[np.cos(f), np.sin(f), 0.4 * t]
    white = (
        np.array([0.56, 0.50, 0.46])
        * (1 - 0.09 * person.tone)
        * (1 - 0.06 * person.old * np.array([0, 1, 2.5]))
    )
    veins = np.clip(1 - 3 * np.abs(noise(np.c_[np.cos(f) * t, np.sin(f) * t], rng, 16)), 0, 1) * smooth(
        0.5, 1.0, t
    )
    colour = white * (1 - 0.12 * smooth(0.6, 1.1, t))[:, None] * (1 - veins[:, None] * [0.02, 0.10, 0.10])
    fibres = noise(around, rng, 14)[:, None]
    ring = 1 - 0.6 * smooth(0.30, 0.39, t)[:, None]
    inner = 1 + 0.45 * np.exp(-(((t - 0.22) / 0.06) ** 2))[:, None] * [1.1, 1.0, 0.7]
    coloured = iris * (1 + 0.30 * fibres) * ring * inner
    share = smooth(IRIS + 0.03, IRIS - 0.03, t)[:, None]
    colour = colour * (1 - share) + coloured * share
    pupil = rng.uniform(0.13, 0.165)
    share = smooth(pupil + 0.02, pupil - 0.02, t)[:, None]
    return np.clip(colour * (1 - share) + 0.003 * share, 0.002, 0.9)


def teeth(base, head: Head, person: Person) -> list[Mesh]:
    """Return teeth and tongue."""
    rng, out = person.rng("teeth"), []
    shade = np.array([0.72, 0.67, 0.58]) * (1 - 0.12 * person.old) * rng.uniform(0.92, 1.06)
    for part in ("helper-upper-teeth", "helper-lower-teeth", "helper-tongue"):
        faces = np.array(base.parts[part])
        used = np.unique(faces)
        place = np.full(len(head.all), -1)
        place[used] = np.arange(len(used))
        rest = base.rest[used]
        # In a smile the upper lip bares teeth, which the base mesh keeps too high and too far behind.
        move = np.array([0, -0.055, 0.045]) * (person.teeth if part != "helper-lower-teeth" else 0)
        vertices, _, quads, (rest,) = subdivided(head.all[used] + move, place[faces], [rest])
        if "teeth" in part:
            angle = np.arctan2(rest[:, 0], rest[:, 2] - 1.05)
            gap = np.exp(-((np.abs((angle / 0.19) % 1 - 0.5) - 0.5) ** 2) / 0.003)
            dark = (1 - 0.45 * gap) * (1 - 0.55 * smooth(0.4, 1.1, np.abs(angle)))
            colour = shade * dark[:, None]
        else:
            colour = np.tile([0.30, 0.09, 0.085], (len(vertices), 1))
        out.append(Mesh(vertices, quads, {"albedo": colour}))
    return out
