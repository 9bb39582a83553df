"""Node trees: the materials of skin, hair, eyes, cloth and glass, the room's light, and denoising."""

from __future__ import annotations

import bpy

HAIR, GARMENT, NONE = (1, 0, 0), (0, 1, 0), (0, 0, 0)
"""Colours of the mask; the neck is (0, 0, 1)."""
CLOTH = (0.155, 0.185, 0.235)
WINDOW, WINDOW_X, WINDOW_Y = (0.18, -0.83, 0.53), (0.978, 0.208, 0.0), (-0.110, 0.518, 0.848)
"""The way to the window mirrored in eyes, and its two sides, in Blender's axes."""


class Nodes:
    """A material under construction."""

    def __init__(self, name: str, mask: tuple[int, int, int]) -> None:
        self.material = bpy.data.materials.new(name)
        self.material.use_nodes = True
        self.tree = self.material.node_tree
        self.tree.nodes.clear()
        self.output = self.new("ShaderNodeOutputMaterial")
        self.mask = self.new("ShaderNodeOutputAOV", Color=(*mask, 1))
        self.mask.aov_name = "mask"

    def new(self, kind: str, **inputs):
        """Return a new node; inputs are values, or sockets to be linked, with _ for spaces."""
        node = self.tree.nodes.new(kind)
        for name, value in inputs.items():
            socket = node.inputs[name.replace("_", " ")]
            if isinstance(value, bpy.types.NodeSocket):
                self.tree.links.new(value, socket)
            else:
                socket.default_value = value
        return node

    def attribute(self, name: str, output: str):
        """Return a socket with an attribute of the geometry."""
        node = self.new("ShaderNodeAttribute")
        node.attribute_name = name
        return node.outputs[output]

    def math(self, operation: str, a, b):
        """Return the socket of an arithmetic operation."""
        node = self.new("ShaderNodeMath")
        node.operation = operation
        for socket, value in zip(node.inputs, (a, b), strict=False):
            if isinstance(value, bpy.types.NodeSocket):
                self.tree.links.new(value, socket)
            else:
                socket.default_value = value
        return node.outputs[0]

    def mix(self, share, first, second):
        """Return the output of a mix of two shaders."""
        node = self.new("ShaderNodeMixShader")
        for socket, value in zip(node.inputs, (share, first, second), strict=True):
            if isinstance(value, bpy.types.NodeSocket):
                self.tree.links.new(value, socket)
            else:
                socket.default_value = value
        return node.outputs[0]

    def done(self, surface) -> bpy.types.Material:
        """Return the material with this surface."""
        self.tree.links.new(surface, self.output.inputs["Surface"])
        return self.material


def all_materials() -> dict[str, bpy.types.Material]:
    """Return the materials by name."""
    return {
        "skin": _skin(),
        "hair": _hair("hair", HAIR),
        "small hair": _hair("small hair", NONE),
        "eye": _plain("eye", 0.40, subsurface=0.15, specular=0.08),
        "teeth": _plain("teeth", 0.22, subsurface=0.3, glow=0.16),
        "cornea": _cornea(),
        "lens": _lens(),
        "cloth": _cloth(),
        "metal": _frame("metal", (0.30, 0.27, 0.23), 0.9, 0.28),
        "plastic": _frame("plastic", (0.055, 0.026, 0.014), 0.0, 0.25),
        "dark": _frame("dark", (0.008, 0.008, 0.009), 0.0, 0.25),
    }


def _skin() -> bpy.types.Material:
    n = Nodes("skin", NONE)
    neck = n.new("ShaderNodeCombineColor", Blue=n.attribute("neck", "Fac"))
    n.tree.links.new(neck.outputs[0], n.mask.inputs["Color"])
    rest, normal = n.attribute("rest", "Vector"), None
    # Pores, and a coarser unevenness under soft light.
    for scale, strength, distance in ((95.0, 0.45, 0.007), (34.0, 0.40, 0.009), (11.0, 0.25, 0.012)):
        height = n.new("ShaderNodeTexNoise", Vector=rest, Scale=scale, Detail=2.0).outputs[0]
        more = {"Normal": normal} if normal else {}
        normal = n.new("ShaderNodeBump", Height=height, Strength=strength, Distance=distance, **more).outputs[
            0
        ]
    surface = n.new(
        "ShaderNodeBsdfPrincipled",
        Base_Color=n.attribute("albedo", "Color"), Roughness=n.attribute("rough", "Fac"),
        Subsurface_Weight=1.0, Subsurface_Radius=(1.0, 0.36, 0.2), Subsurface_Scale=0.030,
        Specular_IOR_Level=0.50, Coat_Weight=0.10, Coat_Roughness=0.28, Normal=normal,
    )  # fmt: skip
    surface.subsurface_method = "BURLEY"  # as good at this scale, and a third faster in all
    return n.done(surface.outputs[0])


def _hair(name: str, mask: tuple) -> bpy.types.Material:
    n = Nodes(name, mask)
    surface = n.new("ShaderNodeBsdfHairPrincipled", Roughness=0.34, Radial_Roughness=0.45, IOR=1.42)
    surface.parametrization = "COLOR"
    along = n.new("ShaderNodeHairInfo").outputs["Intercept"]
    shade = n.math("MULTIPLY_ADD", along, 0.55)
    shade.node.inputs[2].default_value = 0.62  # darker at the roots
    scaled = n.new("ShaderNodeVectorMath")
    scaled.operation = "SCALE"
    n.tree.links.new(n.attribute("albedo", "Vector"), scaled.inputs[0])
    n.tree.links.new(shade, scaled.inputs["Scale"])
    n.tree.links.new(scaled.outputs[0], surface.inputs["Color"])
    return n.done(surface.outputs[0])


def _plain(
    name: str, rough: float, subsurface: float, glow: float = 0.0, specular: float = 0.4
) -> bpy.types.Material:
    n = Nodes(name, NONE)
    colour = n.attribute("albedo", "Color")
    surface = n.new(
        "ShaderNodeBsdfPrincipled", Base_Color=colour, Roughness=rough,
        Emission_Color=colour, Emission_Strength=glow,
        Subsurface_Weight=subsurface, Subsurface_Radius=(1.0, 0.6, 0.4), Subsurface_Scale=0.02,
        Specular_IOR_Level=specular,
    )  # fmt: skip
    return n.done(surface.outputs[0])


def _lens() -> bpy.types.Material:
    n = Nodes("lens", NONE)
    return n.done(n.new("ShaderNodeBsdfTransparent", Color=(0.97, 0.98, 0.98, 1)).outputs[0])


def _cornea() -> bpy.types.Material:
    """A clear surface that mirrors one window, without noise."""
    n = Nodes("cornea", NONE)
    mirrored = n.new("ShaderNodeTexCoord").outputs["Reflection"]

    def along(axis: tuple):
        product = n.new("ShaderNodeVectorMath")
        product.operation = "DOT_PRODUCT"
        n.tree.links.new(mirrored, product.inputs[0])
        product.inputs[1].default_value = axis
        return product.outputs["Value"]

    lit = n.math("GREATER_THAN", along(WINDOW), 0.2)
    for axis in (WINDOW_X, WINDOW_Y):
        off = n.math("ABSOLUTE", along(axis), 0)
        edge = n.new("ShaderNodeMapRange", From_Min=0.25, From_Max=0.09, Value=off).outputs[0]
        lit = n.math("MULTIPLY", lit, edge)
    lit = n.math("MULTIPLY", lit, n.new("ShaderNodeLightPath").outputs["Is Camera Ray"])
    glow = n.new("ShaderNodeEmission", Strength=n.math("MULTIPLY", lit, 0.8))
    both = n.new("ShaderNodeAddShader")
    n.tree.links.new(n.new("ShaderNodeBsdfTransparent").outputs[0], both.inputs[0])
    n.tree.links.new(glow.outputs[0], both.inputs[1])
    return n.done(both.outputs[0])


def _cloth() -> bpy.types.Material:
    n = Nodes("cloth", GARMENT)
    below = n.attribute("below", "Fac")
    rest = n.attribute("rest", "Vector")
    weave = n.new("ShaderNodeTexNoise", Vector=rest, Scale=60.0, Detail=2.0).outputs[0]
    normal = n.new("ShaderNodeBump", Height=weave, Strength=0.25, Distance=0.01).outputs[0]
    seam = n.math("LESS_THAN", n.math("ABSOLUTE", n.math("SUBTRACT", below, 0.075), 0), 0.008)
    shade = n.math("MULTIPLY_ADD", seam, -0.35)
    shade.node.inputs[2].default_value = 1.0
    scaled = n.new("ShaderNodeVectorMath", Vector=CLOTH)
    scaled.operation = "SCALE"
    n.tree.links.new(shade, scaled.inputs["Scale"])
    surface = n.new(
        "ShaderNodeBsdfPrincipled", Base_Color=scaled.outputs[0], Roughness=0.9, Specular_IOR_Level=0.15,
        Sheen_Weight=0.25, Sheen_Roughness=0.5, Normal=normal,
    )  # fmt: skip
    return n.done(surface.outputs[0])


def _frame(name: str, colour: tuple, metallic: float, rough: float) -> bpy.types.Material:
    n = Nodes(name, NONE)
    surface = n.new("ShaderNodeBsdfPrincipled", Base_Color=(*colour, 1), Metallic=metallic, Roughness=rough)
    return n.done(surface.outputs[0])


def set_room(world: bpy.types.World, strength: float) -> None:
    """Light a world from all around: cooler and brighter above than below."""
    tree = world.node_tree
    background = tree.nodes["Background"]
    direction = tree.nodes.new("ShaderNodeTexCoord").outputs["Generated"]
    split = tree.nodes.new("ShaderNodeSeparateXYZ")
    tree.links.new(direction, split.inputs[0])
    height = tree.nodes.new("ShaderNodeMapRange")
    height.inputs[1].default_value = -1
    tree.links.new(split.outputs["Z"], height.inputs[0])
    ramp = tree.nodes.new("ShaderNodeValToRGB")
    low, high = ramp.color_ramp.elements
    low.position, high.position = 0.2, 0.8
    low.color = (0.46 * strength, 0.42 * strength, 0.39 * strength, 1)
    high.color = (0.98 * strength, 1.0 * strength, 1.05 * strength, 1)
    tree.links.new(height.outputs[0], ramp.inputs[0])
    tree.links.new(ramp.outputs[0], background.inputs[0])


def set_compositor(scene: bpy.types.Scene, folder: str) -> None:
    """Denoise the picture, its coverage and the masks, and write each as an EXR file."""
    scene.use_nodes = True
    tree = scene.node_tree
    tree.nodes.clear()
    layers = tree.nodes.new("CompositorNodeRLayers")
    files = tree.nodes.new("CompositorNodeOutputFile")
    files.base_path, files.format.file_format, files.format.color_depth = folder, "OPEN_EXR", "32"
    files.format.color_mode = "RGB"
    files.file_slots.clear()
    for name, source in (("picture", "Image"), ("cover", "Alpha"), ("mask", "mask")):
        denoise = tree.nodes.new("CompositorNodeDenoise")
        denoise.use_hdr, denoise.prefilter = name == "picture", "FAST"
        tree.links.new(layers.outputs[source], denoise.inputs["Image"])
        tree.links.new(layers.outputs["Denoising Albedo"], denoise.inputs["Albedo"])
        tree.links.new(layers.outputs["Denoising Normal"], denoise.inputs["Normal"])
        files.file_slots.new(name)
        tree.links.new(denoise.outputs[0], files.inputs[name])
