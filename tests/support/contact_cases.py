"""Cases of nodes in contact with obstacles: one body in exactly the branch that is asked for."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from support.decisions import FEATURE_SHIFT, table_of
from support.meshes import feature_of, notched_cube
from support.term_models import deformed, random_theta, rough_box

from add.bodies import SoftBody
from add.contact import CONSTANT_FRICTION, BodyContact, FrictionCurve, FrictionLaw, NormalFormula, NormalLaw
from add.geometry import HEX8, TET4, TET10
from add.geometry.triangle_surface import CollisionMesh
from add.kernels.contact_pairs import ACTIVE, CLIPPED, QUADRATIC, RAMPING, SLIP
from add.kernels.distance import SIDE, TOP
from add.kernels.mesh_distance import mesh_feature
from add.kernels.rotation import rotation_matrix
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE
from add.model import ContactModel, Obstacle, build_model
from add.testing import check_deciding_term

DEPTH = 0.004
CLOSING = 0.3
E = np.array([0.6, -0.8, 0.0])
NOTCHED = CollisionMesh(*notched_cube())
NOTCHED_SIDE = feature_of(NOTCHED, (0, 0, 0), (0, 0, 1))
# place: kind, size (or mesh), feature, a point of the surface there, the normal there
PLACES = {
    "plane": (PLANE, (0.0, 0.0, 0.0), 0, np.zeros(3), np.array([0.0, 0.0, 1.0])),
    "sphere": (SPHERE, (0.7, 0.0, 0.0), 0, 0.7 * np.array([2.0, 3.0, -6.0]) / 7.0, np.array([2.0, 3.0, -6.0]) / 7.0),
    "box": (BOX, (0.5, 0.8, 0.6), 10, np.array([0.1, -0.8, 0.2]), np.array([0.0, -1.0, 0.0])),
    "capsule side": (CAPSULE, (0.4, 0.6, 0.0), SIDE, 0.4 * E + (0.0, 0.0, 0.2), E),
    "capsule cap": (CAPSULE, (0.4, 0.6, 0.0), TOP, np.array([0.8, 1.2, 6.6]) / 7, np.array([2, 3, 6]) / 7),
    "cylinder side": (CYLINDER, (0.5, 0.7, 0.0), SIDE, 0.5 * E + (0.0, 0.0, 0.2), E),
    "cylinder cap": (CYLINDER, (0.5, 0.7, 0.0), TOP, np.array([0.1, 0.15, 0.7]), np.array([0.0, 0.0, 1.0])),
    # A cube of a mesh without an octant, whose hole is met from inside.
    "mesh face": (MESH, NOTCHED, mesh_feature(NOTCHED.row, -0.4, -1.1, 0.3), np.array([-0.4, -1, 0.3]), -np.eye(3)[1]),
    "mesh edge": (MESH, NOTCHED, NOTCHED_SIDE, 0.4 * np.eye(3)[2], np.array([0.96, 0.28, 0.0])),
    "mesh vertex": (MESH, NOTCHED, feature_of(NOTCHED, (0, 0, 0)), np.zeros(3), np.array([6, 3, 2]) / 7),
}
FRICTION = {
    "none": (FrictionLaw.NONE, 0.4),
    "stick": (FrictionLaw.LINEAR, 1e4),
    "slip": (FrictionLaw.LINEAR, 0.01),
    "tanh": (FrictionLaw.TANH, 0.4),
}


def touch(place: str, q: np.ndarray, nodes: np.ndarray, t: float, rng: np.random.Generator) -> tuple[Obstacle, int]:
    """Return a turned, moving obstacle whose surface the lowest of the nodes has passed by DEPTH; and that node."""
    kind, size, _, surface, normal = PLACES[place]
    rotation = rotation_matrix(rng.normal(size=3))
    x = q.reshape(-1, 3)[nodes]
    lowest = int(np.argmin(x @ (rotation @ normal)))
    velocity = 0.1 * rng.normal(size=3)
    position = x[lowest] - rotation @ (surface - DEPTH * normal) - t * velocity
    mesh = size if kind == MESH else None
    size = size.half_extent if kind == MESH else size
    return Obstacle(place, kind, size, rotation, position, velocity, mesh), int(nodes[lowest])


def contact(
    place: str,
    friction: str,
    *,
    onset: float = 0.0,
    ramp: float = 0.0,
    clip: bool = False,
    per_area: bool = False,
    total: bool = False,
    adhesive_damping: bool = False,
    curve: FrictionCurve = CONSTANT_FRICTION,
    normal: NormalLaw | NormalFormula = NormalLaw.PENALTY,
) -> Callable[[np.random.Generator], None]:
    """One body in one obstacle, in exactly the branch that is asked for, which is asserted."""

    def check(rng: np.random.Generator) -> None:
        law, c_f = FRICTION[friction]
        body = SoftBody("one", rough_box(TET4, 1))
        kin = deformed(build_model([body]), rng, noise=0.001)
        obstacle, node = touch(place, kin.q, np.arange(body.mesh.n_nodes), kin.t, rng)
        outwards = obstacle.rotation @ PLACES[place][4]
        kin.v.reshape(-1, 3)[:] += 30.0 * outwards if clip or adhesive_damping else -CLOSING * outwards
        settings = ContactModel(
            law=law, per_area=per_area, onset=onset, ramp=ramp, total_normal=total, adhesive_damping=adhesive_damping,
            curve=curve, normal_law=normal,
        )  # fmt: skip
        model = build_model([body], [obstacle], settings)
        layout = model.system.parameters
        (term,) = model.term(BodyContact)
        theta = random_theta(model, rng)
        layout.view(theta, f"contact.one.{place}.c_f")[...] = c_f
        if per_area:
            for key in ("k_n", "k_d"):
                layout.view(theta, f"contact.one.{place}.{key}")[...] *= 1e3
        point = int(np.flatnonzero(term.carrier == 3 * node)[0])
        decision, found = check_deciding_term(term, kin, theta, rng=rng, layout=layout, scales={"q": 0.02, "v": 0.3})
        code = int(table_of(term, decision)[point, 0])
        assert code >> FEATURE_SHIFT == PLACES[place][2]
        bits = ACTIVE | (SLIP if friction == "slip" else 0) | (CLIPPED if clip else 0)
        bits |= (QUADRATIC if onset > DEPTH and normal.code == 0 else 0) | (RAMPING if ramp > DEPTH else 0)
        if clip and total and friction == "stick":
            bits |= SLIP  # Coulomb's limit is zero
        assert code & ((1 << FEATURE_SHIFT) - 1) == bits
        assert term.describe(decision)["touching"] >= 1
        keys = {layout.describe(i).split(".")[-1] for i in found.parameters}
        expected = set() if clip else {"k_n", "k_d"}
        if friction != "none" and not (clip and total):
            expected |= {"k_t"} if friction == "stick" else {"k_n", "c_f"}
            expected |= {"k_t"} if friction == "tanh" else set()
            expected |= {number.symbol for number in curve.numbers}
        expected |= {"thickness"} if normal.has_layer else set()
        if clip or place in ("mesh edge", "mesh vertex"):
            # Other nodes may touch in other branches, and in a hollow its walls; the point adds what its branch says.
            assert expected <= keys or term.describe(decision)["touching"] > 1
        else:
            assert keys == expected
        assert (found.q > 0.0) or (clip and (total or friction == "none"))

    return check


def many_contacts(law: FrictionLaw, per_area: bool) -> Callable[[np.random.Generator], None]:
    """Two bodies, every kind of obstacle at once, one pair switched off; a point in two obstacles."""

    def check(rng: np.random.Generator) -> None:
        bodies = [SoftBody("one", rough_box(TET10, 1)), SoftBody("two", rough_box(HEX8, 2))]
        plain = build_model(bodies)
        kin = deformed(plain, rng, noise=0.001)
        ranges = [b.first_node(plain.layouts) + np.arange(b.mesh.n_nodes) for b in bodies]
        obstacles = [
            replace(touch(place, kin.q, ranges[k % 2], kin.t, rng)[0], name=f"obstacle {k}")
            for k, place in enumerate(PLACES)
        ]
        off = frozenset({("one", "obstacle 2")})
        settings = ContactModel(law, per_area, onset=0.003, ramp=0.003, total_normal=True, disabled=off)
        model = build_model(bodies, obstacles, settings)
        (term,) = model.term(BodyContact)
        theta = random_theta(model, rng)
        layout = model.system.parameters
        decision, found = check_deciding_term(
            term, kin, theta, rng=rng, layout=layout, scales={"q": 0.02, "v": 0.3}, rtol=1e-5
        )
        touching = table_of(term, decision) & ACTIVE != 0
        assert not touching[term.owner == 0, 2].any()
        assert (touching.sum(axis=0)[[0, 1, 3, 4, 5, 6]] >= 1).all()
        assert (touching.sum(axis=1) >= 2).any()
        names = {layout.describe(i).rsplit(".", 1)[0] for i in found.parameters}
        assert {name.split(".")[1] for name in names} == {"one", "two"}
        assert "contact.one.obstacle 2" not in names

    return check


def no_contact(rng: np.random.Generator) -> None:
    """Far away nothing is decided and nothing added."""
    body = SoftBody("one", rough_box(TET4, 1))
    far = Obstacle("far", SPHERE, (0.1, 0.0, 0.0), np.eye(3), np.full(3, 5.0), np.zeros(3))
    model = build_model([body], [far])
    (term,) = model.term(BodyContact)
    decision, found = check_deciding_term(term, deformed(model, rng), random_theta(model, rng), rng=rng)
    assert not decision.size and found.q == found.v == 0.0 and not found.parameters
