"""Script for a Python with Blender: ``python _blender_worker.py scenes.json FOLDER`` writes ``FOLDER/0.png`` ...

It knows nothing of mmgen; ``_blender.py`` writes what it reads. Made for Blender 4.0 and later, tried
with bpy 4.2.0 of PyPI.
"""

import ctypes
import json
import math
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # and elsewhere this file can be looked at without Blender
    import bpy
    from mathutils import Vector


_AROUND = 96  # segments round a cylinder
_ROUNDING = 12  # segments of a rounded edge


def _add_object(name: str, data: Any) -> Any:
    thing = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(thing)
    return thing


def _aim(thing: Any, position: Any, direction: Any) -> None:
    """Move an object of Blender, and turn its -z axis along the direction and its y axis upright."""
    thing.location = position
    thing.rotation_mode = "QUATERNION"
    thing.rotation_quaternion = Vector(direction).to_track_quat("-Z", "Y")


def _set_up_blender(job: dict[str, Any]) -> None:
    """Empty Blender's scene, and set the size and quality of pictures."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.world = bpy.data.worlds.new("black")
    scene.world.use_nodes = True
    scene.world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.0, 0.0, 0.0, 1.0)
    render = scene.render
    render.engine = "CYCLES"
    render.resolution_x = render.resolution_y = job["size"]
    render.resolution_percentage = 100
    render.image_settings.file_format = "PNG"
    render.image_settings.color_mode = "RGB"
    render.image_settings.color_depth = "8"
    render.dither_intensity = 0.0
    render.threads_mode, render.threads = "FIXED", 1
    scene.view_settings.view_transform, scene.view_settings.look = "Standard", "None"
    cycles = scene.cycles
    cycles.device = "CPU"
    cycles.samples = job["samples"]
    cycles.use_adaptive_sampling = cycles.use_denoising = False
    cycles.pixel_filter_type = "BLACKMAN_HARRIS"
    cycles.filter_width = job["filter_width"] / 2.0  # Cycles doubles it for this filter


def _add_mesh(name: str, vertices: list[Any], faces: list[Any], material: Any) -> Any:
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    mesh.materials.append(material)
    mesh.update()
    return _add_object(name, mesh)


def _add_backdrop(settings: dict[str, Any]) -> None:
    material = bpy.data.materials.new("floor")
    material.use_nodes = True
    nodes, links = material.node_tree.nodes, material.node_tree.links
    nodes.clear()
    diffuse = nodes.new("ShaderNodeBsdfDiffuse")
    diffuse.inputs["Color"].default_value = (*[settings["albedo"]] * 3, 1.0)
    links.new(diffuse.outputs["BSDF"], nodes.new("ShaderNodeOutputMaterial").inputs["Surface"])
    start, radius, wide = settings["start"], settings["radius"], settings["half_width"]
    turns = [math.pi / 2 * i / 64 for i in range(65)]
    profile = [(start + radius * math.sin(turn), radius - radius * math.cos(turn)) for turn in turns]
    profile = [(-40.0, 0.0), *profile, (start + radius, 60.0)]
    x, y = settings["back"]
    vertices = [(r * x + side * y, r * y - side * x, z) for r, z in profile for side in (-wide, wide)]
    _add_mesh("floor", vertices, [(2 * i, 2 * i + 1, 2 * i + 3, 2 * i + 2) for i in range(len(profile) - 1)], material)


def _make_material(body: dict[str, Any], job: dict[str, Any]) -> Any:
    material = bpy.data.materials.new("body")
    material.use_nodes = True
    nodes, links = material.node_tree.nodes, material.node_tree.links
    nodes.clear()
    colour = (*body["colour"], 1.0)

    def add_glossy_node(kind: str, tint: Any, alpha: float) -> Any:
        node = nodes.new("ShaderNodeBsdfAnisotropic")
        node.distribution = kind
        node.inputs["Color"].default_value = tint
        node.inputs["Roughness"].default_value = math.sqrt(alpha)  # Cycles squares it
        return node.outputs["BSDF"]

    def add_mix_node(share: Any, first: Any, second: Any) -> Any:
        node = nodes.new("ShaderNodeMixShader")
        if isinstance(share, float):
            node.inputs[0].default_value = share
        else:
            links.new(share, node.inputs[0])
        links.new(first, node.inputs[1])
        links.new(second, node.inputs[2])
        return node.outputs["Shader"]

    def add_fresnel_node(index: float) -> Any:
        node = nodes.new("ShaderNodeFresnel")
        node.inputs["IOR"].default_value = index
        return node.outputs["Fac"]

    if body["metal"]:
        metal = job["metal"]
        surface = add_mix_node(
            metal["glossy_share"],
            add_glossy_node("GGX", colour, metal["mirror_alpha"]),
            add_glossy_node("GGX", colour, metal["glossy_alpha"]),
        )
    else:
        rubber = job["rubber"]
        diffuse = nodes.new("ShaderNodeBsdfDiffuse")
        velvet = nodes.new("ShaderNodeBsdfSheen")
        velvet.distribution = "ASHIKHMIN"
        velvet.inputs["Roughness"].default_value = rubber["velvet"]
        for node in (diffuse, velvet):
            node.inputs["Color"].default_value = colour
        inside = add_mix_node(add_fresnel_node(rubber["inner_index"]), diffuse.outputs["BSDF"], velvet.outputs["BSDF"])
        coat = add_glossy_node("BECKMANN", (*[rubber["coat"]] * 3, 1.0), rubber["coat_alpha"])
        surface = add_mix_node(add_fresnel_node(rubber["outer_index"]), inside, coat)
    links.new(surface, nodes.new("ShaderNodeOutputMaterial").inputs["Surface"])
    return material


def _cylinder_mesh(rim: float) -> tuple[list[Any], list[Any]]:
    """Return vertices and faces of a cylinder of radius and half height 1 with a rounded rim."""
    turns = [math.pi / 2 * i / _ROUNDING for i in range(_ROUNDING + 1)]
    profile = [(1.0 - rim + rim * math.sin(turn), 1.0 - rim + rim * math.cos(turn)) for turn in turns]
    profile += [(r, -z) for r, z in reversed(profile)]
    angles = [2.0 * math.pi * i / _AROUND for i in range(_AROUND)]
    vertices = [(r * math.cos(angle), r * math.sin(angle), z) for r, z in profile for angle in angles]
    faces: list[Any] = [list(range(_AROUND)), list(range(len(vertices) - 1, len(vertices) - 1 - _AROUND, -1))]
    for ring in range(len(profile) - 1):
        a, b = ring * _AROUND, (ring + 1) * _AROUND
        faces += [(a + i, b + i, b + (i + 1) % _AROUND, a + (i + 1) % _AROUND) for i in range(_AROUND)]
    return vertices, faces


def _cube_mesh(rim: float) -> tuple[list[Any], list[Any]]:
    """Return vertices and faces of a cube of half extent 1 with rounded edges; with rim 1 it is a sphere."""
    core = 1.0 - rim
    slopes = [math.tan(math.pi / 4 * i / _ROUNDING) for i in range(_ROUNDING + 1)]
    upper = [core + rim * slope for slope in slopes]
    lines = [-value for value in reversed(upper)] + (upper if core > 0.0 else upper[1:])
    vertices: list[Any] = []
    numbers: dict[Any, int] = {}

    def vertex_number(point: tuple[float, ...]) -> int:
        inner = [max(-core, min(core, value)) for value in point]
        outer = [value - close for value, close in zip(point, inner, strict=True)]
        length = math.sqrt(sum(value * value for value in outer))
        vertex = tuple(close + rim * value / length for close, value in zip(inner, outer, strict=True))
        key = tuple(round(value, 6) for value in vertex)
        if key not in numbers:
            numbers[key] = len(vertices)
            vertices.append(vertex)
        return numbers[key]

    faces: list[Any] = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            for a0, a1 in pairwise(lines):
                for b0, b1 in pairwise(lines):
                    corners = [(a0, b0), (a1, b0), (a1, b1), (a0, b1)]
                    points = [[side, *corner] for corner in (corners if side > 0.0 else reversed(corners))]
                    faces.append([vertex_number(tuple(point[(k - axis) % 3] for k in range(3))) for point in points])
    return vertices, faces


def _add_body(body: dict[str, Any], job: dict[str, Any]) -> None:
    vertices, faces = _cylinder_mesh(body["rim"]) if body["shape"] == "cylinder" else _cube_mesh(body["rim"] or 1.0)
    thing = _add_mesh("body", vertices, faces, _make_material(body, job))
    if body["shape"] != "sphere":
        thing.modifiers.new("flat faces stay flat", "WEIGHTED_NORMAL").weight = 100
    thing.location = (body["x"], body["y"], body["size"])
    thing.scale = [body["size"]] * 3
    thing.rotation_euler = (0.0, 0.0, body["rotation"])


def _render_scene(job: dict[str, Any], scene: dict[str, Any], path: Path) -> None:
    _set_up_blender(job)
    _add_backdrop(job["backdrop"])
    for body in scene["bodies"]:
        _add_body(body, job)
    for lamp in scene["lamps"]:
        light = bpy.data.lights.new("lamp", "AREA")
        light.shape, light.size = "SQUARE", lamp["side"]
        light.energy, light.color = lamp["watts"], lamp["colour"]
        _aim(_add_object("lamp", light), lamp["position"], [-value for value in lamp["position"]])
    sun = bpy.data.lights.new("sun", "SUN")
    sun.energy, sun.angle = job["sun"]["strength"], job["sun"]["angle"]
    _aim(_add_object("sun", sun), (0.0, 0.0, 10.0), [-value for value in job["sun"]["direction"]])
    camera = bpy.data.cameras.new("camera")
    camera.angle = math.radians(job["field_of_view"])
    eye = _add_object("camera", camera)
    _aim(eye, scene["camera"], [-value for value in scene["camera"]])
    bpy.context.scene.camera = eye
    bpy.context.scene.cycles.seed = scene["seed"]
    bpy.context.scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)


def _end_with_owner() -> None:
    """End this process when its parent ends, even while Blender renders."""
    owner = int(os.environ.get("MMGEN_OWNER", os.getppid()))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which Linux has

    def watch_owner() -> None:
        while os.getppid() == owner:
            time.sleep(0.25)
        os._exit(1)

    threading.Thread(target=watch_owner, daemon=True).start()


def _main() -> None:
    _end_with_owner()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for number, scene in enumerate(job["scenes"]):
        _render_scene(job, scene, Path(sys.argv[2]) / f"{number}.png")
    os._exit(0)  # bpy 4.2 crashes when Python takes it apart


if __name__ == "__main__":
    _main()
