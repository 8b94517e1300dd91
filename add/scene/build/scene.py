"""From a `SceneSpec` to what runs: the only place where the scene's words become objects."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from add.bodies import Body, ObstacleBody, SoftBody
from add.contact import BodyContact, FrictionLaw, NormalLaw
from add.equations.signals import Constant, SignalParameter
from add.errors import InputError, naming
from add.hard_contact import ImpulseOptions, with_exact_contact, with_impulse_contact
from add.linalg import Factorization, cholmod_for, factorization_for
from add.linalg.cholmod import is_installed
from add.model import ContactModel, MeshModel, Model, Obstacle, ShapeName, build_model
from add.scene.build import mesh_contact
from add.scene.build.articulated import articulated_body
from add.scene.build.built import ORDERS, BuiltScene, contact_terms
from add.scene.build.chambers import chambers, embed
from add.scene.build.default_contact import WEIGHT, changes_numbers, default_contact, impacts, without_numbers
from add.scene.build.inputs import require_width, rows_of, signal_of
from add.scene.build.joints import couplings, refuse_broken_formulas, refuse_other_starts
from add.scene.build.materials import remembering
from add.scene.build.nets import net_body
from add.scene.build.numbers import CLOCK, SceneParameters
from add.scene.build.recordings import placement_numbers
from add.scene.build.rigid_bodies import begun_pose, least_inertia, refuse_sizes, rigid_body, with_radii
from add.scene.build.scenery import adjustable_obstacle, obstacle
from add.scene.build.selections import marker_map, marker_numbers, pose_points
from add.scene.build.sizes import require_room_for_meshes, require_room_to_build
from add.scene.build.soft_bodies import muscles, soft_body
from add.scene.build.ties import SceneParts
from add.scene.read.paths import about_robot, get_value
from add.scene.read.reader import S, experiment_scenes, with_settings
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import HARD, SignalReferenceSpec
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.extension import answer
from add.scene.spec.links import all_bodies, named_places, strings_in
from add.scene.spec.nets import NetSpec
from add.scene.spec.rigid import BodyExtension, KinematicBodySpec, RigidBodySpec
from add.scene.spec.scene import IntegratorExtension, NewtonSpec, SceneSpec, SolverExtension
from add.simulation import BDF, StartUp, Stepper
from add.simulation.run import Simulation
from add.simulation.runge_kutta import DiagonallyImplicit, RungeKutta4, refuse_holding, refuse_implicit
from add.simulation.start import EquilibriumStart, GivenStart
from add.simulation.substeps import Substeps
from add.solve.step_equations import NewtonOptions
from add.typing import FloatArray

_START_UPS = {"bdf1": StartUp.BDF1, "straight-line": StartUp.STRAIGHT_LINE}
_NORMS = {"l1": 1, "l2": 2}
#: Share of the smallest body's extent by which pairs that touch may be apart, under `impulse`, at the most.
NEAR = 1e-4
#: Acceleration that steps may leave to what is lightest, and to a rigid body beside a weight [rad/s^2, m/s^2].
UNSEEN, BESIDE = 1e-3, 0.1
#: Tolerances relative to forces below this one ask for no more.
FINEST = 1e-14


def build(scene: SceneSpec) -> BuiltScene:
    """Build a scene.

    Raises
    ------
    InputError
        If a mesh, selection or marker does not fit; names the file and the place.
    """
    with naming(file=scene.source):
        return _build(with_contact(scene))


def with_contact(scene: S) -> S:
    """Return the scene with the numbers of contact that it leaves open; see `add.scene.build.default_contact`.

    Where anything may touch by these numbers, and the scene does not say `time.substeps`, steps are divided. Where
    surfaces alone meet, and the scene gives their stiffness, nothing touches by these.
    Experiments share them. One that overrides what the rule reads of `contact` gets its own, as overrides.
    """
    changing = [k for k, item in enumerate(scene.experiments) if any(map(changes_numbers, item.overrides))]
    if not without_numbers(scene) or (_alone(scene) and not changing):
        return scene
    built = _with_any_numbers(scene)
    meets = contact_terms(built.model.system)
    numbers: dict[str, float | str] = dict(default_contact(scene, built)) if meets else {}
    points = any(isinstance(term, BodyContact) and term.met_shapes() for _, term in meets)
    chosen = scene.contact.mesh.stiffness is not None and not points
    if scene.time.substeps is None and meets and not chosen and isinstance(built.simulation.stepper, Substeps):
        numbers["time.substeps"] = "auto"
    further: dict[int, dict[str, float | None]] = {}
    for k in changing:
        changed = experiment_scenes(scene)[scene.experiments[k].name]
        defaults = default_contact(changed, _with_any_numbers(changed)) if without_numbers(changed) else {}
        asked = {path for path in numbers if path.startswith("contact.")} | set(defaults)
        open_ones = [path for path in sorted(asked) if get_value(changed.full(), path) is None]
        further[k] = {path: defaults.get(path) for path in open_ones}
    return with_settings(scene, numbers, further)


def _alone(scene: SceneSpec) -> bool:
    """Return whether there is one body, and nothing that it could touch: no built scene is needed to see that."""
    if len(scene.bodies) != 1 or scene.obstacles or scene.contact.pairs:
        return False
    (body,) = scene.bodies.values()
    itself = body.contact is not None and body.contact.meets_itself
    return not isinstance(body, ArticulatedBodySpec | BodyExtension) and not itself


def _with_any_numbers(scene: SceneSpec) -> BuiltScene:
    contact = scene.contact.model_copy(update={"stiffness": 1.0})
    return _build(scene.model_copy(update={"contact": contact}), draft=True)


def _build(spec: SceneSpec, *, draft: bool = False) -> BuiltScene:
    """Build a scene whose contact has numbers; a ``draft``, which is for these alone, is not looked at for faults."""
    require_room_to_build(spec)

    parts = SceneParts(partial(_driven, spec=spec))
    bodies: list[Body] = []
    apart: set[tuple[str, str]] = set()
    apart_within: dict[str, str] = {}
    shapes_apart: set[tuple[ShapeName, ShapeName]] = set()
    link_poses: dict[str, FloatArray] = {}
    embedded = [body.embedded for body in spec.bodies.values() if isinstance(body, SoftBodySpec)]
    coupled = {*strings_in(spec.couplings), *strings_in(embedded)}
    for name, body in spec.bodies.items():
        if not isinstance(body, ArticulatedBodySpec):
            bodies.append(_body(name, body, parts))
            if isinstance(body, KinematicBodySpec):
                link_poses[name] = begun_pose(body, name, parts)
            continue
        with about_robot(body.model):
            articulated = articulated_body(name, body, parts, named_places(spec, name, body), coupled)
        link_poses |= articulated.starts
        bodies += [articulated.tree, *articulated.links]
        apart |= articulated.apart
        apart_within |= {} if body.self_collision else {link.name: name for link in articulated.links}
        shapes_apart |= articulated.shapes_apart
    embed(spec, bodies, link_poses, parts)
    require_room_for_meshes([(body.name, body.mesh) for body in bodies if isinstance(body, SoftBody)])
    obstacles, with_frame = _obstacles(spec, parts)
    bodies += with_frame
    couplings(spec, bodies, parts, link_poses)
    chambers(spec, bodies, parts)
    muscles(spec, bodies, parts)
    marker_numbers(spec, parts)
    pose_points(spec, bodies, parts)
    placement_numbers(spec, parts)
    if spec.recording is not None:
        parts.blocks.append((CLOCK, (), "s"))

    def modelled(contact: ContactModel) -> Model:
        return build_model(
            bodies, obstacles, contact, joint_parts=parts.joint_parts, starts=parts.starts, extra=parts.blocks,
            further=parts.terms,
        )  # fmt: skip

    contact = replace(
        _contact_model(spec, parts.connected, apart), apart_within=apart_within, shapes_apart=frozenset(shapes_apart)
    )
    mesh_contact.refuse_soft_laws_of_meshes(bodies, contact)
    model = modelled(contact)
    refuse_sizes(spec, model)
    numbers = SceneParameters(
        spec,
        model.system.parameters,
        [*with_radii(parts.numbers, model), *mesh_contact.skins(spec, model)],
        parts.derived,
        mesh_contact.areas(model),
    )
    theta = numbers.ties.forward(numbers.values)
    if mesh_contact.asked_for(spec):
        model = modelled(replace(contact, apart=contact.apart | mesh_contact.touching_links(spec, model, theta)))
    if not draft:
        mesh_contact.refuse_tangled_meshes(model, theta)
        mesh_contact.refuse_layers(model, theta)
        mesh_contact.refuse_buried(model, theta)
        refuse_other_starts(spec, model, theta, parts.owners)
        refuse_broken_formulas(spec, model, theta)
    simulation = _simulation(spec, model, theta)
    simulation = replace(simulation, stepper=remembering(spec, model, simulation.stepper, theta, parts.memories))
    markers = tuple(spec.markers), marker_map(spec, model, theta)
    built = BuiltScene(spec, model, simulation, numbers, *markers, tuple(parts.owners))
    if not isinstance(simulation.stepper, BDF):
        return built
    eager, whole = (spec.time.substeps == word for word in ("auto", "off"))
    resolved = impacts(built, eager) if not draft and (eager or contact_terms(model.system)) else None
    if resolved is not None and not eager and not resolved.bodies:
        resolved = None
    if whole and (resolved is None or simulation.stepper.bdf_order == 1):
        return built
    return replace(built, simulation=replace(simulation, stepper=Substeps(simulation.stepper, resolved)))


def _obstacles(spec: SceneSpec, parts: SceneParts) -> tuple[list[Obstacle], list[ObstacleBody]]:
    """Return the obstacles that stand still, and those that have a frame: moved by numbers, or met by their meshes."""
    meshed = {name for pair in _by_meshes(spec, ContactClasses.read(spec)) for name in pair}
    framed = {name for name, item in spec.obstacles.items() if item.adjustable or name in meshed}
    still = [obstacle(name, item) for name, item in spec.obstacles.items() if name not in framed]
    return still, [
        adjustable_obstacle(name, item, parts, name in meshed)
        for name, item in spec.obstacles.items()
        if name in framed
    ]


def _simulation(spec: SceneSpec, model: Model, theta: FloatArray) -> Simulation:
    """Return the simulation of a model, with contact that is solved for where its law says so."""
    time = spec.time
    newton = NewtonOptions(
        *_tolerances(time.newton, model, theta),
        _NORMS[time.newton.norm],
        time.newton.max_iterations,
        time.newton.reuse,
    )
    stepper = _stepper(spec, newton)
    start = GivenStart(model.initial) if time.initial == "given" else EquilibriumStart(model.initial, newton)
    simulation = Simulation(model.system, start, stepper, time.n_steps, theta, _solver(spec))
    if isinstance(stepper, RungeKutta4):
        refuse_implicit(simulation)
    elif isinstance(stepper, DiagonallyImplicit):
        refuse_holding(simulation)
    if spec.contact.friction_law == "exact":
        simulation = with_exact_contact(simulation)
    elif spec.contact.friction_law == "impulse":
        mesh_contact.refuse_deep_starts(model, theta)
        sizes = [float(np.ptp(body.rest, axis=0).max()) for body in model.bodies if body.moves and body.rest.size]
        smallest = min((size for size in sizes if size > 0.0), default=np.inf)
        options = ImpulseOptions(
            touching=min(ImpulseOptions.touching, NEAR * smallest),
            relaxation=spec.gradient.relaxation if spec.gradient.contact == "relaxed" else 0.0,
            exploring=spec.gradient.contact == "explore",
            timed_impacts=spec.contact.impact_time == "linear",
            pyramids=spec.contact.friction_cone == "pyramid",
        )
        simulation = with_impulse_contact(simulation, options, bounces=True)
    return simulation


def _tolerances(spec: NewtonSpec, model: Model, theta: FloatArray) -> tuple[float, float]:
    """Return atol and rtol; those that are not given are so small that they move no rigid body, link or node.

    At 1e-9 N m a body of millimetres may turn by 100 rad/s^2: the first guess of a step is good enough for the forces
    of all others, and so is never improved. Of links that heavy ones carry, rounding allows no less.
    """
    atol, rtol, least = spec.atol, spec.rtol, least_inertia(model, theta, links=False)
    masses = model.node_masses(theta)
    if atol is None:
        lightest = float(min(masses[masses > 0.0], default=np.inf))
        atol = min(NewtonOptions.atol, UNSEEN * min(least_inertia(model, theta, links=True), lightest))
    if rtol is None and not math.isinf(least):
        kin = model.at_start(theta)
        states = [body.state(kin, masses, theta, model.layouts) for body in model.bodies if body.moves]
        weight = WEIGHT * sum(state.get("mass", 0.0) for state in states)
        rtol = max(min(NewtonOptions.rtol, BESIDE * least / weight), FINEST)
    return atol, NewtonOptions.rtol if rtol is None else rtol


def _stepper(spec: SceneSpec, newton: NewtonOptions) -> Stepper:
    """Return the integrator."""
    time = spec.time
    if isinstance(time.integrator, IntegratorExtension):
        _only_penalties(spec)
        return answer(Stepper, time.integrator, "time.integrator", time.integrator.stepper, time.dt, newton)  # type: ignore[type-abstract]
    if time.integrator in ("rk4", "sdirk3"):
        _only_penalties(spec)
        return (RungeKutta4 if time.integrator == "rk4" else DiagonallyImplicit)(time.dt, newton)
    return BDF(time.dt, ORDERS[time.integrator], _START_UPS[time.start], newton)


def _only_penalties(spec: SceneSpec) -> None:
    """Refuse hard contact, which is a way to step itself, and divided steps beside another integrator."""
    if spec.contact.friction_law in HARD:
        raise InputError(
            f"the integrator '{spec.time.integrator}' steps without hard contact", place="contact.friction_law",
            found=f"'{spec.contact.friction_law}'", expected="a law of penalties, or bdf1 or bdf2",
        )  # fmt: skip
    if spec.time.substeps == "auto":
        raise InputError(
            f"steps of '{spec.time.integrator}' are not divided", place="time.substeps", found="'auto'",
            expected="'off', or bdf1 or bdf2",
        )  # fmt: skip


def _solver(spec: SceneSpec) -> Callable[[int], Factorization]:
    """Return the back end of the linear algebra."""
    if isinstance(spec.time.linear_solver, SolverExtension):
        extension = spec.time.linear_solver
        return partial(answer, Factorization, extension, "time.linear_solver", extension.factorization)  # type: ignore[type-abstract]
    if spec.time.linear_solver == "auto":
        return factorization_for
    if not is_installed():
        raise InputError(
            "CHOLMOD is not installed: pip install 'add-sim[cholmod]', which needs the headers of SuiteSparse (Debian, "
            "Ubuntu: apt-get install libsuitesparse-dev)",
            place="time.linear_solver", found="'cholmod'", expected="'auto', or the extra",
        )  # fmt: skip
    return cholmod_for


def _body(
    name: str, body: SoftBodySpec | NetSpec | RigidBodySpec | KinematicBodySpec | BodyExtension, parts: SceneParts
) -> Body:
    """Return a body; its numbers go to ``parts``."""
    if isinstance(body, BodyExtension):
        made, numbers, derived = answer(tuple, body, f"bodies.{name}", body.body, name, parts.driven)
        parts.numbers += numbers
        parts.derived += derived
        return made  # type: ignore[no-any-return]
    if isinstance(body, SoftBodySpec):
        return soft_body(name, body, parts)
    if isinstance(body, NetSpec):
        return net_body(name, body, parts)
    return rigid_body(name, body, parts)


def _driven(value: object, path: str, unit: str, width: int, spec: SceneSpec) -> SignalParameter:
    """Return the signal of a value; signals of the scene keep one block of theta for each unit they drive."""
    if isinstance(value, SignalReferenceSpec):
        signal = spec.signals[value.signal]
        require_width(signal, width, path, value.signal)
        made = signal_of(signal, spec.time.end, f"signals.{value.signal}")
        begins = made.weights(0.0) @ rows_of(signal)
        return SignalParameter(made, f"signals.{value.signal}.{unit}", tuple(begins.tolist()))
    if value is None:
        return SignalParameter(Constant(), path)
    return SignalParameter(Constant(), path, tuple(np.ravel(np.asarray(value, dtype=float)).tolist()))


def _contact_model(spec: SceneSpec, connected: set[tuple[str, str]], apart: set[tuple[str, str]]) -> ContactModel:
    contact, classes = spec.contact, ContactClasses.read(spec)
    said = classes.enabled()
    off = {pair for pair, enabled in said.items() if not enabled}
    if not contact.between_bodies:
        labels = list(dict.fromkeys(classes.of[name] for name in all_bodies(spec)))
        off |= {(a, b) for a in labels for b in labels} - {pair for pair, enabled in said.items() if enabled}
    # Bodies that a coupling joins pass through each other unless a row names the two.
    rows = [row for row in contact.pairs if row.enabled]
    asked = {row.sides for row in rows} | {row.sides[::-1] for row in rows if row.between is not None}
    joined = frozenset(pair for pair in connected if pair not in asked)
    themselves = tuple(name for name, body in spec.bodies.items() if body.contact and body.contact.meets_itself)
    by_meshes, hard = _by_meshes(spec, classes), contact.friction_law in HARD
    return ContactModel(
        # Of the terms that say what may touch what; `with_exact_contact` and `with_impulse_contact` take their place.
        law=FrictionLaw.LINEAR if hard else FrictionLaw[contact.friction_law.upper()],
        per_area=contact.stiffness_per == "area",
        onset=contact.onset or 0.0,
        ramp=contact.damping_ramp or 0.0,
        total_normal=contact.coulomb_normal == "total",
        adhesive_damping=contact.adhesive_damping,
        normal_law=NormalLaw[re.sub(r"\W", "_", contact.law.upper())]
        if isinstance(contact.law, str)
        else contact.law.law,
        curve=contact.curve,
        couples=contact.brakes_spin,
        classes=classes.of,
        disabled=frozenset(off),
        apart=joined | by_meshes | apart,
        meshes=None if hard else MeshModel(by_meshes, joined, themselves),
    )


def _by_meshes(spec: SceneSpec, classes: ContactClasses) -> frozenset[tuple[str, str]]:
    """Return the pairs of bodies, either way round, that rows let meet by their meshes; later rows win."""
    out: set[tuple[str, str]] = set()
    for row in spec.contact.pairs:
        a, b = (classes.members(side) for side in row.sides)
        both = {(x, y) for x in a for y in b if x != y} | {(y, x) for x in a for y in b if x != y}
        out = out | both if row.by_meshes else out - both
    return frozenset(out)
