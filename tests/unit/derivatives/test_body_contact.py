"""Contact between bodies: every branch against differences, for every kind of carrier, shape and attitude."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from support.body_scene import NODES, check_crowd, crowd
from support.decisions import FEATURE_SHIFT, table_of
from support.meshes import feature_of, notched_cube

from add.contact import BodyContact, FrictionLaw, NormalLaw, PairParameters
from add.equations.kinematics import Kinematics
from add.geometry.triangle_surface import CollisionMesh
from add.kernels.contact_pairs import ACTIVE, BEYOND, CLIPPED, QUADRATIC, RAMPING, SLIP
from add.kernels.distance import FLUSH, RIM_TOP, SIDE, TOP, fall_radius
from add.kernels.mesh_distance import mesh_feature
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE
from add.testing import check_deciding_term, check_term

DEPTH = 0.05
E = np.array([0.6, -0.8, 0.0])
Z = np.array([0.0, 0.0, 1.0])
NOTCHED = CollisionMesh(*notched_cube())
# place: (kind, size, feature, a point of the surface there, the normal there). Edges, corners and rims need spheres.
PLACES = {
    "plane": (PLANE, (0.0, 0.0, 0.0), 0, (0.3, -0.2, 0.0), Z),
    "sphere": (SPHERE, (0.7, 0.0, 0.0), 0, (0.2, 0.3, -0.6), (2 / 7, 3 / 7, -6 / 7)),
    "box": (BOX, (0.5, 0.8, 0.6), 10, (0.1, -0.8, 0.2), (0.0, -1.0, 0.0)),
    "capsule side": (CAPSULE, (0.4, 0.6, 0.0), SIDE, 0.4 * E + 0.2 * Z, E),
    "capsule cap": (CAPSULE, (0.4, 0.6, 0.0), TOP, (0.8 / 7, 1.2 / 7, 0.6 + 2.4 / 7), (2 / 7, 3 / 7, 6 / 7)),
    "cylinder side": (CYLINDER, (0.5, 0.7, 0.0), SIDE, 0.5 * E + 0.2 * Z, E),
    "cylinder cap": (CYLINDER, (0.5, 0.7, 0.0), TOP, (0.1, 0.15, 0.7), Z),
    "box edge": (BOX, (0.5, 0.8, 0.6), 25, (0.5, 0.8, 0.2), (0.6, 0.8, 0.0)),
    "box corner": (BOX, (0.5, 0.8, 0.6), 26, (0.5, 0.8, 0.6), (2 / 7, 3 / 7, 6 / 7)),
    "cylinder rim": (CYLINDER, (0.5, 0.7, 0.0), RIM_TOP, 0.5 * E + 0.7 * Z, 0.8 * E + 0.6 * Z),
    # Of a cube without an octant; the hole's edges and its corner, met from inside, are in `test_terms.py`.
    "mesh face": (MESH, NOTCHED.row, mesh_feature(NOTCHED.row, -0.4, -1.1, 0.3), (-0.4, -1.0, 0.3), (0.0, -1.0, 0.0)),
    "mesh edge": (MESH, NOTCHED.row, feature_of(NOTCHED, (-1, -1, -1), (-1, -1, 0)), (-1, -1, -0.4), (-0.6, -0.8, 0.0)),
    "mesh corner": (MESH, NOTCHED.row, feature_of(NOTCHED, (-1, -1, -1)), (-1, -1, -1), (-2 / 7, -3 / 7, -6 / 7)),
}
INSIDE = [place for place in PLACES if place.split()[-1] not in ("edge", "corner", "rim")]
OUT = 1.0 + FLUSH
#: Corners beyond edges to faces that are in line: shape, feature, the middle of the fall and the way out of it in units
#: of its radius, the sum of the normals that meet in the corner, in the shape's frame. The middle is from a corner that
#: is `FLUSH` further out.
BESIDE = {
    "box beside": ("box edge", 27 + 54 + 23, (OUT * 0.5, 0.2, 0.6), (0, 0, -1), (0.28, 0.0, 0.96), (1, 1, -1)),
    "box beside two": (
        "box edge",
        27 + 27 + 2,
        (-OUT * 0.5, -0.8, OUT * 0.6),
        (0, 1, 0),
        (-0.28, -0.9, 0.334),
        (-1, 1, 1),
    ),
    "cap beside": ("cylinder rim", 27 + 27 + TOP, OUT * 0.5 * E + 0.7 * Z, -Z, 0.28 * E + 0.96 * Z, E - Z),
    "side beside": ("cylinder rim", 27 + TOP, 0.5 * E + OUT * 0.7 * Z, -E, 0.96 * E + 0.28 * Z, Z - E),
}
#: Halvings of the radius that the size of the body asks for.
LEVEL = 1
for _name, (_place, _feature, _edge, _inwards, _normal, _) in BESIDE.items():
    _kind, _size, *_ = PLACES[_place]
    _normal = np.array(_normal) / np.linalg.norm(_normal)
    _fall = 0.5**LEVEL * fall_radius(_kind, np.array(_size))
    PLACES[_name] = (_kind, _size, _feature + 81 * LEVEL, _edge + _fall * (_inwards + _normal), _normal)
ANGLES = {"zero": 0.0, "small": 0.4, "large": 3.6}
#: k_n, k_d, k_t, c_f, X_c of the first body (points), X_c of the second (shapes)
THETA = np.array([400.0, 6.0, 3.0, 0.3, 0.03, -0.02, 0.05, -0.04, 0.06, 0.02])


THICKNESS = 0.1


def pair_parameters(n_groups=1, n_shapes=1, onset=0.0, ramp=0.0, layered=False):
    shape = (n_groups, n_shapes)
    indices = (np.full(shape, k, dtype=np.int64) for k in range(4))
    layers = np.full(shape, THETA.size, dtype=np.int64) if layered else None
    return PairParameters(*indices, np.full(shape, onset), np.full(shape, ramp), np.ones(shape, dtype=bool), layers)


@dataclass
class Case:
    """One point at DEPTH under the surface of one shape, sliding; on a body or a node, against a body or the world.

    Coordinates: the first body or node from 0, the second body (if any) behind it.
    """

    place: str = "plane"
    point: str = "body"  # body, node
    host: str = "body"  # body, world
    angle: str = "small"
    radius: float = 0.0
    law: FrictionLaw = FrictionLaw.TANH
    total: bool = False
    adhesive_damping: bool = False
    onset: float = 0.0
    ramp: float = 0.0
    approach: float = -0.2  # normal velocity
    k_t: float = 3.0
    seed: int = 0
    normal_law: NormalLaw = NormalLaw.PENALTY
    gap: float = 0.0  # of laws with a layer, in thicknesses of 0.1 m
    theta: np.ndarray = field(init=False)
    kin: Kinematics = field(init=False)
    contact: BodyContact = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        kind, size, feature, surface, normal = PLACES[self.place]
        self.expected = ACTIVE | feature << FEATURE_SHIFT
        layered = self.normal_law is not NormalLaw.PENALTY
        theta = np.append(THETA, THICKNESS) if layered else THETA.copy()
        theta[2] = self.k_t
        m_a = 6 if self.point == "body" else 3
        n = m_a + (6 if self.host == "body" else 0)
        q, v = np.zeros(n), np.zeros(n)

        def axis():
            u = rng.normal(size=3)
            return u / np.linalg.norm(u)

        # The shape's frame in its carrier, the carrier in the world.
        rotation, position, velocity = rotation_matrix(rng.normal(size=3)), 0.3 * rng.normal(size=3), np.zeros(3)
        X_a, X_b = theta[4:7], theta[7:10]
        t = 0.37
        if self.host == "body":
            w = ANGLES[self.angle] * axis()
            q[m_a:], v[m_a:] = [*rng.normal(size=3), *w], rng.normal(size=6)
            R_b, omega_b = rotation_matrix(w), left_jacobian(w) @ v[m_a + 3 :]
            R = R_b @ rotation
            p = q[m_a : m_a + 3] + R_b @ (position - X_b)
            x_b, v_b = q[m_a : m_a + 3], v[m_a : m_a + 3]
        else:
            velocity = rng.normal(size=3)
            R, p = rotation, position + t * velocity
            x_b, v_b, omega_b = p, velocity, np.zeros(3)
        n_world = R @ np.array(normal)
        away = self.gap * THICKNESS if layered else -DEPTH
        c = R @ np.array(surface) + p + (self.radius + away) * n_world
        slide = np.cross(n_world, axis())
        wanted = self.approach * n_world + 0.3 * slide / np.linalg.norm(slide)
        arm = np.array([0.2, -0.15, 0.3])
        if self.point == "body":
            w = ANGLES[self.angle] * axis()
            w_dot = rng.normal(size=3)
            rho, omega = rotation_matrix(w) @ (arm - X_a), left_jacobian(w) @ w_dot
            q[:6], v[3:6] = [*(c - rho), *w], w_dot
        else:
            rho, omega = np.zeros(3), np.zeros(3)
            q[:3] = c
        material = v_b + np.cross(omega_b, c - x_b)
        if self.point == "body":
            material += self.radius * np.cross(omega - omega_b, n_world)
        v[:3] = wanted + material - np.cross(omega, rho)
        self.theta, self.n_world, self.v_rel = theta, n_world, wanted
        self.kin = Kinematics(q, v, rng.normal(size=n), t, 3)
        self.contact = BodyContact(
            carrier=np.zeros(1, dtype=np.int64),
            rigid=np.array([self.point == "body"]),
            arm=arm[None],
            radius=np.array([self.radius]),
            scale=np.array([1.7]),
            group=np.zeros(1, dtype=np.int64),
            centre=np.arange(4, 7)[None],
            kind=np.array([kind]),
            size=np.array([size]),
            shape_carrier=np.array([m_a if self.host == "body" else -1]),
            rotation=rotation[None],
            position=position[None],
            velocity=velocity[None],
            shape_centre=np.arange(7, 10)[None],
            shape_group=np.zeros(1, dtype=np.int64),
            owner=np.zeros(1, dtype=np.int64),
            shape_owner=np.ones(1, dtype=np.int64),
            pairs=pair_parameters(onset=self.onset, ramp=self.ramp, layered=layered),
            corners=self._corner(R),
            law=self.law,
            total_normal=self.total,
            adhesive_damping=self.adhesive_damping,
            normal_law=self.normal_law,
        )

    def _corner(self, R):
        """Normals of the faces that meet in the point, in its body's frame, and a size that asks for one halving."""
        if self.place not in BESIDE:
            return np.zeros((1, 4))
        kind, size = PLACES[self.place][:2]
        normals = rotation_matrix(self.kin.q[3:6]).T @ R @ np.array(BESIDE[self.place][-1])
        return np.append(normals, 0.6 * fall_radius(kind, np.array(size)))[None]

    def check(self, expected=0, parameters=None):
        """Check all derivatives; assert the branch, and that everything that should matter does."""
        decision, found = check_deciding_term(
            self.contact, self.kin, self.theta, rng=np.random.default_rng(1), scales={"q": 0.05, "v": 0.05},
            rtol=1e-7, parameters=parameters,
        )  # fmt: skip
        assert table_of(self.contact, decision)[0, 0] == self.expected | expected
        assert found.q > 0.0
        return found


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("host", ["body", "world"])
@pytest.mark.parametrize("point", ["body", "node"])
@pytest.mark.parametrize("place", INSIDE)
def test_points_on_shapes(place, point, host, angle):
    found = Case(place, point, host, angle).check()
    centres = {4, 5, 6} if point == "body" else set()
    centres |= {7, 8, 9} if host == "body" else set()
    assert {0, 1, 2, 3} | centres >= set(found.parameters) >= {0, 1, 2, 3}
    assert centres <= set(found.parameters)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("host", ["body", "world"])
@pytest.mark.parametrize("point", ["body", "node"])
@pytest.mark.parametrize("place", [place for place in PLACES if place not in BESIDE])
def test_spheres_on_shapes(place, point, host, angle):
    Case(place, point, host, angle, radius=0.25).check()


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("host", ["body", "world"])
@pytest.mark.parametrize("place", BESIDE)
def test_corners_beside_edges(place, host, angle):
    Case(place, "body", host, angle).check()


LINEAR = FrictionLaw.LINEAR
BRANCHES = {
    "none": ({"law": FrictionLaw.NONE}, 0),
    "stick": ({"law": LINEAR, "k_t": 0.5}, 0),
    "slip": ({"law": LINEAR, "k_t": 200.0}, SLIP),
    "stick, total": ({"law": LINEAR, "k_t": 0.5, "total": True}, 0),
    "slip, total": ({"law": LINEAR, "k_t": 200.0, "total": True}, SLIP),
    "tanh, total": ({"total": True}, 0),
    "onset": ({"onset": 2.0 * DEPTH}, QUADRATIC),
    "past the onset": ({"onset": 0.4 * DEPTH}, 0),
    "ramp": ({"ramp": 2.0 * DEPTH}, RAMPING),
    "onset and ramp, slip, total": (
        {"law": LINEAR, "k_t": 200.0, "onset": 2.0 * DEPTH, "ramp": 3.0 * DEPTH, "total": True},
        QUADRATIC | RAMPING | SLIP,
    ),
    "clipped": ({"approach": 6.0}, CLIPPED),
    "clipped, slip": ({"approach": 6.0, "law": LINEAR, "k_t": 200.0}, CLIPPED | SLIP),
    "clipped, stick": ({"approach": 6.0, "law": LINEAR, "k_t": 0.5}, CLIPPED),
    "pulling": ({"approach": 6.0, "adhesive_damping": True}, 0),
    "pulling, slip": ({"approach": 6.0, "law": LINEAR, "k_t": 200.0, "adhesive_damping": True}, SLIP),
    "pulling, ramp": ({"approach": 12.0, "ramp": 2.0 * DEPTH, "adhesive_damping": True}, RAMPING),
    "clipped, ramp": ({"approach": 12.0, "ramp": 2.0 * DEPTH}, CLIPPED | RAMPING),
}


@pytest.mark.parametrize("radius", [0.0, 0.2])
@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("point", ["body", "node"])
@pytest.mark.parametrize("place", ["box", "capsule cap"])
def test_branches(place, point, branch, radius):
    changes, expected = BRANCHES[branch]
    case = Case(place, point, radius=radius, seed=3, **changes)
    decision = case.contact.decide(case.kin, case.theta)
    case.check(expected)
    if case.adhesive_damping:  # towards the shape
        assert case.contact.places(case.kin, case.theta, decision).force[0] @ case.n_world < 0.0
    counts = case.contact.describe(decision)
    assert counts["touching"] == 1
    if case.law is LINEAR:
        assert counts["slipping"] == bool(expected & SLIP) and counts["sticking"] + counts["slipping"] == 1


WALL, SOFT_MAX, BARRIER = NormalLaw.PENALTY_WALL, NormalLaw.SOFT_MAX, NormalLaw.LOG_BARRIER
LAYERS = {
    "wall": ({"normal_law": WALL, "gap": 0.3}, BEYOND),
    "wall, slip": ({"normal_law": WALL, "gap": 0.3, "law": LINEAR, "k_t": 500.0}, BEYOND | SLIP),
    "wall, stick, total": ({"normal_law": WALL, "gap": 0.3, "law": LINEAR, "k_t": 0.5, "total": True}, BEYOND),
    "wall, onset and ramp": (
        {"normal_law": WALL, "gap": 0.3, "onset": 0.2, "ramp": 0.3}, BEYOND | QUADRATIC | RAMPING
    ),
    "wall, clipped": ({"normal_law": WALL, "gap": 0.3, "approach": 20.0}, BEYOND | CLIPPED),
    "before the wall": ({"normal_law": WALL, "gap": 0.7}, 0),
    "soft-max": ({"normal_law": SOFT_MAX, "gap": 0.4, "approach": -2.0}, 0),
    "soft-max, inside, total": ({"normal_law": SOFT_MAX, "gap": -0.7, "total": True}, 0),
    "soft-max, slip": ({"normal_law": SOFT_MAX, "gap": 0.4, "law": LINEAR, "k_t": 500.0}, SLIP),
    "log-barrier": ({"normal_law": BARRIER, "gap": 0.4, "ramp": 0.2}, RAMPING),
    "log-barrier, slip, total": (
        {"normal_law": BARRIER, "gap": 0.4, "law": LINEAR, "k_t": 500.0, "total": True}, SLIP
    ),
}  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("place", ["box", "capsule cap", "mesh edge"])
def test_layers(place, layer):
    """Laws with a layer around shapes: all derivatives, with the thickness among the parameters."""
    changes, expected = LAYERS[layer]
    if "inside" in layer and place not in INSIDE:
        return
    for k, (point, host) in enumerate([("body", "body"), ("node", "body"), ("body", "world"), ("node", "world")]):
        case = Case(place, point, host, radius=0.0 if k % 2 else 0.2, seed=k, **changes)
        found = case.check(expected)
        assert THETA.size in found.parameters or "clipped" in layer


@pytest.mark.parametrize("layer", [name for name, (changes, _) in LAYERS.items() if "law" not in changes])
def test_energies_of_layers(layer):
    changes, _ = LAYERS[layer]
    case = Case("box", radius=0.2, **changes | {"law": FrictionLaw.NONE, "approach": -0.1})
    case.theta[1] = 0.0
    branch = case.contact.on_branch(case.contact.decide(case.kin, case.theta))
    check_term(branch, case.kin, case.theta, rng=np.random.default_rng(2), energy=True, scales={"q": 0.005}, rtol=1e-7)
    assert case.contact.energy(case.kin, case.theta) > 0.0


def test_a_law_and_its_layer_belong_together():
    for law, layered in ((WALL, False), (NormalLaw.PENALTY, True)):
        with pytest.raises(ValueError, match="do not go together"):
            replace(Case().contact, pairs=pair_parameters(layered=layered), normal_law=law)


@pytest.mark.parametrize("radius", [0.0, 0.2])
@pytest.mark.parametrize("place", PLACES)
def test_replay_outside(place, radius):
    """A frozen branch stays smooth where the point has left the shape, and takes its force from there."""
    if radius == 0.0 and place not in INSIDE:
        return
    case = Case(place, radius=radius, k_t=200.0, law=LINEAR)
    codes = case.contact.decide(case.kin, case.theta)
    branch = case.contact.on_branch(codes)
    q = case.kin.q.copy()
    q[:3] += (DEPTH + 0.01) * case.n_world
    kin = replace(case.kin, q=q)
    assert not case.contact.decide(kin, case.theta).size
    found = check_term(branch, kin, case.theta, rng=np.random.default_rng(2), scales={"q": 0.02, "v": 0.05}, rtol=1e-7)
    assert found.q > 0.0 and found.v > 0.0


@pytest.mark.parametrize("place", PLACES)
def test_energy_is_the_potential_of_the_elastic_force(place):
    for onset in (0.0, 2.0 * DEPTH):
        case = Case(place, radius=0.2, law=FrictionLaw.NONE, onset=onset)
        case.theta[1] = 0.0
        branch = case.contact.on_branch(case.contact.decide(case.kin, case.theta))
        check_term(
            branch, case.kin, case.theta, rng=np.random.default_rng(2), energy=True, scales={"q": 0.01}, rtol=1e-7
        )
        assert case.contact.energy(case.kin, case.theta) > 0.0


# --- many bodies, nodes and shapes at once ----------------------------------------------------------------------------


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("law", FrictionLaw)
@pytest.mark.parametrize("seed", [0, 1])
def test_crowd(law, total, seed):
    """Bodies both ways, nodes on several bodies, the world, shared parameters: static and dynamic blocks."""
    scene, decision, _ = check_crowd(np.random.default_rng(1), law, total, seed)
    contact = scene.contact
    counts = contact.describe(decision)
    assert counts["touching"] == decision.shape[0]
    if law is LINEAR:
        assert counts["sticking"] and counts["slipping"]


def test_structure_follows_the_nodes_that_touch():
    scene = crowd()
    contact, kin = scene.contact, scene.kin
    decision = contact.decide(kin, scene.theta)
    rows, _ = contact.on_branch(decision).pattern()
    away = kin.q.copy()
    for s in NODES:
        away[s : s + 3] += 100.0
    other = contact.decide(replace(kin, q=away), scene.theta)
    assert contact.structure(decision) != contact.structure(other)
    fewer, _ = contact.on_branch(other).pattern()
    pairs = {
        (i, contact.shape_carrier[o])
        for i, o in np.argwhere(table_of(contact, decision))
        if not contact.rigid[i] and contact.shape_carrier[o] >= 0
    }
    assert rows.size - fewer.size == 81 * len(pairs) > 0


def test_structure_is_constant_for_bodies_alone():
    scene = crowd(nodes=False)
    contact = scene.contact
    decision = contact.decide(scene.kin, scene.theta)
    assert contact.structure(decision) is None is contact.structure(decision[:0])
    rows, _ = contact.on_branch(decision).pattern()
    # Every body with the world (one is disabled against the plane, but not against the box) and with every other.
    assert rows.size == 4 * 36 + 12 * 144


def test_no_body_meets_its_own_shapes():
    scene = crowd()
    contact = scene.contact
    everything = replace(contact, pairs=replace(contact.pairs, enabled=np.ones_like(contact.pairs.enabled)))
    touching = table_of(everything, everything.decide(scene.kin, scene.theta)) != 0
    own = contact.rigid[:, None] & (contact.carrier[:, None] == contact.shape_carrier)
    assert not touching[own].any() and touching[:, contact.shape_carrier >= 0].any()


def test_a_body_has_one_centre_of_mass():
    contact = crowd().contact
    centre = contact.centre.copy()
    centre[-1] = 0
    with pytest.raises(ValueError, match="centres of mass"):
        replace(contact, centre=centre)
