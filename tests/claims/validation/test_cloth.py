"""Cloth and rods against answers from elsewhere: another code, elasticas, buckling columns, Kirchhoff's plate."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.linalg import eigsh, spsolve
from support.places import SPECS
from support.tiers import long_case

import add
from add.equations.kinematics import Kinematics
from add.scene.build.built import BuiltScene
from add.terms import Strained

REFERENCE = SPECS / "deformables/reference"
pytestmark = pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the reference is not there")

D = 1e-3  # bending stiffness of all rods and strips here, EI [N m^2] or D [N m]
PLATE = {"model": "plate", "rigidity": D, "poisson": 0.0}


def built(body: dict, gravity: tuple[float, ...] = (0.0, 0.0, -9.81), **time: object) -> BuiltScene:
    scene = {
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1, "initial": "equilibrium"} | time,
        "gravity": list(gravity), "bodies": {"thin": body},
    }  # fmt: skip
    return add.scene_from_dict(scene).build()


class Cantilever:
    """A rod, or a strip of cloth, of length 1 along x whose first segment is held: it is clamped in its middle."""

    def __init__(self, kind: str, n: int, density: float = 1e-9, force: float = 0.0, bent: bool = False) -> None:
        h = 1.0 / (n - 0.5)
        self.kind, self.n, self.h, self.width = kind, n, h, 2.0 * h
        end = {"min": [(n if kind == "rod" else 0.5 * n) * h - 1e-6, None, None]}
        load = {"loads": [{"where": {"box": end}, "force": [0, 0, -force]}]} if force else {}
        if kind == "rod":
            mesh: dict = {"shape": "line", "length": n * h, "segments": n}
            if bent:  # a start nearer to hanging
                turn = np.minimum(np.arange(n) * h * 3.0, 1.5)
                points = np.cumsum(np.column_stack([np.cos(turn), 0 * turn, -np.sin(turn)]) * h, axis=0)
                mesh = {"points": [[0, 0, 0], *points.tolist()]}
            self.body = {"type": "rod", "mesh": mesh, "density": density, "stretching": 1e6 * D, "bending": D,
                         "pins": [{"where": {"nodes": [0, 1]}}], **load}  # fmt: skip
        else:
            held = {"box": {"max": [(1.01 - 0.5 * n) * h, None, None]}}
            if force:
                load["loads"][0]["force"] = [0, 0, -force * self.width]
            self.body = {
                "type": "cloth", "mesh": {"shape": "rectangle", "size": [n * h, self.width], "cells": [n, 2]},
                "material": {
                    "density": density, "thickness": 1e-3, "membrane": {"young": 1e9 * D, "poisson": 0.0},
                    "bending": PLATE,
                },
                "pins": [{"where": held}], **load,
            }  # fmt: skip

    def line(self, scene: BuiltScene) -> np.ndarray:
        """Return the middle line (n + 1, 3), from the clamp on."""
        x = scene.run(n_steps=1).q[0].reshape(self.n + 1, -1, 3).mean(axis=1)
        return x - x[0] - [0.5 * self.h, 0.0, 0.0]


def stiffness(scene: BuiltScene, q: np.ndarray) -> csr_matrix:
    """Return the exact second derivatives of the energy."""
    still = np.zeros_like(q)
    kin, n, out = Kinematics(q, still, still, 0.0, 0), q.size, csr_matrix((q.size, q.size))
    for term in scene.model.term(Strained):
        (_, values), *_ = term._derivatives(kin, scene.theta, "q")
        out = out + coo_matrix((values, term.pattern()), (n, n)).tocsr()
    return out


@pytest.mark.parametrize("case", ["equilibrium", "wind"])
def test_hanging_cloth(case: str, tmp_path: Path) -> None:
    """An orthotropic sheet that hangs by two corners, and ten steps in wind: nodes of an independent code to 1e-9 m."""
    with np.load(REFERENCE / "hanging_cloth.npz") as table:
        given = {key[2:]: table[key] for key in table if key.startswith("a/")}
    x, free = given["equilibrium"], np.setdiff1d(np.arange(36), given["fixed"])
    near = x.copy()
    near[free] += 1e-3 * np.random.default_rng(0).normal(size=(free.size, 3))
    rest = np.column_stack([given["rest"], np.zeros(36)])
    for name, points in (("rest", rest), ("start", near if case == "equilibrium" else x)):
        lines = [*("v {:.17g} {:.17g} {:.17g}".format(*p) for p in points),
                 *("f {} {} {}".format(*(t + 1)) for t in given["triangles"])]  # fmt: skip
        (tmp_path / f"{name}.obj").write_text("\n".join(lines))
    k11, k12, k22, k33 = given["parameters"].tolist()
    cloth = {
        "type": "cloth", "mesh": {"file": str(tmp_path / "start.obj")}, "rest": {"file": str(tmp_path / "rest.obj")},
        "material": {
            "density": float(given["mass"].sum() / 0.25),
            "membrane": {"model": "orthotropic", "k11": k11, "k12": k12, "k22": k22, "k33": k33},
            "bending": {"stiffness": float(given["k_b"])},
        },
        "pins": [{"where": {"nodes": given["fixed"].tolist()}}],
    }  # fmt: skip
    wind = {"type": "air", "body": "c", "density": 1.0, "coefficient": 2.0, "friction": 0.01, "wind": [2, 1, 0]}
    scene = {
        "schema": "add-scene/1", "bodies": {"c": cloth}, "couplings": {"air": wind} if case == "wind" else {},
        "time": {"dt": 0.01, "steps": 10, "integrator": "bdf1", "newton": {"atol": 1e-12, "rtol": 0},
                 "initial": "given" if case == "wind" else "equilibrium"},
    }  # fmt: skip
    run = add.scene_from_dict(scene).build()
    if case == "equilibrium":
        q = run.run(n_steps=1).q[0]
        assert np.abs(q.reshape(-1, 3) - x).max() < 1e-9
        dofs = (3 * free[:, None] + np.arange(3)).ravel()
        lowest = np.linalg.eigvalsh(stiffness(run, q)[dofs][:, dofs].toarray())[:3]
        assert lowest == pytest.approx(given["lowest_eigenvalues"], rel=1e-6)
    else:
        assert np.abs(run.run().q.reshape(11, 36, 3) - given["wind_trajectory"]).max() < 1e-9


@pytest.mark.parametrize(("kind", "gammas"), [("rod", (0.1, 0.5, 1, 3, 5, 8, 20, 80)), ("strip", (1, 20)),
                                              long_case("strip", (0.1, 0.5, 3, 5, 8, 80))])  # fmt: skip
def test_cantilever_under_its_weight(kind: str, gammas: tuple[float, ...]) -> None:
    """Tips to 0.3 % of the length with 40 segments, of order two, from nearly straight to hanging."""
    table = np.loadtxt(REFERENCE / "heavy_elastica.csv", delimiter=",", skiprows=1)
    for gamma, x, drop, *_ in table[np.isin(table[:, 0], gammas)]:
        errors = []
        for n in (20, 40):
            beam = Cantilever(kind, n, density=gamma * D / 9.81, bent=gamma > 10)
            end = beam.line(built(beam.body))[-1]
            errors.append(np.hypot(end[0] - x, end[2] + drop))
        assert errors[1] < 3e-3
        assert errors[0] > 3.5 * errors[1]


@pytest.mark.parametrize(("kind", "forces"), [("rod", ("0.5", "1", "2", "3", "4")), ("strip", ("4",)),
                                              long_case("strip", ("0.5", "1", "2", "3"))])  # fmt: skip
def test_end_shear(kind: str, forces: tuple[str, ...]) -> None:
    """Shortening and deflection of an inextensible strip under a force at its end."""
    table = json.loads((REFERENCE / "analytic.json").read_text())
    of_force = table["strip with end shear, inextensible: PL^2/EI -> [shortening/L, deflection/L]"]
    for force in forces:
        shortening, deflection = of_force[force]
        beam = Cantilever(kind, 40, force=float(force) * D)
        end = beam.line(built(beam.body, (0.0, 0.0, 0.0)))[-1]
        assert 1.0 - end[0] == pytest.approx(shortening, abs=5e-4)
        assert -end[2] == pytest.approx(deflection, abs=5e-4)


@pytest.mark.parametrize("kind", ["rod", "strip"])
def test_column_under_its_weight(kind: str) -> None:
    """It buckles at q L^3/EI = 7.83735 (Greenhill), where the least stiffness across is zero."""

    def least(gamma: float) -> float:
        beam = Cantilever(kind, 20, density=gamma * D / 9.81)
        scene = built(beam.body, (-9.81, 0.0, 0.0))
        q = scene.run(n_steps=1).q[0]
        held = q[::3] < q[::3].min() + 1.05 * beam.h
        across = np.flatnonzero(~held) * 3 + 2
        return float(np.linalg.eigvalsh(stiffness(scene, q)[across][:, across].toarray())[0])

    assert brentq(least, 7.0, 8.5, xtol=1e-4) == pytest.approx(7.83735, rel=3e-3)


def square(n: int, diagonals: str, bending: dict) -> tuple[np.ndarray, csr_matrix, np.ndarray]:
    """Return nodes, stiffness across and lumped areas of a flat square of side 1."""
    cloth = {
        "type": "cloth", "mesh": {"shape": "rectangle", "size": [1, 1], "cells": [n, n], "diagonals": diagonals},
        "material": {"density": 1.0, "thickness": 1e-3, "membrane": {"young": 1e5, "poisson": 0.3}, "bending": bending},
    }  # fmt: skip
    scene = built(cloth, initial="given")
    body = scene.model.body("thin")
    across = stiffness(scene, body.rest.ravel())[2::3][:, 2::3]
    return body.rest, across.tocsc(), body.mass_shares()


def deflection(n: int, diagonals: str, bending: dict, held: float = 0.5) -> float:
    """Return w D/(q a^4) under uniform load q of a plate whose nodes from ``held`` on do not move."""
    x, across, areas = square(n, diagonals, bending)
    free = np.flatnonzero((np.abs(x[:, :2]) < held - 1e-9).all(axis=1))
    return float(spsolve(across[free][:, free], areas[free]).max())


@pytest.mark.parametrize("diagonals", ["one", "alternating", "irregular"])
def test_plate(diagonals: str) -> None:
    """A simply supported square of order two on every mesh; frequencies of three modes."""
    plate = {"model": "plate", "rigidity": 1.0, "poisson": 0.3}
    errors = [deflection(n, diagonals, plate) / 0.00406235 - 1.0 for n in (8, 16)]
    assert abs(errors[1]) < 0.008
    assert abs(errors[0]) > 3.0 * abs(errors[1])
    x, across, areas = square(16, diagonals, plate)
    free = np.flatnonzero((np.abs(x[:, :2]) < 0.5 - 1e-9).all(axis=1))
    values = eigsh(across[free][:, free], k=4, M=diags(areas[free]).tocsc(), sigma=0, which="LM")[0]
    assert np.sqrt(values[[0, 1, 3]]) == pytest.approx([19.739, 49.348, 78.957], rel=0.03)


def test_clamped_plate() -> None:
    """Clamped by a further row of nodes, in the middle of the cells before it: of order two, too."""
    plate = {"model": "plate", "rigidity": 1.0, "poisson": 0.3}
    found = [deflection(n, "alternating", plate, 0.5 - 1.0 / n) / (1.0 - 1.0 / n) ** 4 for n in (8, 16)]
    errors = [value / 0.00126532 - 1.0 for value in found]
    assert abs(errors[1]) < 0.01
    assert abs(errors[0]) > 3.0 * abs(errors[1])


@pytest.mark.parametrize(("diagonals", "limit"), [("one", 0.556), long_case("alternating", 0.744),
                                                  long_case("irregular", 0.77)])  # fmt: skip
def test_hinges_are_no_plate(diagonals: str, limit: float) -> None:
    """With D = 3 k_b hinges end at another deflection, by mesh, however fine it is."""
    hinge = {"model": "hinge", "stiffness": 1.0 / 3.0}
    found = [deflection(n, diagonals, hinge) / 0.00406235 for n in (16, 32)]
    assert found[1] == pytest.approx(limit, rel=0.02)
    assert found[0] == pytest.approx(found[1], rel=0.02)
