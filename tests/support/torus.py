"""A torus as a collision shape: one file, nothing else of the program knows it.

Axis z, radius of the circle size[0], radius of the tube size[1]. With a = rho - size[0], rho = |(X_0, X_1)|, b = X_2:

    s = sqrt(a^2 + b^2),  g = s - size[1],  n = (a e_rho + b e_z) / s,  H = t t^T / s + a e_phi e_phi^T / (s rho)

Imported before anything of `add` that computes; `python tests/support/torus.py FOLDER` then does what
`tests/claims/contact/test_further_shape.py` asks for.
"""

import math
import sys
from pathlib import Path

import numpy as np
from numba import njit

from add.geometry.shapes import Shape, add_shape
from add.kernels.shape_codes import DistanceKernel

TORUS = 7


@njit(error_model="numpy")
def _inside(size0, size1, size2, X0, X1, X2):
    a = math.sqrt(X0 * X0 + X1 * X1) - size0
    return a * a + X2 * X2 < size1 * size1


@njit(error_model="numpy")
def _bound(size0, size1, size2):
    return size0 + size1


@njit(error_model="numpy")
def _feature(size, X0, X1, X2):
    return 0


@njit(error_model="numpy")
def _branch(size, X0, X1, X2, feature, order, n, H):
    rho = math.sqrt(X0 * X0 + X1 * X1)
    e0, e1 = (X0 / rho, X1 / rho) if rho > 0.0 else (1.0, 0.0)
    a, b = rho - size[0], X2
    s = math.sqrt(a * a + b * b)
    if order >= 1:
        n[0], n[1], n[2] = (a * e0 / s, a * e1 / s, b / s) if s > 0.0 else (e0, e1, 0.0)
    if order >= 2 and s > 0.0 and rho > 0.0:
        t0, t1, t2 = -b * e0 / s, -b * e1 / s, a / s
        k = a / (s * rho)
        H[0, 0], H[1, 1], H[2, 2] = t0 * t0 / s + k * e1 * e1, t1 * t1 / s + k * e0 * e0, t2 * t2 / s
        H[0, 1], H[0, 2], H[1, 2] = t0 * t1 / s - k * e0 * e1, t0 * t2 / s, t1 * t2 / s
        H[1, 0], H[2, 0], H[2, 1] = H[0, 1], H[0, 2], H[1, 2]
    return s - size[1]


def _gaps(size, x):
    return np.hypot(np.hypot(x[:, 0], x[:, 1]) - size[0], x[:, 2]) - size[1]


def _grid(size, n, m):
    """Return n x m places on the surface."""
    u, w = np.meshgrid(np.arange(n) * 2 * np.pi / n, np.arange(m) * 2 * np.pi / m, indexing="ij")
    rho = size[0] + size[1] * np.cos(w)
    return np.stack([rho * np.cos(u), rho * np.sin(u), size[1] * np.sin(w)], axis=2)


def _surface(size, n=48, m=24):
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    a, b = i * m + j, (i + 1) % n * m + j
    c, d = (i + 1) % n * m + (j + 1) % m, i * m + (j + 1) % m
    triangles = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)])
    return _grid(size, n, m).reshape(-1, 3), triangles.reshape(-1, 3)


add_shape(
    Shape(
        "torus", TORUS, _gaps, lambda size: _grid(size, 12, 6).reshape(-1, 3), _surface,
        lambda size: [np.concatenate([ring, ring[:1]]) for ring in _grid(size, 96, 4).transpose(1, 0, 2)],
        DistanceKernel(TORUS, _inside, _bound, _feature, _branch),
    )
)  # fmt: skip


def check(folder: Path) -> None:
    """Build, touch, differentiate, write, read and draw rings; a wrong number raises."""
    from dataclasses import replace

    from add.adjoint import evaluate, value_and_gradient
    from add.bodies import CarriedShape, RigidBody
    from add.contact import BodyContact, FrictionLaw
    from add.equations.kinematics import Kinematics
    from add.io.trajectory_data import RunData
    from add.io.trajectory_file import read_run, write_run
    from add.io.trajectory_parts import ObstacleData, SolidData
    from add.kernels.distance import signed_distance
    from add.model import ContactModel, Obstacle, build_model
    from add.model.overlaps import deep_starts
    from add.objectives.base import Objective
    from add.simulation import BDF
    from add.simulation.run import Simulation
    from add.simulation.start import GivenStart
    from add.solve.newton import NewtonOptions
    from add.testing import check_deciding_term

    rng = np.random.default_rng(0)
    size = np.array([0.1, 0.03, 0.0])
    for X in rng.uniform(-0.15, 0.15, (50, 3)):
        n, H, ahead, _ = np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros(3)
        g = signed_distance(TORUS, size, X, 0, n, H)[0]
        assert abs(g - _gaps(size, X[None])[0]) < 1e-15
        for k, e in enumerate(1e-6 * np.eye(3)):
            back = np.zeros(3)
            slope = signed_distance(TORUS, size, X + e, 0, ahead, np.zeros((3, 3)))[0]
            slope -= signed_distance(TORUS, size, X - e, 0, back, np.zeros((3, 3)))[0]
            assert abs(slope / 2e-6 - n[k]) < 1e-8
            np.testing.assert_allclose((ahead - back) / 2e-6, H[:, k], atol=1e-3)

    # A ring in the world, a ring that a body carries, and a box of points that falls on both.
    points = 0.02 * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    eye, middle = np.eye(3), np.array([0.1, 0.0, 0.03])
    boxes = [RigidBody(name, points, np.zeros(8), np.ones(8)) for name in ("left", "right")]
    ring = RigidBody(
        "ring", np.zeros((0, 3)), np.zeros(0), np.zeros(0), (CarriedShape(TORUS, tuple(size), eye, np.zeros(3)),)
    )
    world = [Obstacle("tyre", TORUS, tuple(size), eye, np.zeros(3), np.zeros(3))]
    model = build_model([*boxes, ring], obstacles=world, contact=ContactModel(law=FrictionLaw.TANH, onset=1e-3))
    layout = model.system.parameters
    theta = np.zeros(layout.n)
    for name, place in (("left", middle), ("right", middle + np.eye(3)[0]), ("ring", np.array([1.0, 0.0, 0.0]))):
        layout.view(theta, f"bodies.{name}.mass")[...] = 0.5
        layout.view(theta, f"bodies.{name}.inertia")[:3] = 1e-3
        layout.view(theta, f"bodies.{name}.position")[...] = place
        layout.view(theta, f"bodies.{name}.orientation")[...] = 0.1 * rng.normal(size=3)
        layout.view(theta, f"bodies.{name}.velocity")[...] = (0.1, 0.05, 0.0 if name == "ring" else -0.5)
    for entry in layout.entries:
        if entry.name.startswith("contact."):
            layout.view(theta, entry.name)[...] = {"k_n": 2e3, "k_d": 1.0, "k_t": 5.0, "c_f": 0.4}[entry.name[-3:]]

    assert {(o.body, o.other) for o in deep_starts(model, theta)} == {("left", "tyre"), ("right", "ring")}
    (term,) = model.term(BodyContact)
    q, v = model.initial.evaluate(theta)
    kin = Kinematics(q, v, rng.normal(size=q.size), 0.1, 1)
    decision, found = check_deciding_term(term, kin, theta, rng=rng, layout=layout, scales={"q": 1e-3, "v": 0.05})
    touched = set(term.touching_pairs(decision)[1].tolist())
    assert touched == {0, 1} and found.q > 0.0 and found.v > 0.0

    class End(Objective):
        def step_value(self, state, *_):
            return float(np.sin(np.arange(state.q.shape[1])) @ state.q[0]) if state.step == 10 else 0.0

        def step_pullback(self, state, *rest):
            if state.step == 10:
                rest[-2].q[0] += np.sin(np.arange(state.q.shape[1]))

    newton = NewtonOptions(atol=1e-12, rtol=0.0, max_iterations=60)
    simulation = Simulation(model.system, GivenStart(model.initial), BDF(1e-3, 2, newton=newton), 10, theta)
    run = simulation.run()
    assert sum(term.describe(record.decisions[0])["touching"] for record in run.records) > 5
    reverse = value_and_gradient(simulation, End(), replay=run.replay)
    names = ("contact.left.tyre.k_n", "contact.right.ring.c_f", "bodies.left.velocity", "bodies.ring.mass")
    indices = np.concatenate([layout[name].indices.ravel() for name in names])
    # Two by two, interpreted runs being slow, with weights by which no error of one hides that of the other.
    for some in np.split(indices, 3):
        way = np.zeros(layout.n)
        way[some] = rng.uniform(0.5, 1.0, some.size) * np.maximum(np.abs(theta[some]), 0.1)
        ends = [evaluate(simulation, End(), theta + h * way, replay=run.replay)[0] for h in (1e-5, -1e-5)]
        error = abs((ends[0] - ends[1]) / 2e-5 - reverse.gradient @ way)
        least = way[some].min()
        assert error < 1e-6 * least * max(np.abs(reverse.gradient).max(), 1.0), [layout.describe(int(i)) for i in some]

    data = RunData(
        t=run.t, q=run.q, v=run.v, energy={"kinetic": np.zeros(run.t.size)},
        newton_iterations=np.ones(run.n_steps, dtype=np.int64), newton_residual=np.zeros(run.n_steps),
        contact_force=np.zeros_like(run.q), bodies=(),
        obstacles=(ObstacleData("tyre", TORUS, size, eye, np.zeros(3)),),
        solids=(
            SolidData("left", model.system.dofs["left"].start, vertices=points, triangles=np.array([[0, 1, 2]])),
            SolidData("ring", model.system.dofs["ring"].start, kind=TORUS, size=size),
        ),
    )  # fmt: skip
    write_run(folder / "trajectory.h5", data)
    again = read_run(folder / "trajectory.h5")
    assert again.obstacles[0].kind == again.solids[1].kind == TORUS

    import imageio.v3 as imageio

    from add.view import screenshot

    pictures = []
    for obstacles in (again.obstacles, ()):
        path = screenshot(replace(again, obstacles=obstacles), folder / "ring.png", time=0.005, size=(240, 160))
        pictures.append(imageio.imread(path)[..., :3].astype(float))
    assert np.abs(pictures[0] - pictures[1]).max() > 50.0
    print("torus: all right")


if __name__ == "__main__":
    check(Path(sys.argv[1]))
