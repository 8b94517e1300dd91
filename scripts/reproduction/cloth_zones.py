"""One step of the cloth in its pyramid by impact zones, in plain NumPy, beside ours (Liang, Lin, Koltun 2019)."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

import add
from add.contact import MeshContact
from add.contact.crossings import Primitives, candidates
from add.contact.surfaces import ContactSurface
from add.equations.kinematics import NO_CARRY, Kinematics, State
from add.linalg import one_blas_thread
from add.scene.build.built import BuiltScene
from add.terms import Inertia
from add.typing import FloatArray
from scripts.reproduction.cloth_pyramid import PYRAMID, crumpling
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock

#: Cells along an edge, steps before the one that is compared, rounds of detection, step of differences [m/s^2].
CELLS, BEFORE, ROUNDS, STEP = 16, 110, 20, 1e-4


class Zone(NamedTuple):
    """What is left of all impacts: least y with A y >= b, y = M^1/2 (x - q), and those of the rows that hold it."""

    x: FloatArray
    rows: FloatArray
    bounds: FloatArray
    active: np.ndarray


def on_triangle(p: FloatArray, corners: FloatArray) -> FloatArray:
    """Return the shares (k, 3) of the corners (k, 3, 3) in the points of triangles nearest to p (k, 3)."""
    a, b, c = corners.transpose(1, 0, 2)
    plane = np.stack([b - a, c - a], axis=2)
    uv = np.linalg.solve(plane.transpose(0, 2, 1) @ plane, plane.transpose(0, 2, 1) @ (p - a)[:, :, None])[:, :, 0]
    found = np.stack([1.0 - uv.sum(axis=1), uv[:, 0], uv[:, 1]], axis=1)
    outside, best = found.min(axis=1) < 0.0, np.full(len(p), np.inf)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        s, e = corners[:, i], corners[:, j] - corners[:, i]
        t = np.clip(((p - s) * e).sum(axis=1) / (e * e).sum(axis=1), 0.0, 1.0)
        far = np.linalg.norm(s + t[:, None] * e - p, axis=1)
        now = outside & (far < best)
        shares = np.zeros((len(p), 3))
        shares[:, i], shares[:, j] = 1.0 - t, t
        found[now], best[now] = shares[now], far[now]
    return found


def on_edges(one: FloatArray, two: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares (k,) of the second ends in the nearest points of pairs of edges (k, 2, 3)."""
    d, e, r = one[:, 1] - one[:, 0], two[:, 1] - two[:, 0], one[:, 0] - two[:, 0]
    dd, ee, de, dr, er = (np.einsum("ki,ki->k", a, b) for a, b in ((d, d), (e, e), (d, e), (d, r), (e, r)))
    s = np.clip((de * er - dr * ee) / np.maximum(dd * ee - de**2, 1e-12 * dd * ee), 0.0, 1.0)
    t = np.clip((de * s + er) / ee, 0.0, 1.0)
    return np.clip((de * t - dr) / dd, 0.0, 1.0), t


def rows_of(surface: ContactSurface, half: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distances beyond the skins (k,), of pairs less than two apart, and their slopes (k, n_points, 3).

    ``half`` (n_points,) are the thicknesses of the skins [m].
    """
    found = candidates(Primitives.of(surface), x, reach=4.0 * half.max())
    points = np.concatenate([np.c_[found.vf[:, 0], surface.faces[found.vf[:, 1]]],
                             np.c_[surface.edges[found.ee[:, 0]], surface.edges[found.ee[:, 1]]]])  # fmt: skip
    n = len(found.vf)
    s, t = on_edges(x[points[n:, :2]], x[points[n:, 2:]])
    weights = np.concatenate([np.c_[np.ones(n), -on_triangle(x[points[:n, 0]], x[points[:n, 1:]])],
                              np.c_[1.0 - s, s, t - 1.0, -t]])  # fmt: skip
    apart = np.einsum("ka,kai->ki", weights, x[points])
    distance = np.linalg.norm(apart, axis=1)
    skin = half[points[:, 0]] + half[points[:, 3]]
    near = distance < 2.0 * skin
    slopes = np.zeros((near.sum(), *x.shape))
    for a in range(4):
        slopes[np.arange(len(slopes)), points[near, a]] += weights[near, a, None] * apart[near] / distance[near, None]
    return (distance - skin)[near], slopes


def least(rows: FloatArray, bounds: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """Return the shortest y with rows y >= bounds, and the rows that hold it, by their active set.

    Lawson and Hanson, *Solving least squares problems*, chapter 23: least distance programming.
    """
    given = np.vstack([rows.T, bounds])
    shares, _ = nnls(given, np.r_[np.zeros(rows.shape[1]), 1.0])
    rest = given @ shares - np.r_[np.zeros(rows.shape[1]), 1.0]
    return -rest[:-1] / rest[-1], shares > 0.0


def zone(surface: ContactSurface, half: FloatArray, start: FloatArray, q: FloatArray, mass: FloatArray) -> Zone:
    """Return the places nearest to q, by masses, that are a skin apart: distances linear at the last places found."""
    x, free, root = start, surface.body == 0, np.sqrt(np.repeat(mass, 3))
    for _ in range(ROUNDS):
        gap, slopes = rows_of(surface, half, x)
        rows = slopes[:, free].reshape(len(slopes), -1) / root
        bounds = -gap - rows @ (root * (q - x)[free].ravel())
        y, active = least(rows, bounds)
        last, x = x, q.copy()
        x[free] += (y / root).reshape(-1, 3)
        if np.abs(x - last).max() < 1e-9:
            break
    return Zone(x, rows, bounds, active)


class Slopes(NamedTuple):
    """Places of all points after a step, and the derivative of the nodes' by gravity's last component."""

    x: FloatArray
    slope: FloatArray

    @classmethod
    def of(cls, built: BuiltScene, state: State, start: FloatArray) -> Slopes:
        """Take one step from a state with these places, and those for gravity a little more and less."""
        gravity = built.model.system.parameters["gravity"].start + 2

        def after(more: float) -> FloatArray:
            theta = built.theta.copy()
            theta[gravity] += more
            return built.simulation.run(theta, n_steps=state.step + 1, state=state).q[-1][:nodes]

        x, nodes = start.copy(), built.model.system.dofs["cloth"].size
        x[: nodes // 3] = after(0.0).reshape(-1, 3)
        return cls(x, (after(STEP) - after(-STEP)) / (2.0 * STEP))


def run(context: Context) -> Outcome:
    """The step, its zones, and the derivatives of both by gravity."""
    cells, before = (8, 60) if context.short else (CELLS, BEFORE)
    with tempfile.TemporaryDirectory() as folder, one_blas_thread():
        pyramid = Path(folder) / "pyramid.obj"
        pyramid.write_text(PYRAMID, encoding="utf-8")
        raw = crumpling(cells, pyramid)
        raw["contact"]["friction"] = 0.0
        built = add.scene_from_dict(raw).build()
        del raw["bodies"]["pyramid"], raw["contact"]
        raw["bodies"]["cloth"]["contact"] = {"self": False}
        alone = add.scene_from_dict(raw).build()
        (term,), (inertia,) = built.model.term(MeshContact), built.model.term(Inertia)
        surface, state = term.surface, built.simulation.run(n_steps=before).state(before)
        start, n = surface.places(state.q[0], built.theta), alone.model.system.n // 3
        half = np.where(term.thickness >= 0, built.theta[term.thickness], 0.0)[surface.body]
        forces, still = np.zeros_like(state.q[0]), np.zeros_like(state.q[0])
        inertia.residual(Kinematics(still, still, still + 1.0, 0.0, 0), built.theta, forces)
        mass = forces[: 3 * n : 3]
        lonely = replace(state, q=state.q[:, : 3 * n], v=state.v[:, : 3 * n], carry=NO_CARRY)
        freely, ours = Slopes.of(alone, lonely, start), Slopes.of(built, state, start)
        with clock() as solved:
            found = zone(surface, half, start, freely.x, mass)
        root = np.sqrt(np.repeat(mass, 3))
        with clock() as differentiated:
            basis = np.linalg.qr(found.rows[found.active].T)[0]
            slope = (root * freely.slope - basis @ (basis.T @ (root * freely.slope))) / root
        holding, size = found.rows[found.active], root.size + int(found.active.sum())
        with clock() as whole:
            matrix = np.eye(size)
            matrix[root.size :, : root.size], matrix[: root.size, root.size :] = holding, holding.T
            matrix[root.size :, root.size :] = 0.0
            by_matrix = np.linalg.solve(matrix, np.r_[root * freely.slope, np.zeros(len(holding))])[: root.size] / root
        moved = [least(found.rows, found.bounds - sign * STEP * found.rows @ (root * freely.slope))[0] / root
                 for sign in (1.0, -1.0)]  # fmt: skip
        checked = freely.slope + (moved[0] - moved[1]) / (2.0 * STEP)
    free = surface.body == 0
    apart = np.linalg.norm((found.x - ours.x)[free], axis=1)
    pushed = np.linalg.norm((found.x - freely.x)[free], axis=1)
    gaps = [float(rows_of(surface, half, x)[0].min()) for x in (freely.x, found.x, ours.x)]
    error = float(np.abs(slope - checked).max() / np.abs(slope).max())
    heights = [float(one.reshape(-1, 3)[:, 2].mean()) for one in (freely.slope, slope, ours.slope)]
    rows = (
        Row(f"{n} nodes, {len(found.rows)} pairs within two skins: rows that hold, by the active set",
            str(int(found.active.sum()))),
        Row("moved by contact, mean, largest [mm]; zones and ours apart, mean, largest [mm]",
            f"{1e3 * pushed.mean():.3f}, {1e3 * pushed.max():.3f}; {1e3 * apart.mean():.3f}, {1e3 * apart.max():.3f}"),
        Row("least distance beyond the skins [mm]: without contact, by zones, ours",
            ", ".join(f"{1e3 * gap:.3f}" for gap in gaps)),
        Row("derivative of the step by gravity through QR against differences of the zones", f"{error:.0e}"),
        Row("mean height by gravity [m/(m/s^2)]: without contact, by zones, ours",
            ", ".join(f"{height:.3g}" for height in heights)),
        Row("seconds of the zones, of QR and its product [ms]",
            f"{1e3 * solved.seconds:.0f}, {1e3 * differentiated.seconds:.2f}"),
        Row(f"without QR, by the whole matrix of its conditions, {size} rows [ms]; over QR; derivatives apart",
            f"{1e3 * whole.seconds:.1f}; {whole.seconds / differentiated.seconds:.0f}; "
            f"{np.abs(by_matrix - slope).max() / np.abs(slope).max():.0e}", "cloth8.whole"),
    )  # fmt: skip
    values = {
        "error": error,
        "whole": float(np.abs(by_matrix - slope).max() / np.abs(slope).max()),
        "heights": heights,
        "gaps": gaps,
        "apart": float(apart.max()),
        "pushed": float(pushed.max()),
    }
    return Outcome(rows, {}, NOTES, values)


NOTES = (
    "An impact zone takes the step without contact and moves its nodes, as little as masses allow, until all pairs are "
    "a skin apart; elasticity knows nothing of it. Rows are linear in places about those of the last round, with "
    "nearest points held; the quadratic problem is that of least distance, solved by an active set. Its derivative "
    "projects out the rows that hold: I - Q Q^T in the measure of masses, Q R their transpose. Ours is the same step "
    "with the forces of contact in it: skins give way, and the cloth hands on what it is pushed with. "
    "Zones restore whole skins in a step, whatever speed that takes. No friction in either.",
)

ENTRY = Entry(
    "cloth8",
    "Cloth: one step by impact zones",
    "The method of Liang, Lin, Koltun (NeurIPS 2019) on one step of the cloth that crumples in a pyramid, in plain "
    "NumPy, beside ours: where nodes end, and how they follow gravity.",
    run,
)
