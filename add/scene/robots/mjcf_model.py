"""A compiled MuJoCo model, the names of its objects, and its shapes.

What an MJCF multiplies too often is refused before MuJoCo makes it, which may not end.
"""

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.scene.robots.inertia import free_name, from_quaternion, from_six
from add.scene.robots.model import WORLD, Place, RobotGeometry
from add.scene.robots.xml_file import Source, XmlNode, numbers_in, read_xml, usable
from add.ties import unit_vector
from add.typing import FloatArray, IntArray

#: Axes shorter than this, or longer than its inverse, are normalised before MuJoCo sees them.
_SHORT = 1e-6


@final
@dataclass(frozen=True)
class Mjcf:
    """A compiled MuJoCo model of a file: its arrays, and names of its objects by number.

    Those without a name get that of their kind and number; a site that has the name of a body is called after it with
    "_site".
    """

    mujoco: Any
    model: Any
    source: Source
    inertias: dict[str, FloatArray]

    def word(self, enum: str, number: Any) -> str:
        """Return the word of a constant of MuJoCo, such as "HINGE" for ``mjtJoint`` 3."""
        return str(getattr(self.mujoco, f"mjt{enum}")(int(number)).name.partition("_")[2])

    def pose(self, of: str, number: int) -> Place:
        """Return the place of a "site_", "geom_" or, with its inertia, "body_i" in the frame of its body."""
        position, turn = (np.array(getattr(self.model, f"{of}{key}")[number]) for key in ("pos", "quat"))
        return position, from_quaternion(turn)

    def limits(self, of: str, number: int) -> tuple[float, float]:
        """Return the range of a "jnt_" or "actuator_ctrl", say, infinite where it is not limited."""
        if not getattr(self.model, f"{of}limited")[number]:
            return -np.inf, np.inf
        low, high = getattr(self.model, f"{of}range")[number].tolist()
        return low, high

    def place(self, kind: str, number: int) -> str:
        """Return the place of an object for errors."""
        return self.source.place(kind, self.of(kind, number))

    def inertia(self, body: int) -> FloatArray:
        """Return the inertia of a body about its centre in its axes, (3, 3), as stated where MuJoCo kept it."""
        _, turn = self.pose("body_i", body)
        principal = turn @ np.diag(self.model.body_inertia[body]) @ turn.T
        stated = self.inertias.get(self.mujoco.mj_id2name(self.model, self.mujoco.mjtObj.mjOBJ_BODY, body), principal)
        close = np.abs(stated - principal).max() <= 1e-5 * np.abs(stated).max()
        return stated if close else (principal + principal.T) / 2.0

    def of(self, kind: str, number: int) -> str:
        """Return the name of an object: kind "body", "joint", "geom", "site", "actuator", "tendon" or "equality"."""
        if kind == "body" and number == 0:
            return WORLD
        code = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        text = self.mujoco.mj_id2name(self.model, code, number)
        if not text:
            text = self.new(f"{kind}{number}", kind)
        if kind == "site" and self.has("body", text):  # links and sites share the names of places
            text = self.new(f"{text}_site", "body", "site")
        if kind != "geom":
            text = self.source.without_slash(kind, text, lambda name: self.has(kind, name))
        if kind != "geom" and not usable(text):
            self.source.fail(self.source.place(kind, text[:80]), "not a name", f"'{text[:80]}'", "a name without '/'")
        return str(text)

    def new(self, name: str, *kinds: str) -> str:
        """Return a name that no object of these kinds has, with as many _ as that takes."""
        while any(self.has(kind, name) for kind in kinds):
            name += "_"
        return name

    def has(self, kind: str, name: str) -> bool:
        """Whether an object of the file has a name, or was given it."""
        if any(of == kind and to == name for (of, _), to in self.source.renamed.items()):
            return True
        return bool(self.mujoco.mj_name2id(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name) >= 0)


def compiled(source: Source) -> Mjcf:
    """Return the compiled model of an MJCF file, with the full inertias that it states by body.

    MuJoCo 3 keeps principal moments and axes, which it finds only to 1e-6 of an inertia with six numbers. Its warnings
    are noted; without a handler it would write them to a file in the working folder.

    Raises
    ------
    InputError
        If the package is not installed, or refuses the file.
    """
    file = source.file
    try:
        import mujoco
    except ImportError:
        raise InputError(
            "MJCF files are read by the package mujoco, which is not installed",
            file=file,
            expected="pip install 'add-sim[robots]'",
        ) from None
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        with warnings.catch_warnings(record=True) as others:
            warnings.simplefilter("always")
            spec = mujoco.MjSpec.from_file(str(file))
            spec.compiler.fusestatic = False  # links on fixed joints are merged here, and stay addressable
            names = {body.name for body in spec.bodies}
            for number, body in enumerate(spec.bodies):
                if not body.name:
                    body.name = free_name(f"body{number}", names)
            for joint in spec.joints:  # MuJoCo squares their lengths
                axis = np.array(joint.axis, dtype=np.float64)
                if np.isfinite(axis).all() and axis.any() and not _SHORT < np.abs(axis).max() < 1.0 / _SHORT:
                    joint.axis = unit_vector(axis)
            model = spec.compile()
            stated = {body.name: np.array(body.fullinertia, dtype=np.float64) for body in spec.bodies}
        said += [str(other.message) for other in others]
    except (ValueError, TypeError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())[:400] or type(error).__name__
        raise InputError(f"MuJoCo refuses the file: {reason}", file=file) from None
    finally:
        mujoco.set_mju_user_warning(before)
    for text in dict.fromkeys(said):
        source.note("MuJoCo warns", " ".join(text.split()))
    inertias = {name: from_six(entries) for name, entries in stated.items() if np.isfinite(entries).all()}
    return Mjcf(mujoco, model, source, inertias)


#: A flag of MuJoCo that switches a part of the motion off -> the arrays of a model that it makes zero.
SWITCHES = {
    "EQUALITY": ("eq_active0",),
    "FRICTIONLOSS": ("dof_frictionloss", "tendon_frictionloss"),
    "LIMIT": ("jnt_limited", "tendon_limited"),
    "SPRING": ("jnt_stiffness", "tendon_stiffness"),
    "DAMPER": ("dof_damping", "tendon_damping"),
    "CLAMPCTRL": ("actuator_ctrllimited",),
}  # fmt: skip
SWITCHES["CONSTRAINT"] = SWITCHES["EQUALITY"] + SWITCHES["FRICTIONLOSS"] + SWITCHES["LIMIT"]
SWITCHES["PASSIVE"] = (*SWITCHES["SPRING"], *SWITCHES["DAMPER"], "body_gravcomp")


def switch_off(mjcf: Mjcf) -> None:
    """Make zero in a compiled model what its flags switch off, unless the user lets it act."""
    source, model = mjcf.source, mjcf.model
    bits, option = mjcf.mujoco.mjtDisableBit, model.opt
    off = {key for key in (*SWITCHES, "ACTUATION") if option.disableflags & int(getattr(bits, f"mjDSBL_{key}", 0))}
    if off >= {"SPRING", "DAMPER"}:  # then MuJoCo has no passive forces at all
        off.add("PASSIVE")
    for key in sorted(off):
        if "flag" in source.ignore:
            source.refuse("flag", "<option><flag>", f"{key.lower()} is switched off")
            continue
        source.note("<option><flag>", f"{key.lower()} is switched off")
        for name in SWITCHES.get(key, ()):
            getattr(model, name)[:] = 0
        if key == "PASSIVE":
            option.density = option.viscosity = 0.0
        if key == "ACTUATION":
            model.actuator_group[:] = 0
            option.disableactuator = 1


#: Arrays of newer versions of MuJoCo that change the motion where they are not zero, with what they are of.
_NEWER = (
    ("jnt_stiffnesspoly", "joint", "a spring that is not linear"),
    ("dof_dampingpoly", "joint", "damping that is not linear"),
    ("tendon_stiffnesspoly", "tendon", "a spring that is not linear"),
    ("tendon_dampingpoly", "tendon", "damping that is not linear"),
    ("actuator_damping", "actuator", "damping of its own"),
    ("actuator_dampingpoly", "actuator", "damping of its own"),
    ("actuator_armature", "actuator", "armature of its own"),
    ("actuator_delay", "actuator", "a delay"),
)


def refuse_newer(source: Source, model: Any, names: Any) -> None:
    """Refuse what only newer versions of MuJoCo have, unless the user names it."""
    for key, kind, text in _NEWER:
        for number, values in enumerate(getattr(model, key, ())):
            if np.any(values):
                owner = int(model.dof_jntid[number]) if key.startswith("dof_") else number
                source.refuse("polynomial", source.place(kind, names.of(kind, owner)), text)


#: Copies that <replicate> and <flexcomp> of a file may make.
COPIES = 10_000
_MULTIPLY = ("replicate", "flexcomp", "composite")


def refuse_too_many(source: Source, root: XmlNode) -> None:
    """Refuse a file, with those that it includes, in which nested counts exceed `COPIES`.

    Raises
    ------
    InputError
        naming the file and the line; also of an included file that is no XML.
    """
    seen = {source.file.resolve()}
    waiting: list[tuple[Path, XmlNode, float]] = [(source.file, root, 1.0)]
    total = 0.0
    while waiting:
        file, node, copies = waiting.pop()
        if node.tag in _MULTIPLY:
            counts = numbers_in(node.attributes.get("count", "1"))
            copies *= math.prod(max(float(count), 1.0) for count in counts) if counts is not None else 1.0
            total += copies
            if total > COPIES:
                here = Source(file, source.words, source.ignore)
                here.fail(f"line {node.line}, <{node.tag}>", "too many copies", f"{total:g}", f"at most {COPIES}")
        if node.tag == "include":
            other = source.file.parent / node.attributes.get("file", "")
            if other.is_file() and other.resolve() not in seen:
                seen.add(other.resolve())
                waiting.append((other, read_xml(other), copies))
        waiting += [(file, child, copies) for child in node.children]


# --- Geoms of a compiled MuJoCo model as shapes -----------------------------------------------------------------------


#: Shapes by the name of MuJoCo, with how many of its three sizes they have.
_SHAPES = {"PLANE": ("plane", 0), "SPHERE": ("sphere", 1), "CAPSULE": ("capsule", 2), "CYLINDER": ("cylinder", 2),
           "BOX": ("box", 3), "MESH": ("mesh", 0), "ELLIPSOID": ("mesh", 0), "HFIELD": ("mesh", 0)}  # fmt: skip
#: Halvings of the edges of an icosahedron that stands for an ellipsoid: 320 faces, at most 2.4 % of a half axis inside.
_HALVINGS = 2


def read_shapes(mjcf: Mjcf) -> dict[int, tuple[list[RobotGeometry], list[RobotGeometry]]]:
    """Return the shapes (collision, visual) of each body by number, in the body's frame.

    A geom whose contype and conaffinity are zero, and that stands in no <pair>, touches nothing: it is visual.
    """
    source, model = mjcf.source, mjcf.model
    paired = set() if "pair" in source.ignore else {*model.pair_geom1.tolist(), *model.pair_geom2.tolist()}
    shapes: dict[int, tuple[list[RobotGeometry], list[RobotGeometry]]] = {}
    for geom in range(model.ngeom):
        body, code = int(model.geom_bodyid[geom]), mjcf.word("Geom", model.geom_type[geom])
        solid = bool(model.geom_contype[geom] or model.geom_conaffinity[geom] or geom in paired)
        place = f"{mjcf.place('geom', geom)} of body '{mjcf.of('body', body) or 'world'}'"
        if code not in _SHAPES:
            if solid:
                source.refuse("shape", place, f'type "{code.lower()}" is not read as a collision shape')
            else:
                source.note(place, f'type "{code.lower()}"')
            continue
        kind, count = _SHAPES[code]
        vertices = triangles = None
        if code == "MESH":
            mesh = int(model.geom_dataid[geom])
            first, size = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            vertices = np.array(model.mesh_vert[first : first + size], dtype=np.float64)
            first, size = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
            triangles = np.array(model.mesh_face[first : first + size], dtype=np.int64)
        if code == "ELLIPSOID":
            vertices, triangles = _ellipsoid(np.array(model.geom_size[geom]))
            source.note(place, f"an ellipsoid: a mesh of {len(triangles)} faces")
        if code == "HFIELD":
            vertices, triangles = _height_field(model, int(model.geom_dataid[geom]))
            source.note(place, f"a height field: a closed mesh of {len(triangles)} faces")
        shape = RobotGeometry(
            kind,
            tuple(model.geom_size[geom][:count].tolist()),
            *mjcf.pose("geom_", geom),
            vertices,
            triangles,
            mjcf.of("geom", geom),
            origin=mjcf.of("body", body),
            friction=float(model.geom_friction[geom][0]),
        )
        shapes.setdefault(body, ([], []))[0 if solid else 1].append(shape)
    return shapes


def _ellipsoid(half: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the mesh of an ellipsoid by its half axes [m]."""
    from trimesh.creation import icosphere

    ball = icosphere(subdivisions=_HALVINGS)
    return np.asarray(ball.vertices) * half, np.asarray(ball.faces, dtype=np.int64)


def _height_field(model: Any, number: int) -> tuple[FloatArray, IntArray]:
    """Return the closed mesh of a height field: its surface, walls, and a bottom below it."""
    rows, columns = int(model.hfield_nrow[number]), int(model.hfield_ncol[number])
    first = int(model.hfield_adr[number])
    x, y, high, deep = (float(value) for value in model.hfield_size[number])
    heights = high * np.array(model.hfield_data[first : first + rows * columns], dtype=float)
    flat = np.stack(np.meshgrid(np.linspace(-x, x, columns), np.linspace(-y, y, rows)), axis=-1).reshape(-1, 2)
    top = np.column_stack([flat, heights])
    n = rows * columns
    grid = np.arange(n).reshape(rows, columns)
    a, b, c, d = grid[:-1, :-1].ravel(), grid[:-1, 1:].ravel(), grid[1:, 1:].ravel(), grid[1:, :-1].ravel()
    surface = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    # Round the rim, seen from above against the clock.
    rim = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
    following = np.roll(rim, -1)
    low = n + np.arange(rim.size)
    after = np.roll(low, -1)
    walls = np.concatenate([np.stack([rim, low, following], axis=1), np.stack([following, low, after], axis=1)])
    middle = n + rim.size
    bottom = np.stack([low, np.full(rim.size, middle), after], axis=1)
    under = np.column_stack([flat[rim], np.full(rim.size, -deep)])
    vertices = np.concatenate([top, under, [[0.0, 0.0, -deep]]])
    return vertices, np.concatenate([surface, walls, bottom])
