"""Doubts about a scene: each names a number that can be simulated but is probably not meant, its place and a remedy."""

import logging
from collections.abc import Iterator

import numpy as np

from add.adjoint import Checkpoints
from add.bodies import SoftBody, ThinBody, TreeBody
from add.contact import MeshContact
from add.errors import InputError
from add.model.impacts import few_steps
from add.model.mesh_terms import without_shapes
from add.model.overlaps import deep_starts
from add.scene.build import unread
from add.scene.build.built import BuiltScene, extent, size_of
from add.scene.build.default_contact import fast_impacts
from add.scene.build.file_doubts import doubts_of_clouds, doubts_of_recording, robot_doubts, servo_doubts
from add.scene.build.mesh_contact import meeting_names
from add.scene.build.sizes import require_room_to_run
from add.scene.build.soft_bodies import doubts_of_soft_bodies
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.couplings import _PairSpec
from add.scene.spec.links import LinkOf, all_bodies
from add.scene.spec.markers import PointMarkerSpec
from add.scene.spec.nets import ClothBodySpec, NetSpec
from add.scene.spec.rigid import KinematicBodySpec, RigidBodySpec
from add.summary import counted, few
from add.typing import FloatArray

logger = logging.getLogger(__name__)

#: Steps from which on a run is more than a trial.
FEW_STEPS = 10
#: Young's moduli below this are softer than any solid that is measured [Pa].
SOFTEST = 30.0
#: Sizes of bodies beyond which the unit of the file is in doubt [m].
SMALLEST, LARGEST = 1e-6, 1000.0
#: A point this many sizes of its body away from it is in doubt.
FAR = 2.0
#: Radius of a ball, in circles about faces, from which on many nodes carry it.
LARGE = 3.0
#: What a joint may start beyond its stop, beside the stop's value: rounding of files [rad, m].
BEYOND = 1e-3
_SHOWN = 3
#: Strain from which on a rotation is no small one.
ROTATED = 1e-3
#: Membrane stiffness of an edge over its bending from which on constant strains lock.
LOCKING = 1e5
#: Share by which lengths at the starts of two experiments may differ: rounding.
SAME_LENGTH = 1e-6


def warn(experiments: dict[str, BuiltScene]) -> list[str]:
    """Log and return what is probably not meant in experiments by name, or in a scene, though it can be simulated."""
    source = next(iter(experiments.values())).scene.source or "scene"
    texts = [text for built in experiments.values() for text in doubts(built)] + list(_lengths(experiments))
    for text in texts:
        logger.warning("%s: %s", source, text)
    return texts


def _lengths(experiments: dict[str, BuiltScene]) -> Iterator[str]:
    """Yield couplings whose length, left open, is not the same in all experiments, which start differently."""
    lengths: dict[str, dict[str, float]] = {}
    for experiment, built in experiments.items():
        layout = built.model.system.parameters
        for name, item in built.scene.couplings.items():
            block = f"couplings.{name}.length"
            if block in layout and isinstance(item, _PairSpec) and item.column("length") is None:
                lengths.setdefault(name, {})[experiment] = float(built.theta[layout[block].start])
    for name, by in lengths.items():
        low, high = min(by, key=by.__getitem__), max(by, key=by.__getitem__)
        if by[high] - by[low] > SAME_LENGTH * by[high]:
            yield (
                f"couplings.{name}.length: it is not given, and so another one in each experiment that starts "
                f"differently: {by[low]:.5g} m in '{low}', {by[high]:.5g} m in '{high}'; give it"
            )


def doubts(built: BuiltScene) -> list[str]:
    """Return one text for each thing that is probably not meant."""
    parts = (
        _deep, _untouchable, _torn, _round, _near_at_rest, _creep, _few_steps, _impacts, fast_impacts, _sizes, _room,
        _soft, _driven, _rotated, _locking, _markers, _centres, _stops, *unread.DOUBTS,
        doubts_of_soft_bodies, doubts_of_recording, doubts_of_clouds, robot_doubts, servo_doubts,
    )  # fmt: skip
    return [text for part in parts for text in part(built)]


def _room(built: BuiltScene) -> Iterator[str]:
    """Yield the memory that a run would need and that is not there: such a scene can be checked alone."""
    try:
        require_room_to_run(built.simulation, Checkpoints())
    except InputError as error:
        yield str(error)


def _deep(built: BuiltScene) -> Iterator[str]:
    deep = deep_starts(built.model, built.theta)
    if not deep:
        return
    worst, others = deep[0], len(deep) - 1
    what = "obstacles" if worst.other in built.scene.obstacles else "bodies"
    text = (
        f"bodies.{worst.body}: starts {worst.depth:.3g} m deep inside {what}.{worst.other} (its own size is "
        f"{worst.size:.3g} m), and the contact will throw it out; move it, or switch this pair off in contact.pairs"
    )
    if others:
        text += f" ({others} more {'pair starts' if others == 1 else 'pairs start'} deep inside each other)"
    yield text


def _untouchable(built: BuiltScene) -> Iterator[str]:
    """Pairs that pass through each other in a scene that lets bodies touch."""
    spec, model = built.scene, built.model
    if not spec.contact.between_bodies:
        return
    joined = {*ContactClasses.read(spec).disabled_bodies()}
    joined |= {frozenset(item.joins) for item in spec.couplings.values() if item.joins and not item.collide}
    points = {body.name for body in model.bodies if body.contact_points().radii.size}
    shapes = {body.name for body in model.bodies if body.shapes}
    known = {body.name for body in model.bodies}
    solid = [name for name, body in all_bodies(spec).items() if name in known and _has_surface(body)]
    still = {name for name, body in spec.bodies.items() if isinstance(body, KinematicBodySpec)}
    by_meshes = {frozenset(pair) for pair in meeting_names(model)}
    missed = [
        (a, b)
        for a, b in without_shapes(solid, points, shapes)
        if frozenset((a, b)) not in joined
        and not {a, b} <= still
        and frozenset((a, b)) not in by_meshes
        and not model.contact.keeps_apart(a, b)
    ]
    if missed:
        named = few([f"{a} and {b}" for a, b in missed], _SHOWN, " pairs")
        yield (
            f"contact.between_bodies: {named} pass through each other: points of bodies meet the boxes, balls, "
            "capsules, cylinders and closed meshes that rigid bodies carry, and neither of these carries one, nor have "
            "both a mesh (or the contact is exact or by impulses, without meshes); contact.pairs with 'enabled': "
            "false say that it is meant"
        )


def _round(built: BuiltScene) -> Iterator[str]:
    """Bodies that fit through a face whose nodes alone meet them, and balls that press large ones at one place."""
    model = built.model
    small: list[tuple[str, str]] = []
    large: list[tuple[str, str]] = []
    if model.contact.meshes is None:
        return
    by_meshes = {frozenset(pair) for pair in meeting_names(model)}
    nets = [(body, mesh) for body in model.bodies if (mesh := body.contact_mesh()) is not None and mesh.faces.size]
    solids = [(body, mesh) for body in model.bodies if body.shapes and (mesh := body.contact_mesh()) is not None]
    balls = [(body, mesh.radius or 0.5 * float(np.linalg.norm(np.ptp(mesh.points, axis=0)))) for body, mesh in solids]
    thick = {body.name for body, mesh in solids if mesh.radius}
    for net, mesh in nets:
        corners = mesh.points[mesh.faces]
        sides = np.linalg.norm(corners - corners[:, [1, 2, 0]], axis=2)
        twice = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        round_corners = np.median(sides.prod(axis=1) / np.maximum(2.0 * twice, np.finfo(float).tiny))
        for one, radius in balls:
            pair = net.name, one.name
            classes = model.contact.class_of(pair[0]), model.contact.class_of(pair[1])
            met = not (classes in model.contact.disabled or model.contact.keeps_apart(*pair))
            if frozenset(pair) in by_meshes:
                if one.name in thick and mesh.nodes is not None and radius > LARGE * round_corners:
                    large.append((one.name, net.name))
            elif met and not net.shapes and net.contact_points().radii.size and radius < round_corners:
                small.append((one.name, net.name))
    for pairs, text in (
        (small, "is so small that it may pass between nodes of the second, which alone meet its shape; a row of "
         "contact.pairs with 'by_meshes': true makes it meet faces"),
        (large, "is many edges of the second large and presses at one place only, the nearest; without 'by_meshes' "
         "all nodes in reach meet its shape"),
    ):  # fmt: skip
        if pairs:
            yield f"contact: {few([f'{a} and {b}' for a, b in pairs], _SHOWN, ' pairs')}: the first {text}"


def _near_at_rest(built: BuiltScene) -> Iterator[str]:
    """Skins that meet themselves, and are too thick for their mesh."""
    for term in built.model.term(MeshContact):
        for name, number, least in term.near_at_rest(built.theta):
            yield (
                f"bodies.{name}.contact.thickness: {counted(number, 'pair')} of edges or faces of its mesh without a "
                "common node are so near at rest that they push on nothing, and yet never pass: a fold that presses "
                f"them together stops every step; below {least / term.surface.rest_factor:.2g} m they meet, or take a "
                "mesh of more even triangles"
            )


def _creep(built: BuiltScene) -> Iterator[str]:
    """Friction that is to be found under a law that creeps at a rate of the step."""
    contact, time = built.scene.contact, built.scene.time
    if contact.friction_law not in ("linear", "tanh") or contact.stick_stiffness is not None:
        return
    sought = built.scene.parameter_paths
    frictions = [path for path in sought if path.startswith("contact.") and path.endswith("friction")]
    if frictions:
        yield (
            f"contact.stick_stiffness: {frictions[0]} is to be found, and where this is not given k_t follows time.dt "
            f"({time.dt:g} s): another step is then another law of friction; give it, so large that a contact which "
            "sticks creeps slower than anything that is measured"
        )


def _has_surface(body: object) -> bool:
    """Whether a body is there to be touched."""
    if isinstance(body, NetSpec):
        return bool(body.collision)
    if isinstance(body, RigidBodySpec | KinematicBodySpec):
        return body.geometry is not None and body.collision.shape
    if isinstance(body, LinkOf):
        return bool(body.link.collision)
    return True


def _few_steps(built: BuiltScene) -> Iterator[str]:
    time = built.scene.time
    if time.n_steps < FEW_STEPS:
        yield f"time.dt: the run has only {counted(time.n_steps, 'step')} of {time.dt:g} s (times are in s)"


def _impacts(built: BuiltScene) -> list[str]:
    """Impacts with a restitution that last few steps."""
    return few_steps(built.expected_impacts())


def _sizes(built: BuiltScene) -> Iterator[str]:
    for name in (body.name for body in built.model.bodies if not isinstance(body, TreeBody)):
        size = size_of(built, name)
        if size > LARGEST or 0.0 < size < SMALLEST:
            yield f"bodies.{name}: it is {size:.3g} m across (lengths are in m; a 'scale' turns millimetres into them)"


def _soft(built: BuiltScene) -> Iterator[str]:
    theta, layout = built.theta, built.model.system.parameters
    pull = np.array(layout.view(theta, "gravity"))
    gravity = float(np.linalg.norm(pull))
    q, _ = built.model.initial.evaluate(theta)
    for body in built.model.bodies:
        if not isinstance(body, SoftBody):
            continue
        density = float(layout.view(theta, f"bodies.{body.name}.density"))
        young = float(body.young(theta, built.model.layouts).min())
        nodes = q[built.model.system.dofs[body.name].slice].reshape(-1, 3)
        height = float(np.ptp(nodes @ (pull / gravity))) if gravity else 0.0
        weight = density * gravity * height
        at = f"bodies.{body.name}.material"
        if young < SOFTEST:
            yield f"{at}: Young's modulus is {young:.3g} Pa, softer than any solid (moduli are in Pa, not kPa or MPa)"
        elif young < weight:
            yield (
                f"{at}: Young's modulus is {young:.3g} Pa, less than the weight of {height:.3g} m of it on its area, "
                f"{weight:.3g} Pa: it cannot carry itself (moduli are in Pa, densities in kg/m^3)"
            )


def _driven(built: BuiltScene) -> Iterator[str]:
    """Viscosities by formula that drive what moves fast; at rest the reader looks."""
    for name, body in built.scene.bodies.items():
        if not isinstance(body, SoftBodySpec):
            continue
        places = {f"bodies.{name}.material": body.material}
        places |= {f"bodies.{name}.regions.{key}.material": region.material for key, region in body.regions.items()}
        for at, material in places.items():
            law = material.dissipation_law
            keys = dict(zip(law.words, law.parameters, strict=True))
            found = law.drives_at({word: material.rate_number(one.key) for word, one in keys.items()})
            if found is not None:
                speed, trace, power = found
                yield (
                    f"{at}.viscosity: it drives in place of braking from |D| = {speed:.3g}/s on: there, with tr D = "
                    f"{trace:.3g}/s, it takes {power:.3g} W/m^3; a potential that grows with every rate brakes all"
                )


def _rotated(built: BuiltScene) -> Iterator[str]:
    """Linear materials that begin turned, or are thrown turning: to them a rotation is a strain."""
    for name, body in built.scene.bodies.items():
        if not isinstance(body, SoftBodySpec):
            continue
        materials = (body.material, *(region.material for region in body.regions.values()))
        if not any(getattr(material, "model", "") == "linear" for material in materials):
            continue
        start = 2.0 * np.arctan2(np.linalg.norm(body.orientation[1:]), abs(body.orientation[0]))
        turn = start + float(np.linalg.norm(body.angular_velocity)) * built.scene.time.n_steps * built.scene.time.dt
        strain = 1.0 - np.cos(min(turn, np.pi))
        if strain > ROTATED:
            yield (
                f"bodies.{name}.material: to 'linear' a rotation is a strain, here of up to {strain:.2g} from "
                "'orientation' and 'angular_velocity' alone: take 'corotated', which is as linear and turns freely"
            )


def _locking(built: BuiltScene) -> Iterator[str]:
    """Cloth that stretches so much less easily than it bends that its triangles hold it straight."""
    theta, layout = built.theta, built.model.system.parameters
    for body in built.model.bodies:
        if not isinstance(body, ThinBody) or len(body.layers) < 2 or not len(body.triangles):
            continue
        membrane, bending = (
            {word: float(layout.view(theta, f"bodies.{body.name}.{modulus.key}"))
             for word, modulus in zip(layer.law.words, layer.law.parameters, strict=True)}
            for layer in body.layers
        )  # fmt: skip
        k11 = 4.0 * float(body.layers[0].law.at_rest(membrane)[1][0, 0])
        k_b = bending["stiffness"] if "stiffness" in bending else bending["rigidity"] / 3.0
        sides = body.points[body.triangles] - body.points[np.roll(body.triangles, 1, axis=1)]
        ratio = k11 * float(np.median(np.linalg.norm(sides, axis=2))) ** 2 / k_b if k_b else 0.0
        if ratio > LOCKING:
            yield (
                f"bodies.{body.name}.material.membrane: k11 edge^2 is {ratio:.3g} times the bending stiffness of an "
                "edge, and triangles that do not stretch let the cloth bend along their edges alone: give a finer or "
                "an irregular mesh, or a softer membrane"
            )


def _torn(built: BuiltScene) -> Iterator[str]:
    """Cloth whose triangles do not meet: nodes that a file has twice, or no hinge for a bending stiffness."""
    for body in built.model.bodies:
        if not isinstance(body, ThinBody) or not len(body.triangles):
            continue
        _, place, uses = np.unique(body.points, axis=0, return_inverse=True, return_counts=True)
        twice = np.flatnonzero(uses[place.ravel()] > 1)
        apart = np.setdiff1d(twice, np.concatenate([np.zeros(0, int), *(seam.pairs.ravel() for seam in body.seams)]))
        if apart.size:
            yield (
                f"bodies.{body.name}.mesh: {apart.size} nodes, such as {apart[0]}, lie where others do and no seam "
                "joins them: the cloth is cut there (merge them in the file, or give 'seams')"
            )
        spec = built.scene.bodies[body.name]
        if isinstance(spec, ClothBodySpec) and spec.material.bending is not None and len(body.layers) == 1:
            yield f"bodies.{body.name}.material.bending: nothing reads this: no two triangles share an edge"


def _away(built: BuiltScene, body: str, point: FloatArray) -> tuple[float, float]:
    """Return how far a point is from the box around a body in its rest frame, and the size of that [m]."""
    low, high = extent(built, body)
    return float(np.linalg.norm(np.maximum(np.maximum(low - point, point - high), 0.0))), float((high - low).max())


def _markers(built: BuiltScene) -> Iterator[str]:
    for name, marker in built.scene.markers.items():
        if not isinstance(marker, PointMarkerSpec) or not built.model.body(marker.body).has_frame:
            continue
        away, size = _away(built, marker.body, np.array(marker.point))
        if away > FAR * size:
            yield (
                f"markers.{name}.point: it is {away:.3g} m off its body '{marker.body}', which is {size:.3g} m across "
                "(lengths are in m)"
            )


def _centres(built: BuiltScene) -> Iterator[str]:
    """Centres of mass far outside their bodies."""
    layout, theta = built.model.system.parameters, built.theta
    for body in built.model.bodies:
        place = f"bodies.{body.name.replace('/', '.links.', 1)}"
        block = f"{place}.centre"
        if block not in layout or not body.rest.size:
            continue
        away, size = _away(built, body.name, np.ravel(layout.view(theta, block)))
        if away > FAR * size > 0.0:
            yield (
                f"{place}.center_of_mass: it is {away:.3g} m off its body, which is {size:.3g} m across "
                "(in the body's frame, lengths in m)"
            )


def _stops(built: BuiltScene) -> Iterator[str]:
    """Joints that start beyond their stops."""
    numbers = built.numbers
    known = {entry.name: entry.indices.ravel() for entry in numbers.layout.entries}
    for name, index in known.items():
        place, _, key = name.rpartition(".")
        if key not in ("lower", "upper") or ".tendons." in name:
            continue
        start = f"{place.removesuffix('.limits')}.start.angle" if place.endswith(".limits") else f"{place}.value"
        value = float(numbers.values[known[start][0]]) if start in known else 0.0
        limit = float(numbers.values[index[0]])
        beyond = limit - value if key == "lower" else value - limit
        if beyond > BEYOND * max(1.0, abs(limit)):
            yield (
                f"{start}: starts at {value:.4g}, {beyond:.3g} beyond its {key} stop at {limit:.4g} (rad, m), which "
                "throws it back; start it within, or move the stop"
            )
