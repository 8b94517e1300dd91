"""Lines that cross, edges of boxes, axes of capsules and cylinders, rims: places, gaps and all derivatives."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from add.contact import BodyContact
from add.equations.kinematics import Kinematics, Weights
from add.hard_contact.geometry import contact_term
from add.kernels.contact_arrays import HALF, SLOT
from add.kernels.contact_circles import CROSSES, OVER, TURNS, WHICH, nearest_angles
from add.kernels.contact_detection import frames_of
from add.kernels.contact_lines import GAP, ROWS, WEIGHT, cross
from add.kernels.contact_pairs import BITS, FEATURE, PAIR, STICKS
from add.kernels.contact_places import ROLLS, point_place
from add.kernels.distance import SIDE
from add.scene import scene_from_dict
from add.testing import check_constraint, check_deciding_term, check_term
from add.typing import FloatArray

LENGTH = 1.0
LONG: dict[str, dict[str, Any]] = {
    "box": {"shape": "box", "size": [LENGTH, 0.12, 0.16], "adjustable": True},
    "cylinder": {"shape": "cylinder", "radius": 0.06, "half_length": 0.5 * LENGTH, "adjustable": True},
    "capsule": {"shape": "capsule", "radius": 0.07, "half_length": 0.44, "adjustable": True},
}
#: Turns that lay a shape's length along x.
LYING = {"box": Rotation.identity()} | dict.fromkeys(("cylinder", "capsule"), Rotation.from_rotvec([0, np.pi / 2, 0]))
PAIRS = [(upper, lower) for upper in LONG for lower in LONG]


def contact_of(upper: str, lower: str, host: str, law: str = "tanh") -> tuple[BodyContact, FloatArray]:
    """Return the term of two long bodies, the lower one of the world or not, and its numbers."""
    bodies = {"upper": {"type": "rigid", "geometry": LONG[upper], "density": 500, "position": [0, 0, 1]}}
    more: dict[str, Any] = {}
    if host == "world":
        turn = LYING[lower].as_quat(scalar_first=True).tolist()
        still = {key: value for key, value in LONG[lower].items() if key != "adjustable"}
        if lower == "box":
            still["half_size"] = [0.5 * size for size in still.pop("size")]
        more = {"obstacles": {"lower": still | {"center": [0, 0, 0], "orientation": turn}}}
    else:
        bodies["lower"] = {"type": "rigid", "geometry": LONG[lower], "density": 300, "position": [0, 0, 0]}
    contact = {"friction": 0.5, "friction_law": law, "stiffness": 4e3, "damping": 20.0}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "contact": contact, "bodies": bodies, **more}
    built = scene_from_dict(raw).build()
    term, _ = contact_term(built.model.system)
    assert term is not None
    return term, built.theta


def laid(rng: np.random.Generator, upper: str, lower: str, host: str) -> Kinematics:
    """Lay one on the other across, a little tilted, anywhere along both, at some depth."""
    q = []
    for name, crosses in ((upper, rng.uniform(0.1, 3.0)), (lower, 0.0)):
        turns = [rng.normal(0.0, 0.15, 3), [0, 0, crosses], [rng.uniform(-0.8, 0.8), 0, 0]]
        attitude = Rotation.from_rotvec(turns[0]) * Rotation.from_rotvec(turns[1]) * Rotation.from_rotvec(turns[2])
        q += [*rng.uniform(-0.3, 0.3, 2), rng.uniform(0.08, 0.15), *(attitude * LYING[name]).as_rotvec()]
    n = 6 if host == "world" else 12
    q[6:9] = [0.0, 0.0, 0.0]
    return Kinematics(np.array(q[:n]), rng.normal(0.0, 0.3, n), np.zeros(n), 0.0, 3)


def weights(contact: BodyContact, kin: Kinematics, theta: FloatArray) -> FloatArray:
    """Return of the crossings of a state (k, 3): weight, distance to the line's end in depths, the largest n . a."""
    arrays, motion = contact.at(theta).arrays, contact.motion(kin, theta)
    frames, x, L, n = frames_of(0, motion, arrays), np.empty((1, 3)), np.zeros((ROWS, 3)), np.empty(3)
    out = []
    for row in contact.decide(kin, theta):
        if row[FEATURE] & CROSSES:
            i, o = divmod(row[PAIR], contact.n_shapes)
            point_place(i, kin.q, arrays, frames.B, x, L)
            before = x[0].copy()
            assert cross(i, o, row[FEATURE], arrays, frames, x, L, n) == L[GAP, 0] < arrays.arms[i, 3]
            rim = arrays.rims[arrays.points[i, 3]]
            along = np.linalg.norm(x[0] - before)
            both, turn = arrays.arms[i, 5:8], frames.B[arrays.points[i, 2], :3]
            faces = [0.5 * (both + sign * np.cross(rim[3:6], both)) for sign in (1.0, -1.0)]
            leans = max(n @ turn @ face for face in faces)
            out.append((L[WEIGHT, 1] / arrays.arms[i, 4], (rim[HALF] - along) / (arrays.arms[i, 3] - L[GAP, 0]), leans))
    return np.array(out).reshape(-1, 3)


def crossings(upper: str, lower: str, host: str, which: str, law: str = "tanh") -> Any:
    """Return a term, its numbers and a state with a crossing that fades, or where all count in full."""
    contact, theta = contact_of(upper, lower, host, law)
    rng = np.random.default_rng(PAIRS.index((upper, lower)))
    for _ in range(3000):
        kin = laid(rng, upper, lower, host)
        weight, ends, leans = weights(contact, kin, theta).T
        fades = (weight < 0.9) & (weight > 0.01)
        rolls = (np.asarray(contact.decide(kin, theta))[:, FEATURE] & ROLLS != 0).any()  # no force of a potential
        chosen = {
            "full": (weight == 1.0).all() and not rolls,
            "fades": fades.any(),
            "ends": (fades & (ends < 0.98)).any(),
        }
        chosen["leans"] = (fades & (leans > OVER - TURNS) & (leans < OVER)).any()
        if weight.size and chosen[which]:
            return contact, theta, kin
    raise AssertionError("no such crossing")


def test_all_places_of_an_ellipse_nearest_to_a_point_are_found() -> None:
    """Slim ones, circles, points on their axes, within their evolutes: beside the least of 20 000 places."""
    rng, angles, seen = np.random.default_rng(0), np.linspace(0.0, 2.0 * np.pi, 20000, endpoint=False), set()
    for k in range(220):
        y, e, f = rng.normal(size=(3, 2)) * [[rng.choice([0.01, 0.3, 1.5])], [1.0], [rng.choice([1.0, 0.03, 1e-3])]]
        f = np.array([-e[1], e[0]]) if k % 5 == 0 else f + (e * rng.normal() if k % 5 == 1 else 0.0)
        if k >= 200:  # seen along its plane, straight or turned: a line of no width
            e = np.array([rng.choice([1.0, -2.0]), 0.0]) if k % 2 else e
            f = e * (rng.normal() if k % 4 > 1 else 0.0)
        n, found = nearest_angles(*y, *e, *f)
        squares = ((y[:, None] + np.outer(e, np.cos(angles)) + np.outer(f, np.sin(angles))) ** 2).sum(axis=0)
        least = np.flatnonzero((squares < np.roll(squares, 1)) & (squares <= np.roll(squares, -1)))
        assert n == len(least), k
        apart = np.abs(np.exp(1j * angles[least]) - np.exp(1j * np.array(found[:n]))[:, None])
        assert apart.min(axis=0).max() < 1e-3
        seen.add(n)
    assert seen == {1, 2}


#: What a rim crosses: edges, the cores of round sides, and other rims.
CROSSED: dict[str, dict[str, Any]] = {
    "box": {"shape": "box", "size": [1.0, 0.5, 0.4]},
    "capsule": {"shape": "capsule", "radius": 0.1, "half_length": 0.5},
    "cylinder": {"shape": "cylinder", "radius": 0.12, "half_length": 0.6},
    "tin": {"shape": "cylinder", "radius": 0.35, "half_length": 0.2},
}


def rim_over(which: str, lower: str, law: str = "tanh") -> tuple[BodyContact, FloatArray, Kinematics, FloatArray]:
    """Return a term, its numbers, a state where a rim crosses a line, in full or fading, and its places (k, 3)."""
    shapes = ({"shape": "cylinder", "radius": 0.3, "half_length": 0.2}, CROSSED[lower])
    bodies = {
        name: {"type": "rigid", "geometry": shape | {"adjustable": True}, "density": 400, "position": [0, 0, k]}
        for k, (name, shape) in enumerate(zip("cb", shapes, strict=True))
    }
    contact = {"friction": 0.5, "friction_law": law, "stiffness": 4e3, "damping": 20.0}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "contact": contact, "bodies": bodies}
    built = scene_from_dict(raw).build()
    term, _ = contact_term(built.model.system)
    assert term is not None
    rng, arrays, theta = np.random.default_rng(len(which)), term.at(built.theta).arrays, built.theta
    x, L, n = np.empty((1, 3)), np.zeros((ROWS, 3)), np.empty(3)
    for _ in range(20000):
        turns = Rotation.random(random_state=rng).as_rotvec(), rng.normal(0.0, 0.3, 3)
        q = np.concatenate([rng.uniform([-0.7, -0.5, -0.45], [0.7, 0.5, 0.45]), turns[0], np.zeros(3), turns[1]])
        kin, found = Kinematics(q, rng.normal(0.0, 0.3, 12), np.zeros(12), 0.0, 3), []
        rows = np.asarray(term.decide(kin, theta))
        rims = arrays.points[rows[:, PAIR] // term.n_shapes, 3]
        frames = frames_of(0, term.motion(kin, theta), arrays)
        chosen = (rows[:, FEATURE] & CROSSES != 0) & (np.abs(arrays.rims[rims, SLOT]) > 1.0)
        if lower == "tin":
            chosen &= (rows[:, FEATURE] & WHICH) // 2 != SIDE
        for row in rows[chosen]:
            i, o = divmod(row[PAIR], term.n_shapes)
            point_place(i, kin.q, arrays, frames.B, x, L)
            if -0.05 < cross(i, o, row[FEATURE], arrays, frames, x, L, n) < -0.005:
                found.append((L[WEIGHT, 1] / arrays.arms[i, 4], *x[0]))
        shares = np.array(found).reshape(-1, 4)
        fades = (shares[:, 0] > 0.01) & (shares[:, 0] < 0.9)
        # Where a rim fades over what is round, its points roll over it, or ends touch.
        alone = len(shares) == len(rows) > 0 or (which == "fades" and len(shares) and lower != "box")
        if alone and {"full": (shares[:, 0] == 1.0).all(), "fades": fades.any()}[which]:
            return term, theta, kin, shares[:, 1:]
    raise AssertionError("no such crossing")


@pytest.mark.parametrize("lower", CROSSED)
@pytest.mark.parametrize("which", ["full", "fades"])
def test_derivatives_of_rims(which: str, lower: str) -> None:
    contact, theta, kin, _ = rim_over(which, lower)
    _, found = check_deciding_term(
        contact, kin, theta, rng=np.random.default_rng(1), scales={"q": 0.0005, "v": 0.05}, rtol=1e-6
    )
    rows = np.asarray(contact.decide(kin, theta))
    rows[:, BITS] |= STICKS
    held = contact.stick_constraint(rows[rows[:, FEATURE] & CROSSES != 0])
    reactions = np.random.default_rng(2).normal(size=held.evaluate(kin, theta).rows.size)
    check_constraint(held, kin, reactions, theta, rng=np.random.default_rng(1), scales={"q": 0.0005}, rtol=1e-6)
    radius, half_length = contact.growth.points[0, :2]
    assert {radius, half_length} <= set(found.parameters)
    assert len(set(contact.growth.shapes[1]) & set(found.parameters)) >= (2 if lower in ("box", "tin") else 1)


@pytest.mark.parametrize("lower", CROSSED)
def test_rims_touch_where_the_circle_is_nearest_to_the_line(lower: str) -> None:
    """Of circle and line as many points, the two that are nearest; and the energy is the potential of the force."""
    contact, theta, kin, places = rim_over("full", lower, law="none")
    angles, ways = np.linspace(0.0, 2.0 * np.pi, 4001), np.linspace(-1.0, 1.0, 2001)
    turns = [Rotation.from_rotvec(kin.q[k : k + 3]) for k in (3, 9)]
    rims = [np.stack([0.3 * np.cos(angles), 0.3 * np.sin(angles), 0 * angles + z], 1) for z in (-0.2, 0.2)]
    edges = [
        np.roll([[s, a, b] for s in ways], k, axis=1) * [0.5, 0.25, 0.2]
        for k in range(3)
        for a in (-1, 1)
        for b in (-1, 1)
    ]
    if lower in ("capsule", "cylinder"):
        edges = [np.array([[0.0, 0.0, s * CROSSED[lower]["half_length"]] for s in ways])]
    if lower == "tin":
        edges = [np.stack([0.35 * np.cos(angles), 0.35 * np.sin(angles), 0 * angles + z], 1) for z in (-0.2, 0.2)]
    for place in places:
        rim = min(
            (turns[0].apply(rim) + kin.q[:3] for rim in rims), key=lambda rim: np.linalg.norm(rim - place, axis=1).min()
        )
        trees = [cKDTree(turns[1].apply(edge) + kin.q[6:9]) for edge in edges]
        near = np.linalg.norm(rim - place, axis=1) < 0.03  # a circle has several nearest places
        gaps = [(tree.query(rim[near])[0].min(), tree) for tree in trees]
        gap, tree = min(gaps, key=lambda one: one[0])
        assert np.linalg.norm(rim[near][tree.query(rim[near])[0].argmin()] - place) < 2e-3
        assert tree.query(place)[0] == pytest.approx(gap, abs=1e-4)
    theta = np.where(np.isin(np.arange(theta.size), np.unique(contact.pairs.k_d)), 0.0, theta)
    branch = contact.on_branch(contact.decide(kin, theta))
    check_term(branch, kin, theta, rng=np.random.default_rng(2), energy=True, scales={"q": 0.0005}, rtol=1e-7)


CASES = [("body", "full"), ("body", "fades"), ("body", "ends"), ("world", "ends")]


@pytest.mark.parametrize(
    ("upper", "lower", "host", "which"),
    [(*pair, *case) for pair in PAIRS for case in CASES] + [("box", "box", "body", "leans")],
)
def test_derivatives(upper: str, lower: str, host: str, which: str) -> None:
    contact, theta, kin = crossings(upper, lower, host, which)
    _, found = check_deciding_term(
        contact, kin, theta, rng=np.random.default_rng(1), scales={"q": 0.002, "v": 0.05}, rtol=1e-6
    )
    sizes = {i for block in (contact.growth.points, contact.growth.shapes) for i in block.ravel() if i >= 0}
    assert found.q > 0.0
    assert sizes & set(found.parameters)


@pytest.mark.parametrize(("upper", "lower"), PAIRS)
def test_kept_crossings_of_parallel_lines_weigh_nothing(upper: str, lower: str) -> None:
    contact, theta, kin = crossings(upper, lower, "body", "full")
    decision = contact.decide(kin, theta)
    branch, q = contact.on_branch(decision[decision[:, FEATURE] & CROSSES != 0]), kin.q.copy()
    q[3:6], q[9:12] = LYING[upper].as_rotvec(), LYING[lower].as_rotvec()
    q[6:9] = q[:3] - [0.01, 0.02, 0.1]
    parallel, lam, found = replace(kin, q=q), np.ones(12), [np.zeros(12), np.zeros(theta.size)]
    branch.residual(parallel, theta, found[0])
    branch.parameter_vjp(parallel, theta, lam, found[1])
    entries = branch.pattern()[0].size
    for w in (Weights(1.0, 0.0, 0.0), Weights(0.0, 1.0, 0.0)):
        found.append(np.zeros(entries))
        branch.jacobian(parallel, theta, w, found[-1], np.arange(entries))
    assert entries and all((values == 0.0).all() for values in found)


@pytest.mark.parametrize(("upper", "lower"), PAIRS)
def test_energy_is_the_potential_of_crossings_in_full(upper: str, lower: str) -> None:
    contact, theta, kin = crossings(upper, lower, "body", "full", law="none")
    theta = np.where(np.isin(np.arange(theta.size), np.unique(contact.pairs.k_d)), 0.0, theta)
    branch = contact.on_branch(contact.decide(kin, theta))
    check_term(branch, kin, theta, rng=np.random.default_rng(2), energy=True, scales={"q": 0.002}, rtol=1e-7)
    assert contact.energy(kin, theta) > 0.0


@pytest.mark.parametrize(("upper", "lower"), PAIRS)
def test_both_bodies_feel_the_same(upper: str, lower: str) -> None:
    """Whichever body's line it is: forces and torques about the origin add up to nothing."""
    contact, theta, kin = crossings(upper, lower, "body", "fades")
    decision = contact.decide(kin, theta)
    found = contact.places(kin, theta, decision)
    out = np.zeros(12)
    contact.decided_residual(kin, theta, out)
    np.testing.assert_allclose(out[:3] + out[6:9], 0.0, atol=1e-12 * np.abs(found.force).max())
    moved = contact.decide(replace(kin, q=kin.q + np.tile([0.3, -0.2, 0.7, 0, 0, 0], 2)), theta)
    assert np.array_equal(moved, decision)
