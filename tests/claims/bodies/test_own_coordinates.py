"""A kind of body that only this file knows, with four coordinates x, y, z and yaw, goes through everything.

Nothing outside this file is made for it: the scene's builder hands it out in place of one of its rigid bodies.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import add
from add.bodies import Block, Body, CarriedShape, ContactPoints, Family, Layouts, Part, Picture
from add.bodies.base import POSE_VECTORS
from add.bodies.nodal import WEIGHT
from add.bodies.rigid import frame_state
from add.commands.check_gradient import check_gradients
from add.commands.run_summary import summary
from add.equations.initial import Pose
from add.equations.lift import Embedding
from add.equations.term import Term
from add.io.trajectory_file import read_run, write_run
from add.kernels import distance
from add.scene.build import scene as builder
from add.scene.build.run_data import run_data

HALF = (0.1, 0.06, 0.04)
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * HALF


@dataclass(frozen=True)
class Yaw(Embedding):
    """X = (x, y, z, 0, 0, yaw)."""

    matrix: np.ndarray = field(default_factory=lambda: np.eye(6)[:, [0, 1, 2, 5]])

    @property
    def n_coordinates(self) -> int:
        return 4

    @property
    def n_rows(self) -> int:
        return 6

    def place(self, q, theta):
        return self.matrix @ q, self.matrix

    def rates(self, q, v, theta):
        return np.zeros((6, 4))

    def curvature(self, q, theta, force):
        return np.zeros((4, 4))


@dataclass(frozen=True)
class YawPose(Pose):
    start: int
    q: np.ndarray
    v: np.ndarray

    @property
    def coordinates(self) -> slice:
        return slice(self.start, self.start + 4)

    def evaluate(self, theta, q, v):
        q[self.coordinates], v[self.coordinates] = theta[self.q], theta[self.v]

    @property
    def numbers(self):
        return np.concatenate([self.q, self.v])

    def derivatives(self, theta):
        return np.eye(8).reshape(2, 4, 8)


@dataclass(frozen=True)
class YawInertia(Term):
    """r = (m, m, m, I_zz) a of each body."""

    depends: ClassVar[str] = "a"
    linear: ClassVar[str] = "a"

    dofs: np.ndarray
    mass: np.ndarray

    def pattern(self):
        return self.dofs, self.dofs

    def residual(self, kin, theta, out):
        out[self.dofs] += theta[self.mass] * kin.a[self.dofs]

    def jacobian(self, kin, theta, weights, data, slots):
        np.add.at(data, slots, weights.a * theta[self.mass])

    def parameter_vjp(self, kin, theta, lam, out):
        np.add.at(out, self.mass, lam[self.dofs] * kin.a[self.dofs])

    def parameter_jvp(self, kin, theta, theta_dot, out):
        self.residual(kin, theta_dot, out)

    def kinetic_energy(self, kin, theta):
        return 0.5 * float(theta[self.mass] @ kin.v[self.dofs] ** 2)


@dataclass(frozen=True)
class YawInertias(Family):
    of_coordinates: ClassVar[bool] = True

    def terms(self, parts, parameters):
        return [YawInertia(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))]


@dataclass(frozen=True)
class Turntable(Body):
    """A box that stays upright."""

    order: ClassVar[int] = 3
    has_frame: ClassVar[bool] = True

    name: str
    shapes: tuple[CarriedShape, ...] = (CarriedShape(distance.BOX, HALF, np.eye(3), np.zeros(3)),)

    @property
    def rest(self):
        return CORNERS

    def index(self, key: str, at: Layouts) -> np.ndarray:
        return at.parameters[f"bodies.{self.name}.{key}"].indices

    def parameters(self) -> list[Block]:
        own: list[Block] = [("mass", (), "kg"), ("inertia", (6,), "kg m^2"), ("centre", (3,), "m")]
        blocks = [*own, *((key, (3,), unit) for key, unit in POSE_VECTORS)]
        return [(f"bodies.{self.name}.{key}", shape, unit) for key, shape, unit in blocks]

    def rows(self):
        return 2, 3

    def coordinates(self):
        return (4,)

    def embedding(self, at):
        return Yaw()

    def pose(self, at):
        vectors = [self.index(key, at) for key, _ in POSE_VECTORS]
        q, v = np.append(vectors[0], vectors[1][2]), np.append(vectors[2], vectors[3][2])
        return YawPose(at.dofs[self.name].start, q, v)

    def parts(self, at):
        mass = self.index("mass", at).reshape(1)
        numbers = np.concatenate([np.repeat(mass, 3), self.index("inertia", at)[2:3]])
        node = np.array([at.rows[self.name].start // 3])
        inertia = (at.dofs[self.name].indices, numbers)
        return [Part(YawInertias(), inertia), Part(WEIGHT, (node, np.ones(1), mass))]

    def contact_points(self):
        return ContactPoints(np.zeros(0, dtype=np.int64), CORNERS, np.zeros(8), np.full(8, 0.01))

    def picture(self, theta, at):
        values = {"kinematic": False, "centre": np.zeros(3), "kind": distance.BOX, "size": np.array(HALF)}
        return Picture("solids", values | {"vertices": np.zeros((0, 3)), "triangles": np.zeros((0, 3), dtype=np.int64)})

    def state(self, kin, masses, theta, at):
        mass = float(theta[self.index("mass", at)])
        return {"mass": mass} | frame_state(kin, at.rows[self.name].start)

    def fingerprint(self):
        return [CORNERS]


SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.002, "steps": 40, "integrator": "bdf2"},
    "bodies": {
        # Its place in q comes after the ball's, whatever the order here.
        "table": {
            "type": "rigid", "geometry": {"shape": "box", "size": [2 * x for x in HALF]}, "mass": 0.5,
            "position": [0, 0, 0.0395], "orientation": [0.9800665778412416, 0, 0, 0.19866933079506122],
            "velocity": [0.6, 0.1, -0.3], "angular_velocity": [0, 0, 2.0],
        },
        "ball": {
            "type": "rigid", "geometry": {"shape": "sphere", "radius": 0.03}, "mass": 0.05,
            "position": [0.02, 0.01, 0.111], "velocity": [0, 0, -0.5],
        },
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 2e4, "damping": 5, "friction": 0.4, "onset": 0.0005, "damping_ramp": 0.001},
    "couplings": {
        "band": {"type": "spring", "a": {"at": [0.3, 0, 0.1]}, "b": {"body": "table", "at": [0.1, 0.06, 0.04]},
                 "stiffness": 30, "damping": 0.2, "length": 0.1},
    },
    "markers": {
        "corner": {"body": "table", "point": [0.1, 0.06, 0.04]},
        "centre": {"body": "table", "center_of_mass": True},
    },
    "objective": [
        {"type": "point", "marker": "corner", "target": [0.2, 0.1, 0.1], "time": "end"},
        {"type": "pose", "body": "table", "translation": [0.1, 0, 0.04], "time": "end"},
    ],
    "parameters": [{"path": "bodies.table.velocity", "scale": 0.1}, {"path": "bodies.table.mass"}],
}  # fmt: skip


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> add.Scene:
    """The scene, whose builder makes a turntable of the body "table"."""
    made = builder.rigid_body

    def body(name, spec, parts):
        solid = made(name, spec, parts)
        return Turntable(name) if name == "table" else solid

    monkeypatch.setattr(builder, "rigid_body", body)
    return add.scene_from_dict(SCENE)


def test_it_runs_and_touches(scene: add.Scene) -> None:
    """It slides over the floor on its corners, carries the ball, and only its yaw turns."""
    built = scene.build()
    model = built.model
    assert [body.name for body in model.bodies] == ["ball", "table"]
    assert (model.system.n, model.lift.rows.n) == (6 + 4, 12)
    assert model.system.dofs.describe(9) == "table/coordinate 3"
    run = built.run()
    counts = [built.simulation.system.deciding[0].describe(record.decisions[0]) for record in run.records]
    assert max(count["touching"] for count in counts) >= 5  # four corners and the ball
    assert max(count["slipping"] for count in counts) >= 4
    out = summary(built, run, built.theta)
    table = out["bodies"]["table"]
    assert table["mass"] == 0.5 and table["angular_velocity"][2] < 2.0
    assert table["orientation"][1] == table["orientation"][2] == 0.0
    assert abs(table["centre"][2] - HALF[2]) < 2e-3 and out["energy"]["kinetic"] > 0.0
    last = run.kinematics(run.n_steps)
    corner, centre = built.markers.points(last, built.theta)[0]
    assert np.linalg.norm(corner - centre) == pytest.approx(np.linalg.norm(HALF), rel=1e-12)
    force = built.reactions(last)["band"]["table"].force
    away = np.array([0.3, 0, 0.1]) - corner
    assert force @ away > 0.0  # the band pulls


def test_gradient(scene: add.Scene) -> None:
    """Every number of the scene, by replayed differences of whole runs."""
    checks = check_gradients(scene, n_steps=3, free=False)
    assert checks and all(check.passed for check in checks), [str(check) for check in checks]
    assert all(check.decisions["touching"] for check in checks)
    names = {entry.name for entry in scene.build().numbers.layout.entries}
    assert {"bodies.table.mass", "bodies.table.velocity", "couplings.band.stiffness", "markers.corner.point"} <= names


STICKS = {"contact.friction_law": "hybrid", "time.steps": 120, "couplings.band.stiffness": 0.5}


def test_it_sticks(scene: add.Scene) -> None:
    """Hybrid friction: it slides and turns to rest on its corners, and then does not move at all."""
    built = add.apply_overrides(scene, STICKS).build()
    run = built.run()
    counts = [built.simulation.system.deciding[0].describe(record.decisions[0]) for record in run.records]
    assert max(count["slipping"] for count in counts) >= 4 and counts[-1]["sticking"] >= 4
    assert np.abs(run.v[-1, [6, 7, 9]]).max() < 1e-12


@pytest.mark.slow
def test_gradient_through_sticking(scene: add.Scene) -> None:
    """Of every number, over slip and stick."""
    checks = check_gradients(add.apply_overrides(scene, STICKS), n_steps=90)
    assert checks and all(check.passed for check in checks), [str(check) for check in checks]


def test_results_and_picture(scene: add.Scene, tmp_path) -> None:
    """The trajectory file has its frame, and the viewer draws it where its corner is."""
    built = scene.build()
    run = built.run()
    data = run_data(built, run, built.theta)
    write_run(tmp_path / "trajectory.h5", data)
    again = read_run(tmp_path / "trajectory.h5")
    (table,) = (solid for solid in again.solids if solid.name == "table")
    rotation, position = again.pose(table, again.n_states - 1)
    corner = position + rotation @ (CORNERS[7] - table.centre)
    np.testing.assert_allclose(corner, again.markers["corner"][-1], atol=1e-12)
    assert np.abs(again.contact_force[:, table.start + 2]).max() > 1.0
    from add.view import screenshot

    picture = tmp_path / "table.png"
    screenshot(again, picture, size=(160, 120))
    assert picture.stat().st_size > 1000
