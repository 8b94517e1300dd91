"""Contact of meshes against differences: every region, bit and carrier, each proven to be the one that was meant."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.static_part import static_part

from add.contact import CONSTANT_FRICTION, FrictionCurve, FrictionLaw, NormalFormula, NormalLaw
from add.contact.meshes import MeshContact, MeshContactBranch
from add.contact.surfaces import ContactSurface, SurfacePart, one_side
from add.equations.kinematics import Kinematics
from add.equations.layout import ParameterLayout
from add.equations.sites import NO_INDICES
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, CLIPPED, FEATURE, QUADRATIC, RAMPING, SLIP
from add.kernels.mesh_arrays import EDGE_EDGE, MOLLIFIED, VERTEX_EDGE, VERTEX_FACE, VERTEX_VERTEX, unnumbered
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.stencil import EDGE_END, EDGES, END_EDGE, ENDS, FACE, FACE_EDGE, FACE_VERTEX
from add.scene.spec.friction import CURVES
from add.testing import check_deciding_term

NO_FACES, NO_EDGES = np.zeros((0, 3), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
TRIANGLE, EDGE = np.array([[0, 1, 2]]), np.array([[0, 1]])
LAYOUT = ParameterLayout(
    [(key, (), "-") for key in ("k_n", "k_d", "k_t", "c_f", "onset", "ramp", "h_a", "h_b")]
    + [("centre_a", (3,), "m"), ("centre_b", (3,), "m"), ("first", (), "-"), ("second", (), "m/s")]
)
GAP = 0.05  # between the primitives; skins of 0.06 and 0.05 overlap by 0.06
LAWS = {
    "none": (FrictionLaw.NONE, 0.4),
    "stick": (FrictionLaw.LINEAR, 1e6),
    "slip": (FrictionLaw.LINEAR, 0.001),
    "tanh": (FrictionLaw.TANH, 0.4),
}
# Corners of a triangle in the plane z = 0, and where a vertex above it is nearest in each region.
CORNERS = np.array([[0.0, 0, 0], [1.0, 0, 0], [0.2, 0.8, 0]])
ABOVE = {
    FACE: [0.4, 0.3, GAP],
    FACE_EDGE: [0.4, -0.03, 0.04],
    FACE_EDGE + 1: [0.62, 0.42, 0.04],
    FACE_EDGE + 2: [0.07, 0.44, 0.04],
    FACE_VERTEX: [-0.02, -0.03, 0.03],
    FACE_VERTEX + 1: [1.03, -0.01, 0.03],
    FACE_VERTEX + 2: [0.19, 0.83, 0.03],
}
# Ends of an edge above the edge from (-1, 0, 0) to (1, 0, 0).
OVER = {
    EDGES: [[-0.2, -0.5, GAP], [0.1, 0.7, 0.06]],
    END_EDGE: [[0.1, 0.03, 0.04], [0.2, 0.7, 0.2]],
    END_EDGE + 1: [[0.2, 0.7, 0.2], [0.1, 0.03, 0.04]],
    EDGE_END: [[-1.03, -0.4, 0.02], [-1.02, 0.5, 0.05]],
    EDGE_END + 1: [[1.03, -0.4, 0.02], [1.02, 0.5, 0.05]],
    ENDS: [[-1.03, 0.01, 0.04], [-1.8, 0.4, 0.1]],
    ENDS + 1: [[1.03, 0.01, 0.04], [1.8, 0.4, 0.1]],
    ENDS + 2: [[-1.8, 0.4, 0.1], [-1.03, 0.01, 0.04]],
    ENDS + 3: [[1.8, 0.4, 0.1], [1.03, 0.01, 0.04]],
}
# Nearly parallel, in the same regions.
ALONG = {
    EDGES: [[-0.7, -0.01, GAP], [0.6, 0.012, GAP]],
    END_EDGE: [[0.1, 0.03, 0.04], [1.3, 0.05, 0.05]],
    END_EDGE + 1: [[-1.3, 0.05, 0.05], [0.1, 0.03, 0.04]],
    EDGE_END: [[-1.4, 0.03, 0.045], [0.1, 0.04, 0.05]],
    EDGE_END + 1: [[-0.1, 0.04, 0.05], [1.4, 0.03, 0.045]],
    ENDS: [[-1.04, 0.01, 0.03], [-2.2, 0.02, 0.04]],
    ENDS + 1: [[1.04, 0.01, 0.03], [2.2, 0.02, 0.04]],
    ENDS + 2: [[-2.2, 0.02, 0.04], [-1.04, 0.01, 0.03]],
    ENDS + 3: [[2.2, 0.02, 0.04], [1.04, 0.01, 0.03]],
}
ROUND = ("round-nodes", "round-rigid", "round-static", "nodes-round", "rigid-round")
CARRIERS = ("nodes-nodes", "rigid-nodes", "nodes-rigid", "rigid-rigid", "nodes-static", "static-rigid")


def primitives(vertices: bool, region: int, parallel: bool) -> tuple[list, list]:
    """Return (places, faces, edges) of both."""
    if vertices:
        return [np.array([ABOVE[region]]), NO_FACES, NO_EDGES], [CORNERS, TRIANGLE, NO_EDGES]
    ends = np.array((ALONG if parallel else OVER)[region])
    return [ends, NO_FACES, EDGE], [np.array([[-1.0, 0, 0], [1, 0, 0]]), NO_FACES, EDGE]


def contact_between(carriers: str, one: list, two: list, rng: np.random.Generator) -> tuple[ContactSurface, np.ndarray]:
    """Return the surface of both primitives, turned somewhere, and the coordinates at which they stand there."""
    turn, shift = rotation_matrix(rng.normal(size=3)), rng.normal(size=3)
    parts, q = [], []
    for k, (kind, (places, faces, edges)) in enumerate(zip(carriers.split("-"), (one, two), strict=True)):
        x = places @ turn.T + shift
        start = sum(len(part) for part in q)
        centre = np.array([8, 9, 10]) + 3 * k
        if kind == "static":
            parts.append(static_part(x, faces, 0, 0.0, edges))
        elif kind == "nodes":
            parts.append(SurfacePart(places, faces, edges, start, np.arange(len(x)), NO_INDICES, 0, 0.0))
            q.append(x.ravel())
        else:
            w, at = rng.normal(size=3), rng.normal(size=3)
            own = (x - at) @ rotation_matrix(w)
            parts.append(SurfacePart(own, faces, edges, start, None, centre, 0, 0.0, round=kind == "round"))
            q.append(np.concatenate([at, w]))
    surface = ContactSurface.of(parts)
    # A vertex alone has no area.
    return replace(surface, vertex_areas=np.full(surface.n_points, 0.7)), np.concatenate(q)


def numbers(rng: np.random.Generator, friction: str, onset: float, ramp: float) -> np.ndarray:
    """Theta: centres of mass at zero keep the places."""
    theta = np.zeros(LAYOUT.n)
    theta[:8] = 2e4, 30.0, 40.0, LAWS[friction][1], onset, ramp, 0.06, 0.05
    theta[14:] = 1.5 * LAWS[friction][1], 0.3
    return theta


def kind_of(row: np.ndarray, surface: ContactSurface) -> int:
    """Return the kind of a row's pair."""
    return int(unnumbered(row[0], surface.n_points, surface.n_edges, surface.n_faces)[0])


def pair(
    vertices: bool,
    region: int,
    carriers: str,
    friction: str,
    *,
    parallel: bool = False,
    onset: float = 0.2,
    ramp: float = 0.2,
    clip: bool = False,
    total: bool = False,
    adhesive_damping: bool = False,
    normal: NormalLaw | NormalFormula = NormalLaw.PENALTY,
    skin: float = 1.0,
    curve: FrictionCurve = CONSTANT_FRICTION,
) -> Callable[[np.random.Generator], None]:
    """One pair in exactly the branch that is asked for, which is asserted."""

    def check(rng: np.random.Generator) -> None:
        surface, q = contact_between(carriers, *primitives(vertices, region, parallel), rng)
        law, _ = LAWS[friction]
        # The indices of theta of static bodies' centres are not read.
        table = np.array([[[*range(6), 14, 15] if curve.numbers else range(6)]])
        contact = MeshContact(
            surface, table, np.array([6, 7]), law, total, adhesive_damping, normal_law=normal, curve=curve
        )
        theta = numbers(rng, friction, onset, ramp)
        theta[6:8] *= skin
        v = 0.2 * rng.normal(size=q.size)
        kin = Kinematics(q, v, rng.normal(size=q.size), 0.3, 4)
        if clip or adhesive_damping:
            # Away from each other: against the elastic force, and faster than damping allows.
            push = -contact.forces(replace(kin, v=np.zeros_like(v)), theta)
            kin = replace(kin, v=v - 400.0 * push / np.linalg.norm(push))
        decision, found = check_deciding_term(
            contact, kin, theta, rng=rng, layout=LAYOUT, scales={"q": 0.02, "v": 0.3}, nearby=1e-8
        )
        # Nearly parallel edges have rows beside for their ends.
        rows = [row for row in decision if vertices or (row[FEATURE] > 0 and kind_of(row, surface) == EDGE_EDGE)]
        assert len(rows) == 1
        kind = kind_of(rows[0], surface)
        if vertices:
            kinds = {FACE: VERTEX_FACE} | {FACE_EDGE + k: VERTEX_EDGE for k in range(3)}
            assert kind == kinds.get(region, VERTEX_VERTEX)
            assert rows[0][FEATURE] & 15 == {VERTEX_FACE: FACE, VERTEX_EDGE: FACE_EDGE}.get(kind, FACE_VERTEX)
        else:
            assert kind == EDGE_EDGE and rows[0][FEATURE] & 15 == region
            assert bool(rows[0][BITS] & MOLLIFIED) == parallel
        bits = ACTIVE | (QUADRATIC if onset > 0.1 else 0) | (RAMPING if ramp > 0.1 else 0) | (CLIPPED if clip else 0)
        bits |= SLIP if friction == "slip" or (clip and total and friction == "stick") else 0
        # Skins that touch at 0.132 m have a wall from 0.066 m on, thinner ones from 0.033 m on.
        bits |= BEYOND if normal is NormalLaw.PENALTY_WALL and skin > 1.0 else 0
        bits &= ~QUADRATIC if normal is NormalLaw.LOG_BARRIER or normal is BARRIER else ~0
        bits &= ~RAMPING if normal is BARRIER else ~0
        assert rows[0][BITS] & ~MOLLIFIED == bits
        names = {LAYOUT.describe(i) for i in found.parameters}
        if not (clip or adhesive_damping):  # so fast, tanh sticks no more
            assert {"k_n", "k_d", "h_a", "h_b"} <= names
            assert ("onset" in names) == (normal in (NormalLaw.PENALTY, NormalLaw.PENALTY_WALL))
            assert ("ramp" in names) == (bits & RAMPING != 0)
            assert ("k_t" in names) == (friction in ("stick", "tanh"))
            assert ("c_f" in names) == (friction in ("slip", "tanh"))
            assert ({"first", "second"} <= names) == (bool(curve.numbers) and friction in ("slip", "tanh"))
            for side, kind in zip("ab", carriers.split("-"), strict=True):
                assert any(name.startswith(f"centre_{side}") for name in names) == (kind in ("rigid", "round"))
        assert found.q > 0.0 or (clip and (total or friction == "none"))

    return check


CASES: dict[str, Callable[[np.random.Generator], None]] = {}
for _k, _region in enumerate([*ABOVE, *OVER]):
    for _j, _friction in enumerate(LAWS):
        _vertices = _region in ABOVE
        _carriers = CARRIERS[(_k + _j) % len(CARRIERS)]
        CASES[f"{_region}-{_friction}-{_carriers}"] = pair(_vertices, _region, _carriers, _friction, total=_k % 2 == 0)
        if not _vertices:
            _other = CARRIERS[(_k + _j + 3) % len(CARRIERS)]
            CASES[f"{_region}-{_friction}-{_other}-parallel"] = pair(False, _region, _other, _friction, parallel=True)
        if (_k + _j) % 2:
            continue
        # Balls are vertices of the first side, capsules edges of either.
        _round = ROUND[(_k + _j) % (3 if _vertices else 5)]
        CASES[f"{_region}-{_friction}-{_round}"] = pair(_vertices, _region, _round, _friction, total=_k % 2 == 1)
        if not _vertices:
            _other = ROUND[(_k + _j + 2) % 5]
            CASES[f"{_region}-{_friction}-{_other}-parallel"] = pair(False, _region, _other, _friction, parallel=True)
#: A barrier by formula, its damping, too.
BARRIER = NormalFormula("-d**2*log(1 - d/r)", "d/r")
for _friction in LAWS:
    for _carriers in CARRIERS:
        for _name, _vertices, _region, _parallel in (
            ("f", True, 0, False),
            ("e", False, 7, False),
            ("m", False, 7, True),
        ):
            CASES[f"past-{_name}-{_friction}-{_carriers}"] = pair(
                _vertices, _region, _carriers, _friction, parallel=_parallel, onset=0.01, ramp=0.01, total=True
            )
    for _name, _vertices, _region, _carriers in (("f", True, 0, "rigid-nodes"), ("m", False, 7, "nodes-rigid")):
        for _curve in CURVES:
            CASES[f"{_curve.numbers[0].name}-{_name}-{_friction}"] = pair(
                _vertices, _region, _carriers, _friction, parallel=not _vertices, total=_vertices, curve=_curve
            )
        CASES[f"formula-{_name}-{_friction}"] = pair(
            _vertices, _region, _carriers, _friction, parallel=not _vertices, total=_vertices, normal=BARRIER
        )
    for _total in (False, True):
        CASES[f"clip-{_friction}-{_total}"] = pair(True, 0, "nodes-rigid", _friction, clip=True, total=_total)
        CASES[f"clip-{_friction}-{_total}-round"] = pair(True, 0, "round-rigid", _friction, clip=True, total=_total)
    CASES[f"pull-{_friction}-round"] = pair(True, 1, "round-nodes", _friction, adhesive_damping=True)
    CASES[f"pull-{_friction}"] = pair(False, 7, "rigid-nodes", _friction, adhesive_damping=True)

#: Laws with a barrier: all regions, one carrier each, and the mollifier.
_LAYERED = ((NormalLaw.PENALTY_WALL, 1.2), (NormalLaw.PENALTY_WALL, 0.6), (NormalLaw.LOG_BARRIER, 1.0))
for _k, _region in enumerate([*ABOVE, *OVER]):
    for _j, (_normal, _skin) in enumerate(_LAYERED):
        _vertices, _friction = _region in ABOVE, list(LAWS)[(_k + _j) % 4]
        _layer = {"normal": _normal, "skin": _skin, "total": _k % 3 == 0}
        _carriers = (CARRIERS if _k % 3 else ROUND[:3])[(_k + _j) % (6 if _k % 3 else 3)]
        CASES[f"{_normal.name}-{_skin}-{_region}-{_carriers}"] = pair(
            _vertices, _region, _carriers, _friction, onset=0.2, **_layer
        )
        if not _vertices:
            _other = CARRIERS[(_k + _j + 3) % 6]
            CASES[f"{_normal.name}-{_skin}-{_region}-{_other}-parallel"] = pair(
                False, _region, _other, _friction, parallel=True, onset=0.2 if _k % 2 else 1e-3, **_layer
            )


@pytest.mark.parametrize("case", CASES)
def test_pair(case: str) -> None:
    CASES[case](np.random.default_rng(sum(case.encode())))


@pytest.mark.parametrize("sided", [False, True])
def test_two_bodies_with_many_pairs(sided: bool) -> None:
    """Two boxes, a rigid one and one of nodes, that overlap with corners, edges and faces."""
    assert MeshContactBranch.depends == "qv"
    rng = np.random.default_rng(3)
    cube = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))], dtype=float)
    faces = np.array(
        [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4], [1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6],
         [3, 0, 4], [3, 4, 7]]
    )  # fmt: skip
    parts = [
        SurfacePart(cube, faces, NO_EDGES, 0, None, np.array([8, 9, 10]), 0, 0.0),
        SurfacePart(cube, faces, NO_EDGES, 6, np.arange(8), NO_INDICES, 0, 0.0),
    ]
    surface = ContactSurface.of(parts)
    tables, sides = np.arange(6).reshape(1, 1, 6), one_side(surface) if sided else None
    contact = MeshContact(surface, tables, np.array([6, 7]), FrictionLaw.TANH, sides=sides)
    q = np.concatenate([[0.0, 0.0, -1.04], [0.02, -0.03, 0.2], (cube + 0.01 * rng.normal(size=(8, 3))).ravel()])
    kin = Kinematics(q, 0.1 * rng.normal(size=q.size), np.zeros(q.size), 0.0, 1)
    decision, found = check_deciding_term(
        contact, kin, numbers(rng, "tanh", 0.1, 0.1), rng=rng, layout=LAYOUT, scales={"q": 0.02, "v": 0.3},
        nearby=1e-9, rtol=2e-6,
    )  # fmt: skip
    assert len(decision) > 10 and {int(row[FEATURE]) & 15 for row in decision} >= {FACE, EDGES}
    assert {LAYOUT.describe(i) for i in found.parameters} >= {"k_n", "k_d", "k_t", "c_f", "onset", "ramp", "h_a", "h_b"}


@pytest.mark.parametrize("region", [*ABOVE, *OVER])
def test_momentum(region: int) -> None:
    """Forces add up to zero, and without friction torques do; friction leaves the couple of its two sides."""
    rng = np.random.default_rng(region)
    surface, q = contact_between("nodes-nodes", *primitives(region in ABOVE, region, False), rng)
    v = rng.normal(size=q.size)
    kin = Kinematics(q, v, np.zeros_like(q), 0.0, 1)
    for friction in LAWS:
        contact = MeshContact(surface, np.arange(6).reshape(1, 1, 6), np.array([6, 7]), LAWS[friction][0])
        force = contact.forces(kin, numbers(rng, friction, 0.01, 0.01)).reshape(-1, 3)
        size = np.abs(force).sum()
        assert size > 100.0 and np.abs(force.sum(axis=0)).max() < 1e-14 * size
        torque = np.linalg.norm(np.cross(q.reshape(-1, 3), force).sum(axis=0))
        if friction == "none":
            assert torque < 1e-13 * size
        else:  # d n x f_t, at most the gap times the force on one side
            assert 1e-6 * size < torque < 0.5 * 0.07 * size


def wrench(surface: ContactSurface, kin: Kinematics, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the forces and of the torques that generalised forces are."""
    places, force, torque = surface.places(kin.q, np.zeros(LAYOUT.n)), np.zeros(3), np.zeros(3)
    for body in range(2):
        of = np.flatnonzero(surface.body == body)
        start = surface.carrier[of[0]]
        if surface.rigid[of[0]]:
            (x, w), (f, generalised) = (a[start : start + 6].reshape(2, 3) for a in (kin.q, r))
            # J^T tau, J the left Jacobian of the rotation vector
            own = np.linalg.solve(left_jacobian(w).T, generalised)
            force, torque = force + f, torque + np.cross(x, f) + own
        else:
            f = r[start : start + 3 * len(of)].reshape(-1, 3)
            force, torque = force + f.sum(axis=0), torque + np.cross(places[of], f).sum(axis=0)
    return force, torque


MOVING = tuple(c for c in (*CARRIERS, *ROUND) if "static" not in c)


@pytest.mark.parametrize(
    ("region", "carriers", "parallel"),
    [(k, c, p) for p in (False, True) for k in (OVER if p else [*ABOVE, *OVER]) for c in MOVING
     if k in OVER or not c.endswith("round")],
)  # fmt: skip
def test_momentum_and_angular_momentum(region: int, carriers: str, parallel: bool) -> None:
    """Forces and torques of all rows add up to zero; with friction only where both forces act at one place."""
    rng = np.random.default_rng(region)
    surface, q = contact_between(carriers, *primitives(region in ABOVE, region, parallel), rng)
    kin = Kinematics(q, rng.normal(size=q.size), np.zeros_like(q), 0.0, 1)
    for friction in LAWS if "round" in carriers else ["none"]:
        contact = MeshContact(surface, np.arange(6).reshape(1, 1, 6), np.array([6, 7]), LAWS[friction][0])
        theta = numbers(rng, friction, 0.01, 0.01)
        rows, r = contact.decide(kin, theta), contact.forces(kin, theta)
        assert rows[0, BITS] & ACTIVE and bool((rows[:, BITS] & MOLLIFIED).any()) == parallel
        (force, torque), size = wrench(surface, kin, r), np.abs(r).sum()
        assert size > 100.0 and np.abs(force).max() < 1e-13 * size
        assert np.abs(torque).max() < 1e-12 * size
