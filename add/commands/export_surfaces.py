"""The surfaces of a run over time for other programs: USD, glTF with animation, a sequence of OBJ files."""

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.commands.export import moments
from add.errors import InputError
from add.io.lock import remove_killed, replacing
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import BodyData, ObstacleData
from add.kernels.shape_codes import MESH, PLANE
from add.machine.files import require_suffix
from add.summary import counted
from add.typing import AnyArray, FloatArray, IntArray
from add.view.parts import Moment

#: Moments of an animated glTF: each is a morph target of every body that changes its shape.
MOST_TARGETS = 400
#: Red, green and blue of bodies that move, of given motions and of obstacles.
_MOVING, _GIVEN, _STILL = (0.16, 0.47, 0.56), (0.6, 0.6, 0.62), (0.78, 0.77, 0.74)


class Shape(NamedTuple):
    """A surface that turns and moves, or changes its shape.

    Attributes
    ----------
    name : str
    triangles : (m, 3)
    points : (n, 3)
        In its frame, or at the first moment [m].
    poses : (k, 4, 4) or None
        Of its frame at all moments; None where its points move by themselves.
    places : (k, n, 3) or None
        Its points at all moments [m].
    colour : red, green, blue, 0 to 1
    """

    name: str
    triangles: IntArray
    points: FloatArray
    poses: FloatArray | None
    places: FloatArray | None
    colour: tuple[float, float, float]

    def at(self, k: int) -> FloatArray:
        """Return its points at moment k (n, 3)."""
        if self.places is not None:
            return np.asarray(self.places[k])
        assert self.poses is not None
        return np.asarray(self.points @ self.poses[k, :3, :3].T + self.poses[k, :3, 3])


def shapes(data: RunData, times: FloatArray) -> list[Shape]:
    """Return all bodies and obstacles of a run that have a surface.

    Raises
    ------
    InputError
        If there is none.
    """
    from add.view.shapes import pose_between, solid_meshes

    instants = [Moment.of(data.t, float(time)) for time in times]
    out: list[Shape] = []
    for body in data.nodal:
        triangles = body.surface if isinstance(body, BodyData) else body.triangles
        if len(triangles):
            used, faces = np.unique(triangles, return_inverse=True)
            x = np.stack([m.of_states(data.q)[body.entries].reshape(-1, 3)[used] for m in instants])
            out.append(Shape(body.name, faces.reshape(-1, 3), x[0], None, x, _MOVING))
    for solid in data.solids:
        surface, _ = solid_meshes(solid, 0.05)
        if surface is not None:
            poses = np.stack([pose_between(data, solid, m) for m in instants])
            points, faces = np.asarray(surface.points, dtype=float), surface.triangulate().regular_faces
            out.append(Shape(solid.name, faces, points, poses, None, _GIVEN if solid.kinematic else _MOVING))
    if not out:
        raise InputError("this run has no bodies with a surface", expected="soft, rigid or cloth bodies")
    low, high = (end([end(shape.at(k), axis=0) for k in (0, -1) for shape in out], axis=0) for end in (np.min, np.max))
    return out + [_obstacle(item, times, low, high) for item in data.obstacles]


def _obstacle(item: ObstacleData, times: FloatArray, low: FloatArray, high: FloatArray) -> Shape:
    """Return an obstacle; of a plane the square under all that lies between two corners, and as much around it."""
    from add.view.shapes import primitive

    poses = np.tile(np.eye(4), (times.size, 1, 1))
    poses[:, :3, :3] = item.rotation
    poses[:, :3, 3] = item.position + np.outer(times, item.velocity)
    if item.kind == PLANE:
        size = float(np.linalg.norm(high - low)) or 1.0
        middle = (0.5 * (low + high) - item.position) @ item.rotation
        points = np.array([[x, y, 0.0] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]) * size
        points[:, :2] += middle[:2]
        return Shape(item.name, np.array([[0, 1, 2], [0, 2, 3]]), points, poses, None, _STILL)
    if item.kind == MESH:
        return Shape(item.name, item.triangles, item.vertices, poses, None, _STILL)
    surface = primitive(item.kind, item.size).triangulate()
    return Shape(item.name, surface.regular_faces, np.asarray(surface.points, dtype=float), poses, None, _STILL)


def export_surfaces(data: RunData, path: Path, rate: float | None) -> int:
    """Write the surfaces of a run as .usda, .usdc, .glb or .obj (files in a folder); return the number of moments.

    Z is up and lengths are metres; glTF, whose y is up, has a node that turns.

    Raises
    ------
    InputError
        If the kind of file is unknown, nothing has a surface, a package is missing, or glTF would need too many shapes.
    """
    write = WRITERS[require_suffix(path, WRITERS)]
    times = moments(data, rate)
    write(path, shapes(data, times), times)
    return len(times)


def _require(package: str, path: Path) -> None:
    if find_spec(package) is None:
        raise InputError(f"this file needs the package '{package}': pip install 'add-sim[exchange]'", file=path)


def _identifiers(items: list[Shape]) -> Iterator[tuple[str, Shape]]:
    """Yield each surface with a word of letters, digits and _ that no other has."""
    taken: set[str] = set()
    for item in items:
        word = re.sub(r"\W", "_", item.name, flags=re.ASCII)
        word = base = word if word and not word[0].isdigit() else f"_{word}"
        number = 1
        while word in taken:
            number += 1
            word = f"{base}_{number}"
        taken.add(word)
        yield word, item


def _usd(path: Path, items: list[Shape], times: FloatArray) -> None:
    """Write a stage with a mesh for each surface, its points or its transform by time."""
    _require("pxr", path)
    from pxr import Gf, Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    # Without the rounding of times: players take frames that are whole.
    second = round(float(1.0 / np.diff(times).min()), 6) if times.size > 1 else 24.0
    codes = np.round(times * second, 6)
    stage.SetTimeCodesPerSecond(second)
    stage.SetFramesPerSecond(second)
    stage.SetStartTimeCode(float(codes[0]))
    stage.SetEndTimeCode(float(codes[-1]))
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/run").GetPrim())
    for word, item in _identifiers(items):
        mesh = UsdGeom.Mesh.Define(stage, f"/run/{word}")
        mesh.GetPrim().SetDisplayName(item.name)
        mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(item.triangles), 3, dtype=np.int32)))
        mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(item.triangles.ravel().astype(np.int32)))
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.CreateDoubleSidedAttr(True)
        mesh.CreateDisplayColorAttr([Gf.Vec3f(*item.colour)])
        points = mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(item.points.astype(np.float32)))
        if item.places is not None:
            for code, x in zip(codes, item.places, strict=True):
                points.Set(Vt.Vec3fArray.FromNumpy(x.astype(np.float32)), float(code))
        else:
            assert item.poses is not None
            turn = mesh.AddTransformOp()
            for code, pose in zip(codes, item.poses, strict=True):
                turn.Set(Gf.Matrix4d(*pose.T.ravel().tolist()), float(code))
    with replacing(path) as temporary:
        stage.Export(str(temporary))


def _glb(path: Path, items: list[Shape], times: FloatArray) -> None:
    """Write a node with a mesh for each surface; transforms, or morph targets, are animated."""
    _require("pygltflib", path)
    import pygltflib as gltf

    if times.size > MOST_TARGETS and any(item.places is not None for item in items):
        raise InputError(
            "an animated glTF has a whole surface for each moment of a body that changes its shape", file=path,
            found=counted(times.size, "moment"), expected=f"at most {MOST_TARGETS}: --rate, or a .usdc file",
        )  # fmt: skip
    file = _Binary(gltf)
    file.clock = file.numbers((times - times[0]).astype(np.float32), "SCALAR", bounds=True)
    # Its y is up: z goes to y.
    file.out.nodes.append(gltf.Node(name="run", rotation=[-(0.5**0.5), 0.0, 0.0, 0.5**0.5], children=[]))
    for item in items:
        file.add(item)
    with replacing(path) as temporary:
        file.save(temporary)


@final
class _Binary:
    """A binary glTF in the making; ``gltf`` is the package."""

    def __init__(self, gltf: Any) -> None:
        self.gltf, self.out, self.animation, self.clock = gltf, gltf.GLTF2(), gltf.Animation(name="run"), 0
        self._bytes = bytearray()

    def numbers(self, values: AnyArray, kind: str, target: int | None = None, *, bounds: bool = False) -> int:
        """Append an array; return the number of its accessor."""
        raw, start = np.ascontiguousarray(values), len(self._bytes)
        self._bytes.extend(raw.tobytes())
        self._bytes.extend(b"\0" * (-len(self._bytes) % 4))
        views, gltf = self.out.bufferViews, self.gltf
        views.append(gltf.BufferView(buffer=0, byteOffset=start, byteLength=raw.nbytes, target=target))
        component = gltf.FLOAT if raw.dtype == np.float32 else gltf.UNSIGNED_INT
        one = gltf.Accessor(bufferView=len(views) - 1, componentType=component, count=len(raw), type=kind)
        if bounds:
            table = raw.reshape(len(raw), -1)
            one.min, one.max = table.min(axis=0).tolist(), table.max(axis=0).tolist()
        self.out.accessors.append(one)
        return len(self.out.accessors) - 1

    def places(self, values: FloatArray) -> Any:
        """Append places of vertices, or how far they go; return the attributes of a primitive."""
        position = self.numbers(values.astype(np.float32), "VEC3", self.gltf.ARRAY_BUFFER, bounds=True)
        return self.gltf.Attributes(POSITION=position)

    def animate(self, node: int, what: str, values: AnyArray, kind: str) -> None:
        """Let something of a node follow values by time."""
        gltf, values_at = self.gltf, self.numbers(values.astype(np.float32), kind)
        samplers = self.animation.samplers
        samplers.append(gltf.AnimationSampler(input=self.clock, output=values_at, interpolation=gltf.ANIM_LINEAR))
        aim = gltf.AnimationChannelTarget(node=node, path=what)
        self.animation.channels.append(gltf.AnimationChannel(sampler=len(samplers) - 1, target=aim))

    def add(self, item: Shape) -> None:
        """Append a node with a surface and its motion."""
        gltf, out, node = self.gltf, self.out, len(self.out.nodes)
        colour = gltf.PbrMetallicRoughness(baseColorFactor=[*item.colour, 1.0], metallicFactor=0.0, roughnessFactor=0.8)
        out.materials.append(gltf.Material(pbrMetallicRoughness=colour, doubleSided=True))
        corners = self.numbers(item.triangles.ravel().astype(np.uint32), "SCALAR", gltf.ELEMENT_ARRAY_BUFFER)
        look = len(out.materials) - 1
        primitive = gltf.Primitive(attributes=self.places(item.points), indices=corners, material=look)
        mesh = gltf.Mesh(name=item.name, primitives=[primitive])
        out.meshes.append(mesh)
        out.nodes.append(gltf.Node(name=item.name, mesh=len(out.meshes) - 1))
        out.nodes[0].children.append(node)
        if item.places is not None:
            k = len(item.places)
            primitive.targets = [self.places(x - item.places[0]) for x in item.places[1:]]
            mesh.weights = [0.0] * (k - 1)
            if k > 1:
                self.animate(node, "weights", np.eye(k, k - 1, -1).ravel(), "SCALAR")
            return
        assert item.poses is not None
        turns = Rotation.from_matrix(item.poses[:, :3, :3]).as_quat()
        # q and -q are one turn: the nearer one is interpolated to.
        turns[1:] *= np.cumprod(np.where((turns[1:] * turns[:-1]).sum(axis=1) < 0.0, -1.0, 1.0))[:, None]
        self.animate(node, "translation", item.poses[:, :3, 3], "VEC3")
        self.animate(node, "rotation", turns, "VEC4")

    def save(self, path: Path) -> None:
        """Write the file."""
        self.out.scenes.append(self.gltf.Scene(nodes=[0]))
        self.out.scene = 0
        self.out.animations.append(self.animation)
        self.out.buffers.append(self.gltf.Buffer(byteLength=len(self._bytes)))
        self.out.set_binary_blob(bytes(self._bytes))
        self.out.save_binary(str(path))


def _obj(path: Path, items: list[Shape], times: FloatArray) -> None:
    """Write NAME_00000.obj and so on into the folder NAME, one file a moment with all surfaces by name."""
    import trimesh
    from trimesh.exchange.obj import export_obj

    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    remove_killed(folder)
    frame_file = re.compile(re.escape(folder.name) + r"_\d{5,}\.obj")
    before = list(folder.iterdir())
    others = [other.name for other in before if not frame_file.fullmatch(other.name)]
    if others:
        raise InputError("this folder has other files", file=folder, found=min(others), expected="a new one, by -o")
    for k in range(times.size):
        scene = trimesh.Scene()
        for word, item in _identifiers(items):
            scene.add_geometry(trimesh.Trimesh(item.at(k), item.triangles, process=False), geom_name=word)
        with replacing(folder / f"{folder.name}_{k:05d}.obj") as temporary:
            temporary.write_text(export_obj(scene, include_normals=False, include_color=False), encoding="utf-8")
    for other in before:  # the export before this one may have had more moments
        if int(other.stem.rpartition("_")[2]) >= times.size:
            other.unlink()


WRITERS: dict[str, Callable[[Path, list[Shape], FloatArray], None]] = {
    ".usdc": _usd, ".usda": _usd, ".glb": _glb, ".obj": _obj,
}  # fmt: skip
