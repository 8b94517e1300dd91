"""Every force family, constraint and given function against differences, at strongly deformed and moving states."""

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from derivatives.test_couplings import COUPLINGS, DECIDING_COUPLINGS
from support.decisions import FEATURE_SHIFT, table_of
from support.meshes import feature_of, notched_cube

import add
from add.bodies import NodalLoad, Pin, PointAnchor, PointMass, SoftBody
from add.contact import BodyContact, FrictionLaw, PenaltyContact, Shapes
from add.contact.meshes import MeshContact, MeshContactBranch
from add.contact.penalty_bodies import BodyContactBranch, StickingBodies
from add.contact.penalty_nodes import NodeContactBranch, StickingNodes
from add.equations.initial import BodyPose, InitialState
from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedConstraint, LiftedDecidingTerm, LiftedPoints, LiftedTerm
from add.equations.points import FrameMap, Frames, LinearPoints, NodePoints, PointMap, WeightedPoints, WorldFrames
from add.equations.prescribed import Motion, PinMotion
from add.equations.signals import BSplineSignal, Constant, Signal, SignalParameter, Sine, Spline, Table
from add.equations.site_points import SitePoints
from add.equations.term import Constraint, DecidingTerm, Term
from add.geometry import FAMILIES, HEX8, TET4, TET10, ElementFamily, SoftMesh, box_mesh, locate, mass_pairs
from add.geometry.collision_mesh import CollisionMesh
from add.kernels.contact_pairs import ACTIVE, CLIPPED, QUADRATIC, RAMPING, SLIP
from add.kernels.distance import BOX, CAPSULE, CYLINDER, MESH, PLANE, SIDE, SPHERE, TOP
from add.kernels.mesh_distance import mesh_feature
from add.kernels.rotation import left_jacobian, rotation_matrix, rotation_vector, skew
from add.materials import MATERIALS, MOONEY_RIVLIN, NEO_HOOKEAN, NEO_HOOKEAN_CIARLET, Material
from add.model import ContactModel, Model, Obstacle, build_model
from add.terms import Elastic, Gravity, Inertia, NodalForce, PointConstraint, RigidInertia, Viscous
from add.testing import check_constraint, check_deciding_term, check_pullback, check_term, taylor_rates

# Layers above the physics: they drive or draw, and define no term.
NO_PHYSICS = ("add.commands", "add.view", "add.plot", "add.commands.console", "add.commands.cli", "add.__main__")


def concrete(base: type) -> set[type]:
    """All concrete subclasses of ``base`` in the package."""
    for module in pkgutil.walk_packages(add.__path__, "add."):
        if not module.name.startswith(NO_PHYSICS):
            importlib.import_module(module.name)
    found, open_ = set(), [base]
    while open_:
        for kind in open_.pop().__subclasses__():
            open_.append(kind)
            if not inspect.isabstract(kind) and kind.__module__.startswith("add."):
                found.add(kind)
    return found


# --- models and states ------------------------------------------------------------------------------------------------


def rough_box(family: ElementFamily, seed: int) -> SoftMesh:
    """A small block with distorted elements."""
    divisions = (2, 1, 1) if family is HEX8 else (1, 1, 1)
    mesh = box_mesh((0.1, 0.08, 0.06), divisions, family)
    shift = 0.004 * np.random.default_rng(seed).normal(size=mesh.points.shape)
    return SoftMesh(mesh.points + shift, mesh.cells, family)


def deformed(model: Model, rng: np.random.Generator, noise: float = 0.003) -> Kinematics:
    """A strongly deformed, fast state: another large stretch and rotation for every body, and noise."""
    q = np.empty(model.system.n)
    for body in model.bodies:
        stretch = np.eye(3) + 0.25 * rng.uniform(-1.0, 1.0, size=(3, 3))
        turn = rotation_matrix(rng.normal(size=3))
        x = body.mesh.points @ (turn @ stretch).T + rng.normal(size=3) * 0.05
        model.system.dofs.view(q, body.name)[...] = x + noise * rng.normal(size=x.shape)
    v, a = rng.normal(size=q.size), 10.0 * rng.normal(size=q.size)
    return Kinematics(q, v, a, 0.0321, 7)


def random_theta(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Every parameter another number, none zero."""
    theta = rng.uniform(0.5, 1.5, size=model.system.parameters.n) * np.sign(rng.normal(size=model.system.parameters.n))
    sizes = {"mu": 1e4, "lambda": 3e4, "density": 300.0, "viscosity": 20.0, "rayleigh_mass": 2.0}
    sizes |= {
        "c10": 4e3,
        "c01": 2e3,
        "kappa": 4e4,
        "rayleigh_stiffness": 0.003,
        "k_n": 1e4,
        "k_d": 30.0,
        "k_t": 50.0,
        "c_f": 0.4,
    }
    for entry in model.system.parameters.entries:
        key = entry.name.split(".")[-1]
        if key in sizes:
            theta[entry.slice] = sizes[key] * np.abs(theta[entry.slice])
    return theta


# --- smooth terms -----------------------------------------------------------------------------------------------------


def material(
    kind: type[Term], family: ElementFamily, law: Material, mean: bool, zero: tuple[str, ...] = ()
) -> Callable[[np.random.Generator], None]:
    """Two bodies in one batch, the second without the first one's mean dilatation."""

    def check(rng: np.random.Generator) -> None:
        bodies = [
            SoftBody("one", rough_box(family, 1), law=law, mean_dilatation=mean),
            SoftBody("two", rough_box(family, 2), law=law, mean_dilatation=not mean),
        ]
        model = build_model(bodies)
        (term,) = model.term(kind)
        assert tuple(term.batch.mean_dilatation) == (mean, not mean)
        theta = random_theta(model, rng)
        keys = {modulus.key for modulus in law.parameters} | (
            {"viscosity", "rayleigh_stiffness"} if kind is Viscous else set()
        )
        for name in zero:
            for body in ("one", "two"):
                model.system.parameters.view(theta, f"bodies.{body}.{name}")[...] = 0.0
        kin = deformed(model, rng)
        found = check_term(
            term, kin, theta, rng=rng, energy=kind is Elastic, layout=model.system.parameters, scales={"q": 0.02}
        )
        assert found.q > 0.0
        assert (found.v > 0.0) == (kind is Viscous)
        names = {model.system.parameters.describe(i) for i in found.parameters}
        if not zero:
            assert names == {f"bodies.{body}.{key}" for body in ("one", "two") for key in keys}

    return check


def shared_material(kind: type[Term]) -> Callable[[np.random.Generator], None]:
    """Two bodies that read the same entries of theta: cotangents add up."""

    def check(rng: np.random.Generator) -> None:
        model = build_model([SoftBody("one", rough_box(TET4, 1)), SoftBody("two", rough_box(TET4, 2))])
        (term,) = model.term(kind)
        moduli = np.broadcast_to(term.batch.moduli[0], term.batch.moduli.shape)
        indices = {"viscosity": term.viscosity, "beta": term.beta} if isinstance(term, Viscous) else {}
        term = replace(term, **{key: np.full_like(index, index[0]) for key, index in indices.items()})
        term = replace(term, batch=replace(term.batch, moduli=moduli))
        found = check_term(term, deformed(model, rng), random_theta(model, rng), rng=rng, scales={"q": 0.02})
        assert len(found.parameters) == 2 + len(indices)

    return check


def attached_model(family: ElementFamily, lumped: bool) -> Model:
    """Bodies with everything that hangs on them: masses, loads, pins, anchors, some of them sharing coefficients."""
    one, two = rough_box(family, 1), rough_box(family, 2)
    inside = [locate(one, np.array(x)) for x in ([0.01, 0.01, 0.0], [0.02, -0.01, 0.01])]
    right = np.flatnonzero(one.points[:, 0] > 0.03)
    shares = np.linspace(1.0, 2.0, right.size)
    table = SignalParameter(Table(np.array([0.0, 0.05, 0.2])), "table")
    first = SoftBody(
        "one",
        one,
        lumped=lumped,
        masses=tuple(PointMass(x.nodes, x.weights, f"mass {k}") for k, x in enumerate(inside)),
        loads=(
            NodalLoad(
                right, shares / shares.sum(), SignalParameter(Spline(np.array([0.0, 0.02, 0.04, 0.2])), "spline")
            ),
            NodalLoad(right[:2], np.array([0.5, 0.5]), table),
        ),
        pins=(Pin(np.array([0, 2]), (0, 2), SignalParameter(Sine(3.0, 0.3), "sine")),),
        anchors=tuple(PointAnchor(x.nodes, x.weights, place) for x, place in zip(inside, (table, table), strict=True)),
    )
    second = SoftBody("two", two, lumped=not lumped, pins=(Pin(np.array([1]), (1,)),))
    return build_model([first, second])


def inertia(family: ElementFamily, lumped: bool) -> Callable[[np.random.Generator], None]:
    def check(rng: np.random.Generator) -> None:
        model = attached_model(family, lumped)
        (term,) = model.term(Inertia)
        theta = random_theta(model, rng)
        found = check_term(term, deformed(model, rng), theta, rng=rng, layout=model.system.parameters)
        assert found.v > 0.0 and found.a > 0.0
        assert len(found.parameters) == 6  # two densities, two dampings, two masses

    return check


def gravity(rng: np.random.Generator) -> None:
    model = attached_model(HEX8, False)
    (term,) = model.term(Gravity)
    found = check_term(term, deformed(model, rng), random_theta(model, rng), rng=rng, energy=True)
    assert len(found.parameters) == 7  # g, two densities, two masses


def load(rng: np.random.Generator) -> None:
    model = attached_model(TET4, False)
    terms = model.term(NodalForce)
    theta = random_theta(model, rng)
    for term in terms:
        for t in (0.0, 0.0123, 0.1, 3.0):
            found = check_term(term, replace(deformed(model, rng), t=t), theta, rng=rng)
            assert found.parameters
    assert len(terms) == 2


def anchor(family: ElementFamily) -> Callable[[np.random.Generator], None]:
    def check(rng: np.random.Generator) -> None:
        model = attached_model(family, False)
        theta = random_theta(model, rng)
        for constraint in model.system.constraints:
            kin = deformed(model, rng)
            mu = rng.normal(size=3)
            found = check_constraint(constraint, kin, mu, theta, rng=rng, layout=model.system.parameters)
            assert found.q > 0.0 and found.multiplier > 0.0 and found.v == 0.0
            assert len(found.parameters) == 6  # two of the three rows of the table are at work
        # Several points in one constraint, with places of their own.
        nodes = np.array([[0, 1, 2], [3, 4, 3]])
        weights = np.array([[0.2, 0.5, 0.3], [0.7, 0.3, 0.0]])
        rows = np.arange(12).reshape(2, 2, 3)
        many = PointConstraint(WeightedPoints(nodes, weights), Sine(2.0, 0.4), rows)
        found = check_constraint(many, kin, rng.normal(size=6), theta, rng=rng)
        assert len(found.parameters) == 12

    return check


# --- contact ----------------------------------------------------------------------------------------------------------

DEPTH = 0.004
CLOSING = 0.3
E = np.array([0.6, -0.8, 0.0])
NOTCHED = CollisionMesh(*notched_cube())
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
    "mesh edge": (
        MESH,
        NOTCHED,
        feature_of(NOTCHED, (0, 0, 0), (0, 0, 1)),
        0.4 * np.eye(3)[2],
        np.array([0.96, 0.28, 0.0]),
    ),
    "mesh vertex": (MESH, NOTCHED, feature_of(NOTCHED, (0, 0, 0)), np.zeros(3), np.array([6, 3, 2]) / 7),
}
FRICTION = {
    "none": (FrictionLaw.NONE, 0.4),
    "stick": (FrictionLaw.LINEAR, 1e4),
    "slip": (FrictionLaw.LINEAR, 0.01),
    "tanh": (FrictionLaw.TANH, 0.4),
}


@dataclass(frozen=True)
class SpinningFrames(FrameMap):
    """Frames that also turn: what obstacles on a given motion give to the kernels."""

    world: WorldFrames
    angular: np.ndarray

    @property
    def n_frames(self) -> int:
        return self.world.n_frames

    @property
    def carried(self) -> bool:
        return False

    def frames(self, kin: Kinematics) -> Frames:
        return replace(self.world.frames(kin), angular=self.angular)

    def pull(self, force, place, index, out) -> None:
        pass


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
    spin: bool = False,
    weighted: bool = False,
    pulls: bool = False,
) -> Callable[[np.random.Generator], None]:
    """One body in one obstacle, in exactly the branch that is asked for, which is asserted."""

    def check(rng: np.random.Generator) -> None:
        law, c_f = FRICTION[friction]
        body = SoftBody("one", rough_box(TET4, 1))
        kin = deformed(build_model([body]), rng, noise=0.001)
        obstacle, node = touch(place, kin.q, np.arange(body.mesh.n_nodes), kin.t, rng)
        normal = obstacle.rotation @ PLACES[place][4]
        kin.v.reshape(-1, 3)[:] += 30.0 * normal if clip or pulls else -CLOSING * normal
        settings = ContactModel(law=law, per_area=per_area, onset=onset, ramp=ramp, total_normal=total, pulls=pulls)
        model = build_model([body], [obstacle], settings)
        layout = model.system.parameters
        (term,) = model.term(PenaltyContact)
        theta = random_theta(model, rng)
        layout.view(theta, f"contact.one.{place}.c_f")[...] = c_f
        if per_area:
            for key in ("k_n", "k_d"):
                layout.view(theta, f"contact.one.{place}.{key}")[...] *= 1e3
        if spin:
            frames = SpinningFrames(term.shapes.frames, 0.5 * rng.normal(size=(1, 3)))
            term = replace(term, shapes=replace(term.shapes, frames=frames))
        point = int(np.flatnonzero(term.points.nodes == node)[0])
        if weighted:
            # Every contact point becomes a mean of nodes, the heaviest being its own.
            others = np.roll(term.points.nodes, 1)
            nodes = np.stack([term.points.nodes, others], axis=1)
            weights = np.tile([0.995, 0.005], (nodes.shape[0], 1))
            term = replace(term, points=WeightedPoints(nodes, weights))
        decision, found = check_deciding_term(term, kin, theta, rng=rng, layout=layout, scales={"q": 0.02, "v": 0.3})
        code = int(table_of(term, decision)[point, 0])
        assert code >> FEATURE_SHIFT == PLACES[place][2]
        bits = ACTIVE | (SLIP if friction == "slip" else 0) | (CLIPPED if clip else 0)
        bits |= (QUADRATIC if onset > DEPTH else 0) | (RAMPING if ramp > DEPTH else 0)
        if clip and total and friction == "stick":
            bits |= SLIP  # Coulomb's limit is zero
        assert code & ((1 << FEATURE_SHIFT) - 1) == bits
        assert term.describe(decision)["touching"] >= 1
        keys = {layout.describe(i).split(".")[-1] for i in found.parameters}
        expected = set() if clip else {"k_n", "k_d"}
        if friction != "none" and not (clip and total):
            expected |= {"k_t"} if friction == "stick" else {"k_n", "c_f"}
            expected |= {"k_t"} if friction == "tanh" else set()
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
        (term,) = model.term(PenaltyContact)
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
    (term,) = model.term(PenaltyContact)
    decision, found = check_deciding_term(term, deformed(model, rng), random_theta(model, rng), rng=rng)
    assert not decision.size and found.q == found.v == 0.0 and not found.parameters


# --- the registry -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What is checked, and the check."""

    kinds: tuple[type, ...]
    check: Callable[[np.random.Generator], None]


def _term_cases() -> dict[str, Case]:
    cases = {}
    for family, law, mean in itertools.product((TET4, TET10, HEX8), MATERIALS, (False, True)):
        name = f"{family.name}-{law.name}-{'mean' if mean else 'local'}"
        cases[f"elastic-{name}"] = Case((Elastic,), material(Elastic, family, law, mean))
        if law in (NEO_HOOKEAN, MOONEY_RIVLIN):
            cases[f"viscous-{name}"] = Case((Viscous,), material(Viscous, family, law, mean))
    for zero in ("viscosity", "rayleigh_stiffness", "lambda"):
        cases[f"viscous-no-{zero}"] = Case((Viscous,), material(Viscous, HEX8, NEO_HOOKEAN, True, (zero,)))
    cases["elastic-no-lambda"] = Case((Elastic,), material(Elastic, TET10, NEO_HOOKEAN_CIARLET, False, ("lambda",)))
    cases["elastic-shared"] = Case((Elastic,), shared_material(Elastic))
    cases["viscous-shared"] = Case((Viscous,), shared_material(Viscous))
    for family, lumped in itertools.product((TET4, TET10, HEX8), (False, True)):
        name = f"{family.name}-{'lumped' if lumped else 'consistent'}"
        cases[f"inertia-{name}"] = Case((Inertia,), inertia(family, lumped))
    cases["gravity"] = Case((Gravity,), gravity)
    cases["load"] = Case((NodalForce,), load)
    for family in (TET4, TET10, HEX8):
        cases[f"anchor-{family.name}"] = Case((PointConstraint,), anchor(family))
    both = (PenaltyContact, NodeContactBranch)
    for place, friction in itertools.product(PLACES, FRICTION):
        cases[f"contact-{place}-{friction}"] = Case(both, contact(place, friction, spin=True, total=True))
        cases[f"contact-{place}-{friction}-onset-ramp"] = Case(
            both, contact(place, friction, onset=0.01, ramp=0.006, total=friction == "tanh", per_area=True)
        )
    for friction, total in itertools.product(FRICTION, (False, True)):
        name = f"{friction}-{'total' if total else 'elastic'}"
        cases[f"contact-clip-{name}"] = Case(both, contact("sphere", friction, clip=True, total=total))
        if not total:
            cases[f"contact-pull-{name}"] = Case(both, contact("sphere", friction, pulls=True))
        cases[f"contact-past-onset-{name}"] = Case(
            both, contact("capsule side", friction, onset=0.002, ramp=0.002, total=total, spin=True)
        )
        cases[f"contact-weighted-{name}"] = Case(
            both, contact("cylinder side", friction, onset=0.002, ramp=0.01, total=total, weighted=True, spin=True)
        )
    for law, per_area in itertools.product(FrictionLaw, (False, True)):
        name = f"{law.name.lower()}-{'area' if per_area else 'node'}"
        cases[f"contact-many-{name}"] = Case(both, many_contacts(law, per_area))
    cases["contact-none"] = Case(both, no_contact)
    return cases


TERM_CASES = _term_cases()
#: Classes whose derivatives have a file of their own: test_rigid, _couplings, _body_contact, _mesh_contact, _held,
#: _lift.
ELSEWHERE = {
    RigidInertia,
    *COUPLINGS,
    *DECIDING_COUPLINGS,
    LiftedConstraint,
    LiftedDecidingTerm,
    LiftedTerm,
    BodyContact,
    BodyContactBranch,
    MeshContact,
    MeshContactBranch,
    StickingBodies,
    StickingNodes,
}


@pytest.mark.parametrize("case", TERM_CASES)
def test_derivatives(case: str, rng: np.random.Generator) -> None:
    TERM_CASES[case].check(rng)


@pytest.mark.parametrize("base", [Term, DecidingTerm, Constraint])
def test_every_class_has_a_case(base: type) -> None:
    """A class without a case above has unchecked derivatives: add one to TERM_CASES."""
    checked = {kind for case in TERM_CASES.values() for kind in case.kinds} | ELSEWHERE
    missing = {f"{kind.__module__}.{kind.__qualname__}" for kind in concrete(base) - checked}
    assert not missing


def test_all_families_are_covered() -> None:
    for family in FAMILIES.values() if isinstance(FAMILIES, dict) else FAMILIES:
        assert any(family.name in case for case in TERM_CASES)


# --- the checks themselves --------------------------------------------------------------------------------------------


class _Spring(Term):
    """r = k (q - a v^2) and c: a term to be spoilt."""

    depends = "qv"
    fault = ""

    def pattern(self):
        index = np.arange(6)
        if self.fault == "pattern":
            index = index[:5]
        return index, index

    def residual(self, kin, theta, out):
        extra = 1e-3 * kin.a if self.fault == "depends" else 0.0
        value = theta[0] * kin.q**3 + theta[1] * kin.v**2 + extra
        if self.fault == "overwrite":
            out[:] = value
        else:
            out += value

    def jacobian(self, kin, theta, weights, data, slots):
        k = slots.size
        factor = 1.00001 if self.fault == "factor" else 1.0
        value = factor * weights.q * 3.0 * theta[0] * kin.q[:k] ** 2
        if self.fault != "weight":
            value = value + weights.v * 2.0 * theta[1] * kin.v[:k]
        if self.fault == "set":
            data[slots] = value
        elif self.fault == "slots":
            data[:k] += value
        else:
            np.add.at(data, slots, value)

    def parameter_vjp(self, kin, theta, lam, out):
        out[0] += lam @ kin.q**3
        out[1] += (2.0 if self.fault == "vjp" else 1.0) * (lam @ kin.v**2)

    def parameter_jvp(self, kin, theta, theta_dot, out):
        out += theta_dot[0] * kin.q**3
        if self.fault != "jvp":
            out += theta_dot[1] * kin.v**2
        if self.fault == "argument":
            theta_dot[0] = kin.q[0] = 0.0

    def energy(self, kin, theta):
        return theta[0] * float((kin.q**4).sum()) / (5.0 if self.fault == "energy" else 4.0)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("factor", "weight q"),
        ("weight", "weight v"),
        ("pattern", "pattern lacks"),
        ("depends", "reads a"),
        ("overwrite", "add"),
        ("set", "does not add"),
        ("slots", "slots"),
        ("vjp", "parameter_vjp by theta"),
        ("jvp", "parameter_jvp by theta"),
        ("argument", "argument"),
        ("energy", "energy"),
    ],
)
def test_checks_find_faults(fault: str, message: str, rng: np.random.Generator) -> None:
    term = _Spring()
    term.fault = fault
    v = np.zeros(6) if fault == "energy" else rng.normal(size=6)
    kin = Kinematics(rng.normal(size=6), v, rng.normal(size=6), 0.0, 0)
    theta = np.array([1.3, 0.0 if fault in ("", "energy") else 0.7])
    if not fault:
        found = check_term(term, kin, theta, rng=rng, energy=True)
        assert found.q > 0.0 and found.v == 0.0 and found.parameters == (0, 1)
        return
    with pytest.raises(AssertionError, match=message):
        check_term(term, kin, theta, rng=rng, energy=fault == "energy")


# --- initial state, motion, signals, maps, rotations ------------------------------------------------------------------


def _initial(rng: np.random.Generator) -> InitialState:
    index = itertools.count()

    def take() -> np.ndarray:
        return np.array([next(index) for _ in range(3)])

    bodies, start = [], 0
    for n in (4, 7):
        rest = rng.normal(size=(n, 3))
        bodies.append(BodyPose(start, rest, rng.normal(size=3), take(), take(), take(), take()))
        start += rest.size
    return InitialState(start, tuple(bodies))


ANGLES = (0.0, 1e-9, 5e-5, 2e-4, 9e-3, 1.1e-2, 1.0, 3.0, 7.0)


@pytest.mark.parametrize("angle", ANGLES)
def test_initial_state(angle: float, rng: np.random.Generator) -> None:
    initial = _initial(rng)
    theta = rng.normal(size=24)
    for body in initial.bodies:
        vector = rng.normal(size=3)
        theta[body.orientation] = angle * vector / np.linalg.norm(vector)

    def vjp(theta: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.full(theta.size, 0.5)
        initial.vjp(theta, bar[: initial.n], bar[initial.n :], out)
        return out - 0.5

    check_pullback(
        lambda theta: np.concatenate(initial.evaluate(theta)),
        lambda theta, dot: np.concatenate(initial.jvp(theta, dot)),
        vjp,
        theta,
        rng=rng,
        rtol=1e-8,
        scale=1.0,
        sizes=(3e-2, 1e-2, 3e-3, 1e-3),
    )


def test_initial_velocity_is_that_of_a_rigid_body(rng: np.random.Generator) -> None:
    """v is dx/dt when position and orientation move with velocity and angular velocity."""
    initial = _initial(rng)
    theta, rate = rng.normal(size=24), np.zeros(24)
    for body in initial.bodies:
        omega, w = theta[body.angular_velocity], theta[body.orientation]
        rate[body.orientation] = np.linalg.solve(left_jacobian(w), omega)
        # The centre of mass has the given velocity.
        centre = rotation_matrix(w) @ body.centre
        rate[body.position] = theta[body.velocity] - np.cross(omega, centre)
    np.testing.assert_allclose(initial.jvp(theta, rate)[0], initial.evaluate(theta)[1], atol=1e-13)


@pytest.mark.parametrize("t", [0.0, 0.013, 0.05, 0.3])
def test_motion(t: float, rng: np.random.Generator) -> None:
    initial = _initial(rng)
    sine, table, spline = Sine(2.0, 0.3), Table(np.array([0.0, 0.02, 0.1])), Spline(np.array([0.0, 0.03, 0.05, 0.1]))
    moves = (
        PinMotion(np.array([0, 1, 2, 9, 10]), np.array([0, 1, 2, 0, 1]), sine, 24 + np.arange(6).reshape(2, 3)),
        PinMotion(np.array([2, 14, 20]), np.array([2, 2, 2]), table, 30 + np.arange(9).reshape(3, 3)),
        PinMotion(np.array([12]), np.array([0]), spline, 39 + np.arange(12).reshape(4, 3)),
    )
    motion = Motion(initial, np.array([0, 1, 2, 5, 9, 10, 12, 14, 20]), moves)
    theta = rng.normal(size=51)

    def vjp(theta: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.full(theta.size, 0.5)
        motion.vjp(t, theta, bar[:9], bar[9:], out)
        return out - 0.5

    check_pullback(
        lambda theta: np.concatenate([motion.positions(t, theta), motion.velocities(t, theta)]),
        lambda theta, dot: np.concatenate(motion.jvp(t, theta, dot)),
        vjp,
        theta,
        rng=rng,
        rtol=1e-8,
        scale=1.0,
    )
    # Without a velocity cotangent: that of zero.
    bar, out = rng.normal(size=9), np.zeros(51)
    motion.vjp(t, theta, bar, None, out)
    np.testing.assert_allclose(out, vjp(theta, np.concatenate([bar, np.zeros(9)])), atol=1e-14)
    # Velocities are the rates of positions (from the right at a kink).
    h = 1e-6
    rate = (motion.positions(t + 2 * h, theta) - motion.positions(t, theta)) / (2 * h)
    np.testing.assert_allclose(motion.velocities(t + h, theta), rate, atol=1e-5 * np.abs(rate).max())


def test_motion_without_pins(rng: np.random.Generator) -> None:
    motion = Motion(_initial(rng), np.zeros(0, dtype=np.int64))
    out = np.zeros(24)
    motion.vjp(0.0, rng.normal(size=24), np.zeros(0), np.zeros(0), out)
    assert motion.positions(0.0, out).size == motion.velocities(0.0, out).size == 0
    assert not out.any()


TIMES = np.array([0.1, 0.25, 0.3, 0.7])
SIGNALS: dict[str, tuple[Signal, int]] = {  # with the rows whose weights sum to one
    "constant": (Constant(), 1),
    "table": (Table(TIMES), 4),
    "table of one": (Table(TIMES[:1]), 1),
    "spline": (Spline(TIMES), 4),
    "spline of two": (Spline(TIMES[:2]), 2),
    "sine": (Sine(1.7, 0.4), 1),
    "control of degree 0": (BSplineSignal(0, 2, 0.1, 0.7), 2),
    "control of degree 1": (BSplineSignal(1, 3, 0.1, 0.7), 3),
    "control of degree 3": (BSplineSignal(3, 7, 0.1, 0.7), 7),
}


def test_every_signal_has_a_case() -> None:
    assert concrete(Signal) == {type(signal) for signal, _ in SIGNALS.values()}


@pytest.mark.parametrize("name", SIGNALS)
def test_signal(name: str) -> None:
    signal, n_sum = SIGNALS[name]
    for t in (-1.0, 0.0, 0.12, 0.2501, 0.28, 0.5, 0.69, 0.71, 2.0):
        weights, rates = signal.weights(t), signal.rates(t)
        assert weights.shape == rates.shape == (signal.n_rows,)
        h = 1e-5
        np.testing.assert_allclose(rates, (signal.weights(t + h) - signal.weights(t - h)) / (2 * h), atol=1e-6)
        assert weights[:n_sum].sum() == pytest.approx(1.0, abs=1e-14)
        assert rates[:n_sum].sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", SIGNALS)
def test_signal_at_its_times(name: str) -> None:
    """Rows are the values at their times; at a kink the rate is that from the right; ends are held."""
    signal, _ = SIGNALS[name]
    times = getattr(signal, "times", TIMES)
    for k, t in enumerate(times):
        if hasattr(signal, "times"):
            np.testing.assert_allclose(signal.weights(t), np.eye(times.size)[k], atol=1e-14)
        h = 1e-7
        right = (signal.weights(t + h) - signal.weights(t)) / h
        np.testing.assert_allclose(signal.rates(t), right, atol=1e-4)
    if hasattr(signal, "times"):
        assert np.array_equal(signal.weights(-9.0), signal.weights(times[0]))
        assert np.array_equal(signal.weights(9.0), signal.weights(times[-1]))
        assert not signal.rates(times[-1]).any() and not signal.rates(times[0] - 1e-9).any()


def test_spline_keeps_cubics_smooth() -> None:
    """Value, slope and curvature are continuous at inner times, curvature zero at the ends."""
    spline, h = Spline(TIMES), 1e-4

    def curvature(t: float) -> np.ndarray:
        return (spline.rates(t + h) - spline.rates(t - h)) / (2 * h)

    for t in TIMES[1:-1]:
        np.testing.assert_allclose(curvature(t - 2 * h), curvature(t + 2 * h), atol=5.0)
    assert np.abs(curvature(TIMES[0] + 1.1 * h)).max() < 1.0 < np.abs(curvature(0.2)).max()


POINT_MAPS: dict[str, LinearPoints] = {
    "nodes": NodePoints(np.array([1, 4, 2])),
    "weighted": WeightedPoints(
        np.array([[0, 1, 2], [3, 4, 3], [1, 2, 5]]), np.array([[0.2, 0.5, 0.3], [0.7, 0.3, -0.4], [1.2, 0.0, -0.2]])
    ),
}


def test_every_map_has_a_case() -> None:
    linear = {type(points) for points in POINT_MAPS.values()}
    assert concrete(PointMap) == linear | {SitePoints, LiftedPoints}  # in test_rigid, test_lift
    assert concrete(FrameMap) == {WorldFrames}


@pytest.mark.parametrize("name", POINT_MAPS)
def test_point_map(name: str, rng: np.random.Generator) -> None:
    points = POINT_MAPS[name]
    n, m = 18, 3 * points.n_points
    kin = Kinematics(rng.normal(size=n), rng.normal(size=n), np.zeros(n), 0.2, 3)
    rows, cols, values = points.entries()
    jacobian = np.zeros((m, n))
    np.add.at(jacobian, (rows, cols), values)
    _, v = points.points(kin, kin.q)
    np.testing.assert_allclose(v.ravel(), jacobian @ kin.v, atol=1e-14)

    def place(q: np.ndarray) -> np.ndarray:
        return points.points(replace(kin, q=q), q)[0].ravel()

    def pull(q: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.full(n, 2.0)
        points.pull(bar.reshape(-1, 3), out)
        return out - 2.0

    found = check_pullback(place, lambda q, dot: jacobian @ dot, pull, kin.q, rng=rng, scale=1.0)
    np.testing.assert_allclose(found, jacobian)
    blocks = rng.normal(size=(points.n_points, 3, 3))
    full = np.zeros((m, m))
    for k, block in enumerate(blocks):
        full[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = block
    rows, cols = points.block_pattern()
    data = np.zeros(rows.size)
    points.scatter_blocks(blocks, data, np.arange(rows.size))
    dense = np.zeros((n, n))
    np.add.at(dense, (rows, cols), data)
    np.testing.assert_allclose(dense, jacobian.T @ full @ jacobian, atol=1e-13)


def test_world_frames_move_as_they_say(rng: np.random.Generator) -> None:
    rotation = np.stack([rotation_matrix(rng.normal(size=3)) for _ in range(2)])
    frames = WorldFrames(rotation, rng.normal(size=(2, 3)), rng.normal(size=(2, 3)))
    shapes = Shapes(("a", "b"), np.array([0, 1]), np.ones((2, 3)), frames)
    kin = Kinematics(np.zeros(3), np.zeros(3), np.zeros(3), 0.4, 1)
    h = 1e-3
    now, later = frames.frames(replace(kin, t=0.4 - h)), frames.frames(replace(kin, t=0.4 + h))
    _, _, rotation, position, linear, angular = shapes.at(kin)
    np.testing.assert_allclose((later.position - now.position) / (2 * h), linear, atol=1e-12)
    np.testing.assert_allclose(position, frames.position + 0.4 * frames.velocity)
    assert np.array_equal(rotation, frames.rotation) and not angular.any()


def _vee(m: np.ndarray) -> np.ndarray:
    return np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / 2.0


# The series of the rotation end at 1e-4, those of the Jacobian at 1e-2.
@pytest.mark.parametrize("angle", [*ANGLES, 0.99e-4, 1.01e-4, 0.99e-2, 1.01e-2])
def test_rotation(angle: float, rng: np.random.Generator) -> None:
    """Orthogonal; d/de exp([w + e d]) exp([w])^T = [J_l d]."""
    axis = rng.normal(size=3)
    w = angle * axis / np.linalg.norm(axis)
    r = rotation_matrix(w)
    np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(r) == pytest.approx(1.0, abs=1e-14)
    h = 2e-3
    columns = []
    for d in np.eye(3):
        near = rotation_matrix(w + h * d) - rotation_matrix(w - h * d)
        far = rotation_matrix(w + 2 * h * d) - rotation_matrix(w - 2 * h * d)
        spin = (8.0 * near - far) / (12.0 * h) @ r.T
        np.testing.assert_allclose(spin, -spin.T, atol=1e-9)
        columns.append(_vee(spin))
    np.testing.assert_allclose(left_jacobian(w), np.stack(columns, axis=1), atol=1e-9)


@pytest.mark.parametrize("angle", [1e-6, 0.99e-4, 1.01e-4, 1e-3, 0.99e-2, 1.01e-2, 0.05])
def test_rotation_near_zero_equals_power_series(angle: float, rng: np.random.Generator) -> None:
    """Both sides of the switches, to round-off: exp = sum K^k / k!, J_l = sum K^k / (k + 1)!."""
    axis = rng.normal(size=3)
    w = angle * axis / np.linalg.norm(axis)
    power, exponential, jacobian, factorial = np.eye(3), np.zeros((3, 3)), np.zeros((3, 3)), 1.0
    for k in range(12):
        exponential += power / factorial
        jacobian += power / (factorial * (k + 1))
        power = power @ skew(w)
        factorial *= k + 1
    # Relative to the size of each order, so that a wrong coefficient of K^2 shows although K^2 is small.
    np.testing.assert_allclose(rotation_matrix(w), exponential, rtol=0, atol=4e-16)
    np.testing.assert_allclose(left_jacobian(w), jacobian, rtol=0, atol=4e-16)
    symmetric = (left_jacobian(w) + left_jacobian(w).T) / 2 - np.eye(3)
    expected = (jacobian + jacobian.T) / 2 - np.eye(3)
    np.testing.assert_allclose(symmetric, expected, rtol=0, atol=1e-9 * angle**2 + 3e-16)


def test_rotation_vector_inverts(rng: np.random.Generator) -> None:
    for angle in (0.0, 1e-14, 1e-6, 1.0, 3.1, np.pi):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        quaternion = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
        for sign in (1.0, -1.0):
            again = rotation_vector(sign * quaternion)
            np.testing.assert_allclose(rotation_matrix(again), rotation_matrix(angle * axis), atol=1e-14)
            assert np.linalg.norm(again) <= np.pi + 1e-12


def test_elastic_residual_is_the_slope_of_its_energy(rng: np.random.Generator) -> None:
    """Taylor's remainder of the energy falls with the square of the step."""
    model = build_model([SoftBody("one", rough_box(HEX8, 1), mean_dilatation=True)])
    (term,) = model.term(Elastic)
    kin, theta = deformed(model, rng), random_theta(model, rng)
    r = np.zeros(kin.q.size)
    term.residual(kin, theta, r)
    d = 0.01 * rng.normal(size=kin.q.size)
    sizes = [0.04, 0.02, 0.01]

    def energy(q: np.ndarray) -> float:
        return term.energy(replace(kin, q=q), theta)

    rates = taylor_rates(energy, r @ d, kin.q, d, sizes)
    assert np.all((rates > 1.9) & (rates < 2.1))
    rates = taylor_rates(energy, 1.01 * (r @ d), kin.q, d, np.array(sizes) / 40)
    assert np.all(rates < 1.2)


def test_masses_have_mass(rng: np.random.Generator) -> None:
    """Kinetic energy and momentum of a moving body and its point masses are m v^2 / 2 and m v."""
    model = attached_model(TET10, True)
    (term,) = model.term(Inertia)
    theta = random_theta(model, rng)
    view = model.system.parameters.view
    mass = sum(
        float(view(theta, f"bodies.{b.name}.density")) * mass_pairs(b.mesh, lumped=b.lumped).values.sum()
        for b in model.bodies
    )
    mass += sum(float(view(theta, f"mass {k}")) for k in range(2))
    velocity = rng.normal(size=3)
    n = model.system.n
    kin = Kinematics(np.zeros(n), np.tile(velocity, n // 3), np.zeros(n), 0.0, 0)
    np.testing.assert_allclose(term.momentum(kin, theta), mass * velocity, rtol=1e-12)
    assert term.kinetic_energy(kin, theta) == pytest.approx(0.5 * mass * velocity @ velocity, rel=1e-12)
