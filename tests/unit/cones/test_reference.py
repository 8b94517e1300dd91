"""Cone problems and steps of contact against solutions in 80-bit arithmetic by independent solvers."""

import json

import numpy as np
import pytest
from support.places import SPECS

from add.cones import Cones, ContactStep, DenseMetric, QCQPLayer, QPLayer, certify, solve
from add.kernels.cones import natural_map

FOLDER = SPECS / "hard-contact" / "reference"
CASES = sorted(f"{kind}/{path.stem}" for kind in ("qp", "qcqp", "ncp") for path in (FOLDER / kind).glob("*.json"))
pytestmark = pytest.mark.skipif(not CASES, reason=f"no reference cases at {FOLDER}")

#: Sliding contacts that share a load in more than one way: friction at one of them alone says nothing.
SHARED = ("ncp/cube_slide", "ncp/stack_two", "ncp/face_bounce")
#: A spinning box on four points: the motion itself is open.
OPEN = ("ncp/spin4_solution_a", "ncp/spin4_solution_b")


def read(case: str) -> tuple[dict, np.ndarray, ContactStep]:
    """Return the file, the metric and the step."""
    data = json.loads((FOLDER / f"{case}.json").read_text())
    metric, free = np.array(data["A"]), np.array(data["v_free"])
    if case.startswith("ncp"):
        rows = np.array(data["J"]).reshape(-1, free.size)
        bias, cones = np.zeros(rows.shape[0]), Cones.friction(data["mu"])
        bias[2::3] = data["bias"]
    elif case.startswith("qp"):
        rows, bias = np.array(data["J_n"]), np.array(data["bias"])
        cones = Cones.half_lines(bias.size)
    else:
        rows = np.array(data["J_t"])
        bias, cones = np.zeros(rows.shape[0]), Cones.discs(np.array(data["mu"]) * np.array(data["lam_n"]))
    if "J_b" in data:
        joints = np.array(data["J_b"])
        rows, bias = np.concatenate([rows, joints]), np.append(bias, np.zeros(len(joints)))
        cones += Cones.free(len(joints))
    return data, metric, ContactStep(DenseMetric(metric), free, rows, bias, cones)


def close(found: np.ndarray, expected: list, size: float = 1e-3) -> bool:
    """Whether arrays agree to 1e-6 of the largest entry; zeros of the reference are zeros of this size."""
    expected = np.array(expected)
    return bool(np.abs(found - expected).max() <= 1e-6 * max(np.abs(expected).max(), size))


@pytest.mark.parametrize("case", CASES)
def test_solution(case: str) -> None:
    data, metric, step = read(case)
    solution = step.solve()
    certificate = certify(metric, step, solution.velocity, solution.cone.impulse)
    rounding = 1e-9 if case.endswith("1e6") else 1e-10  # a millionth of its neighbour's mass has a millionth's digits
    assert certificate.worst < rounding and solution.cone.certified
    if case not in OPEN:
        np.testing.assert_allclose(solution.velocity, data["v_plus"], atol=1e-9)
    if data.get("lam_unique"):
        impulse = solution.cone.impulse[: len(data["lam"])]
        np.testing.assert_allclose(impulse, data["lam"], rtol=1e-7, atol=1e-9 * np.abs(data["lam"]).max())


@pytest.mark.parametrize("case", CASES)
def test_certificate_sees_faults(case: str) -> None:
    """The certificate of a solution that is wrong by a thousandth is not small."""
    _, metric, step = read(case)
    solution = step.solve()
    if not np.abs(solution.cone.impulse).max() > 0.0:
        pytest.skip("nothing touches: there is no impulse to falsify")
    wrong = certify(metric, step, solution.velocity, 1.001 * solution.cone.impulse)
    assert wrong.worst > 1e-5


@pytest.mark.parametrize("case", [case for case in CASES if case not in OPEN])
def test_derivatives(case: str) -> None:
    data, metric, step = read(case)
    solution = step.solve()
    bars = [solution.pullback(bar) for bar in np.eye(step.free.size)]
    balance = np.array([bar.balance for bar in bars])
    if case not in SHARED:
        assert close(balance @ metric, data["dv_dvfree"])
        assert solution.cone.sensitivity.derivative_is_unique or not case.startswith("ncp")
    else:
        assert not solution.cone.sensitivity.derivative_is_unique
    assert close(-balance @ (np.array(data["dA"]) @ (solution.velocity - step.free)), data["dv_along_dA"])
    bound = np.array([bar.bound for bar in bars])
    if "dv_dlam_n" in data:
        assert close(bound * np.array(data["lam_n"]), data["dv_dmu"])
        assert close(bound * np.array(data["mu"]), data["dv_dlam_n"])
    elif "dv_dmu" in data:
        found, expected = bound[:, : len(data["mu"])], np.array(data["dv_dmu"])
        if case in SHARED:
            found, expected = found.sum(axis=1), expected.sum(axis=1)
        assert close(found, expected)
    if "dv_dbias" in data and data["kkt_nullity"] == 0:
        rows = np.array([bar.rows for bar in bars])[:, : 3 * len(data["mu"])]
        assert close(-rows[:, 2::3], data["dv_dbias"])


@pytest.mark.parametrize("case", [case for case in CASES if "full" in case or "cond" in case])
def test_layers(case: str) -> None:
    data, metric, step = read(case)
    if "layer" not in data:
        pytest.skip("the file has no derivatives of the layer")
    layer, weight = data["layer"], np.array(data["layer"]["weight"])
    G = step.rows @ np.linalg.solve(metric, step.rows.T)
    g = step.rows @ step.free + step.bias
    if case.startswith("qp"):
        found = dict(zip(("dL_dG", "dL_dg"), QPLayer.of(G, g).pullback(weight), strict=True))
    else:
        bars = QCQPLayer.of(G, g, np.array(data["mu"]), np.array(data["lam_n"])).pullback(weight)
        found = dict(zip(("dL_dG", "dL_dg", "dL_dmu", "dL_dlam_n"), bars, strict=True))
    for name, value in found.items():
        assert close(value, layer[name]), name


def staggered(G: np.ndarray, g: np.ndarray, mu: np.ndarray, most: int) -> tuple[np.ndarray, list[float]]:
    """Return the impulses of k contacts (t_1, t_2, n) and the natural map, scaled, after each sweep.

    Staggered projections (Kaufman et al. 2008), from no friction: the least 1/2 l^T G l + g^T l over l_n >= 0 and over
    |l_t| <= mu l_n in turn. No proof of convergence; the authors stop after 3 to 10 sweeps.
    """
    cones, rows = Cones.friction(mu), np.arange(3 * mu.size)
    normal, tangent = rows[2::3], rows[rows % 3 != 2]
    scale = np.repeat(np.sqrt(3.0 / np.diagonal(G).reshape(-1, 3).sum(axis=1)), 3)
    size, l, history = np.abs(scale * g).max(), np.zeros(rows.size), [np.inf]
    while len(history) <= most and history[-1] > 1e-10:
        for part, other, kind in ((normal, tangent, "normal"), (tangent, normal, "tangent")):
            own = Cones.half_lines(mu.size) if kind == "normal" else Cones.discs(np.maximum(mu * l[normal], 0.0))
            l[part] = solve(G[np.ix_(part, part)], g[part] + G[np.ix_(part, other)] @ l[other], own).impulse
        history.append(float(natural_map(cones.blocks, l / (scale * size), scale * (G @ l + g) / size)))
    return l, history[1:]


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("ncp") and case not in OPEN])
def test_staggered_projections_reach_the_same_motion(case: str) -> None:
    """To 1e-10, in up to 200 sweeps; the published 3 to 10 sweeps do not everywhere."""
    data, metric, step = read(case)
    if "J_b" in data:
        pytest.skip("staggered projections are here for contacts alone")
    G = step.rows @ np.linalg.solve(metric, step.rows.T)
    impulse, history = staggered(G, step.rows @ step.free + step.bias, np.array(data["mu"]), 400)
    assert history[-1] <= 1e-10
    velocity = step.free + np.linalg.solve(metric, step.rows.T @ impulse)
    np.testing.assert_allclose(velocity, data["v_plus"], atol=1e-7)
    if case == "ncp/cube_tip":
        assert history[9] > 1e-6


BOXED = SPECS / "articulated" / "reference" / "contact" / "boxed_lcp.json"


@pytest.mark.skipif(not BOXED.exists(), reason=f"no reference at {BOXED}")
def test_boxed_problems() -> None:
    """The pyramid is the boxed problem: the enumerated motion, where there is only one."""
    for case in json.loads(BOXED.read_text()):
        check_boxed(case)


def check_boxed(case: dict) -> None:
    """Rows of the file: per contact the normal, then 0, 1 or 2 tangents."""
    A, b, per_contact = np.array(case["A"]), np.array(case["b"]), 1 + case["tangents"]
    k = b.size // per_contact
    if case["tangents"] == 0:
        cones, order = Cones.half_lines(k), np.arange(k)
    else:
        # A single tangent is a pyramid whose second tangent cannot move.
        cones = Cones.pyramids(np.broadcast_to(case["mu"], k))
        order = np.full(3 * k, -1)
        for c in range(k):
            order[3 * c : 3 * c + case["tangents"]] = per_contact * c + 1 + np.arange(case["tangents"])
            order[3 * c + 2] = per_contact * c
    kept = order >= 0
    G, g = np.zeros((order.size, order.size)), np.zeros(order.size)
    G[np.ix_(kept, kept)] = A[np.ix_(order[kept], order[kept])]
    g[kept] = b[order[kept]]
    solution = solve(G, g, cones)
    assert solution.certified
    if case["distinct_motions"] == 1:
        found = np.empty(b.size)
        found[order[kept]] = solution.velocity[kept]
        np.testing.assert_allclose(found, case["a"], atol=1e-10 * max(1.0, np.abs(b).max()))
    if case["unique"]:
        bars = np.array([solution.sensitivity.pullback(bar).offset for bar in np.eye(order.size)])
        df_db = np.zeros((b.size, b.size))
        df_db[np.ix_(order[kept], order[kept])] = bars[np.ix_(kept, kept)]
        np.testing.assert_allclose(df_db, case["df_db"], atol=1e-9 * max(1.0, np.abs(case["df_db"]).max()))
