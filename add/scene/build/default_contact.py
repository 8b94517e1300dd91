"""Numbers of contact for scenes that give none: from the weights and sizes of what may touch, once, at build.

Of a moving body count its mass m, its thinnest part L and the speed v of an impact; of a tree those of all links,
and at least `THIN_LINKS` of its extent. L is at most that of what stands still, and v^2 = v_0^2 + 2 g max(h, 5 L) with
the speed v_0 at the start and the free fall h along gravity to the next obstacle. The stiffness of one point that stops
the body within a tenth of L, and into which the heaviest body of the scene presses less than one per cent of L, onset
included, is

    k = max(100 m v^2 / L^2, 400 m_max g / L).

Points of bodies with frames take the greatest k of the scene. Nodes of soft bodies need not be stiffer than what is
behind them: 10 E h with the width h of the surface between nodes (10 times a spring of a net), but at least what stops
the body where a sixth of its surface touches, and at most k. Meshes take the same over the area of a vertex, 10 E / L,
and so much that the pressure of an impact, v sqrt(E rho) + rho (v^2 + g L) with the greater density of two bodies, uses
`SKIN` of the skins; of two bodies the softer one counts, of all pairs the stiffest.

The damping is half of critical for the mass behind a point: the heaviest body, or a node. Head on, the heaviest body
rebounds with `RESTITUTION` of its speed from one point, lighter ones and flat faces with less. Force and damping set in
over two per cent of the thinnest part.
"""

from collections.abc import Iterator

import numpy as np

from add.bodies import Body, LinkBody, NodalBody, RigidBody, SoftBody, TreeBody
from add.contact import BodyContact, MeshContact
from add.contact.restitution import clipped_restitution_from_damping
from add.kernels.contact_detection import meeting_pairs
from add.kernels.shape_grid import GROUP
from add.model import meeting_meshes
from add.model.impacts import ENOUGH_STEPS
from add.scene.build.built import BuiltScene, contact_terms
from add.scene.build.mesh_contact import ONSET as MESH_ONSET
from add.scene.build.scenery import Moving, Scenery, mean, vertex_area
from add.scene.spec.common import HARD, Spec
from add.scene.spec.links import strings_in
from add.scene.spec.scene import SceneSpec
from add.simulation.impacts import FELT, Impacts
from add.typing import FloatArray

#: Depth of an impact, and shares of the thinnest part: that of static depth with `ONSET`, and of the onset.
IMPACT, STATIC, ONSET = 0.1, 0.0025, 0.02
#: Share of that ramp by which damping sets in where a pair has a restitution: too short to change any, but a force that
#: jumps may be zero on neither side, and half of such runs met a step without a solution.
SHORT = 1e-3
#: Least height of fall that is reckoned with, in thinnest parts.
FALL = 5.0
#: Stiffness of contact over that of what is behind it.
STIFFER = 10.0
#: Share of a body's surface that touches where it lands flat.
FLAT = 1.0 / 6.0
#: Share of the skins that the pressure of an impact may use.
SKIN = 0.15
#: Damping over the critical one, and the restitution that follows.
DAMPING_RATIO = 0.5
RESTITUTION = clipped_restitution_from_damping(2.0 * DAMPING_RATIO, 1.0, 1.0)
#: What stands for gravity where there is none and nothing moves at the start [m/s^2].
WEIGHT = 9.81
NUMBERS = ("stiffness", "damping", "onset", "damping_ramp")


def without_numbers(scene: SceneSpec) -> bool:
    """Return whether a scene leaves the stiffness of its contact open."""
    return scene.contact.stiffness is None and scene.contact.friction_law not in HARD


#: Settings of contact that the rule reads, or that decide which of its numbers are there.
_READ = ("law", "friction_law", "thickness", "stiffness", "stiffness_per", "damping", "onset", "damping_ramp", "nodes",
         "mesh", "pairs", "between_bodies", "stick_stiffness")  # fmt: skip


def changes_numbers(path: str) -> bool:
    """Return whether an override at a path of a scene changes what the rule reads of `contact`."""
    section, _, key = path.partition(".")
    return section == "contact" and (not key or key.split(".")[0] in _READ)


def default_contact(scene: SceneSpec, built: BuiltScene) -> dict[str, float]:
    """Return path -> value of the numbers of contact that a scene leaves open, of three digits.

    Parameters
    ----------
    scene : SceneSpec
        `without_numbers`.
    built : BuiltScene
        The scene with any numbers in their place.
    """
    return {path: float(f"{value:.3g}") for path, value in Touching(scene, built).numbers()}


def impacts(built: BuiltScene, eager: bool) -> Impacts:
    """Return what says whether the steps of a scene resolve its impacts: of rigid bodies, links and soft bodies.

    Where numbers are given (not ``eager``) nets are left out: what their middle does at once is the work of what leads
    it. Without a damping that is `FELT`, which feeds what it does not stop within a step, impacts then divide none, and
    nodes of soft bodies never count alone.
    """
    model = built.model
    terms = contact_terms(model.system)
    tables = (t.pairs.tables() if isinstance(t, BodyContact) else t.tables for _, t in terms)
    felt, theta = FELT * built.scene.time.dt, built.theta
    damped = any((theta[table[..., 1]] > felt * theta[table[..., 0]]).any() for table in tables)
    rows: list[slice] = []
    thin: list[float] = []
    trees: list[slice] = []
    soft: list[int] = []
    rigid: dict[int, FloatArray] = {}
    for one in Touching(built.scene, built).touching():
        first = model.body(one.parts[0])
        if not eager and isinstance(first, NodalBody) and not isinstance(first, SoftBody):
            continue
        soft += [len(rows)] if isinstance(first, SoftBody) and damped else []
        if isinstance(first, RigidBody):
            centre = first.centre(model.layouts)
            arms = first.contact_points().arms - np.where(centre >= 0, built.theta[centre], 0.0)
            rigid[len(rows)] = np.abs(arms).max(axis=0, initial=0.0)
        links = [body.name for body in model.bodies if isinstance(body, LinkBody) and body.tree == one.name]
        trees += [slice(len(rows), len(rows) + len(links))] if links else []
        for name in links or [one.name]:
            x = model.lift.rows[name]
            rows.append(slice(x.start, x.stop if isinstance(model.body(name), NodalBody) else x.start + 3))
            thin.append(one.thin)
    arms = np.reshape(list(rigid.values()), (-1, 3))
    return Impacts(
        model.lift, tuple(rows), np.array(thin), tuple(trees), tuple(soft), tuple(rigid), arms,
        tuple(number for number, _ in terms), eager or damped, eager, built.scene.time.substeps != "off",
    )  # fmt: skip


class Touching(Scenery):
    """The rule above for one scene."""

    def rates(self) -> list[tuple[str, float, float]]:
        """Return of each body its name, the speed of an impact [m/s] and the rate at which one point stops it [1/s]."""
        needs = [(one, self.needs(one)) for one in self.moving]
        return [(one.name, speed, float(np.sqrt(need / one.mass))) for one, (need, speed, _) in needs]

    def needs(self, one: Moving) -> tuple[float, float, float]:
        """Return the stiffness that one point of a body needs [N/m], its speed of impact [m/s], and L [m]."""
        thin, partners, gravity = one.thin, self.partners(one), self.gravity or WEIGHT
        speed = np.sqrt((one.speed + one.coming) ** 2 + 2.0 * gravity * max(one.fall, FALL * thin))
        approach = one.speed + max([one.coming, *(other.speed for other in partners)])
        if not self.gravity and approach > 0.0:
            speed = approach
        heaviest = max([one.mass, *(other.mass for other in partners)])
        return max(one.mass * (speed / (IMPACT * thin)) ** 2, heaviest * gravity / (STATIC * thin)), speed, thin

    def touching(self) -> list[Moving]:
        """Return the moving bodies that may touch anything."""
        surfaces = [item.name for item in self.still]
        return [
            one
            for one in self.moving
            if any(self._touch(part, name) for part in one.parts for name in surfaces) or self.partners(one)
        ] or self.moving

    def numbers(self) -> Iterator[tuple[str, float]]:
        """Yield the paths and values of the numbers."""
        kinds = {body.name: body for body in self.model.bodies}
        self.moving = self.touching()
        frames = [one for one in self.moving if not isinstance(kinds[one.name], NodalBody)]
        nets = [one for one in self.moving if isinstance(kinds[one.name], NodalBody)]
        if not self.moving:
            yield "contact.stiffness", 1e3  # nothing moves that could touch
            return
        of_frames = self._of_frames(frames, kinds) if frames else None
        of_nodes = self._of_nodes(nets, kinds) if nets else None
        first = of_frames or of_nodes
        assert first is not None
        contact, law = self.scene.contact, self.scene.contact.law
        yield "contact.stiffness", first[0]
        if contact.damping is None:
            yield "contact.damping", first[1]
        # A restitution is that of a contact that sets in at once, which many nodes cannot bear; laws with layers set in
        # by themselves.
        sets_in = ONSET * min(self.needs(one)[2] for one in self.moving)
        restituted = any(row.restitution is not None for row in contact.pairs) and not nets
        sudden = law in ("penalty", "penalty+wall")
        layers = [one for one in (contact.thickness, *(row.thickness for row in contact.pairs)) if one is not None]
        sets_in = min([sets_in, *(0.2 * thickness for thickness in layers)])
        if contact.onset is None and sudden:
            yield "contact.onset", 0.0 if restituted else sets_in
        if contact.damping_ramp is None and law != "soft-max":
            yield "contact.damping_ramp", SHORT * sets_in if restituted else sets_in
        if of_frames and of_nodes:
            yield from self._further("nodes", of_nodes)
        of_meshes = self._of_meshes({one.name: one for one in self.moving})
        if of_meshes:
            yield from self._further("mesh", of_meshes[:2])
            area, sets_in = of_meshes[2:]
            if contact.stick_stiffness is not None and contact.mesh.stick_stiffness is None:
                per_area = contact.stiffness_per == "area"
                yield "contact.mesh.stick_stiffness", contact.stick_stiffness / (1.0 if per_area else area)
            for key in ("onset", "damping_ramp"):
                if getattr(contact, key) is None and getattr(contact.mesh, key) is None and sudden:
                    yield f"contact.mesh.{key}", sets_in

    def _further(self, section: str, own: tuple[float, float]) -> Iterator[tuple[str, float]]:
        """Yield stiffness and damping of nodes or meshes; a given damping counts for them, too."""
        said = getattr(self.scene.contact, section)
        stiffness, damping = own
        if said.stiffness is None:
            yield f"contact.{section}.stiffness", stiffness
        if said.damping is None and self.scene.contact.damping is None:
            share = 1.0 if said.stiffness is None else float(np.sqrt(said.stiffness / stiffness))
            yield f"contact.{section}.damping", damping * share

    def _per(self, body: Body) -> float:
        """Return the area of a point where stiffness counts per area [m^2], else one."""
        if self.scene.contact.stiffness_per == "node":
            return 1.0
        parts = [body]
        if isinstance(body, TreeBody):
            parts = [part for part in self.model.bodies if isinstance(part, LinkBody) and part.tree == body.name]
        return mean(np.concatenate([part.contact_points().areas for part in parts])) or 1.0

    def _of_frames(self, bodies: list[Moving], kinds: dict[str, Body]) -> tuple[float, float]:
        stiffness, heaviest = max(self.needs(one)[0] for one in bodies), max(one.mass for one in bodies)
        area = min(self._per(kinds[one.name]) for one in bodies)
        return stiffness / area, _damping(stiffness, heaviest) / area

    def _of_nodes(self, bodies: list[Moving], kinds: dict[str, Body]) -> tuple[float, float]:
        numbers = []
        for one in bodies:
            body = kinds[one.name]
            need, _, _ = self.needs(one)
            n = max(body.contact_points().radii.size, 1)
            stiffness = min(need, max(STIFFER * self._young(body)[1], need / max(FLAT * n, 1.0)))
            area = self._per(body)
            numbers.append((stiffness / area, _damping(stiffness, one.mass / body.n_nodes) / area))
        return max(k for k, _ in numbers), max(c for _, c in numbers)

    def _of_meshes(self, known: dict[str, Moving]) -> tuple[float, float, float, float] | None:
        meeting = meeting_meshes(self.model.bodies, self.model.contact)
        numbers, reaches, areas = [], [], []
        for k, l in meeting.pairs:
            names = [meeting.bodies[i].name.partition("/")[0] for i in (k, l)]
            moving = [known[name] for name in names if name in known]
            if not moving:
                continue
            reach = 0.5 * sum(self._thickness(meeting.bodies[i]) for i in (k, l))
            speed = sum(self.needs(one)[1] for one in {one.name: one for one in moving}.values())
            meet = [(known[name], meeting.bodies[i]) for i, name in zip((k, l), names, strict=True) if name in known]
            impact = (
                speed,
                max(self._density(one, body) for one, body in meet),
                max(self.needs(one)[0] for one in moving),
            )
            numbers.append(min(self._of_mesh(one, body, impact, reach) for one, body in meet))
            reaches.append(reach)
            areas += [vertex_area(body) or self._thickness(body) ** 2 for _, body in meet]
        if not numbers:
            return None
        return max(k for k, _ in numbers), max(c for _, c in numbers), min(areas), MESH_ONSET * min(reaches)

    def _thickness(self, body: Body) -> float:
        return 2.0 * float(self.theta[self.model.system.parameters[f"bodies.{body.name}.half_thickness"].start])

    def _density(self, one: Moving, body: Body) -> float:
        """Return the density of a soft body, of others that of the box around them [kg/m^3]."""
        if isinstance(body, SoftBody):
            return float(self._number(body, "density"))
        extent = np.maximum(np.ptp(body.rest, axis=0), one.thin) if body.rest.size else np.full(3, one.thin)
        return one.mass / float(extent.prod())

    def _of_mesh(
        self, one: Moving, body: Body, impact: tuple[float, float, float], reach: float
    ) -> tuple[float, float]:
        """Return what one side asks for: stiffness [N/m^3] and damping [N s/m^3].

        ``impact``: speed [m/s], the greater density [kg/m^3], and the greater stiffness that one point needs [N/m].
        """
        mesh = body.contact_mesh()
        assert mesh is not None
        area = vertex_area(body) or self._thickness(body) ** 2
        (speed, density, most), gravity = impact, self.gravity or WEIGHT
        need, _, thin = self.needs(one)
        young = self._young(body)[0]
        # Skins are thinner than bodies: an impact has half of them to stop in.
        most *= max(1.0, (IMPACT * thin / (0.5 * reach)) ** 2)
        if not np.isfinite(young):
            return most / area, _damping(most, one.mass) / area
        flat = need / max(FLAT * len(mesh.points), 1.0) / area
        pressure = speed * np.sqrt(young * density) + density * (speed**2 + gravity * thin)
        stiffness = min(max(STIFFER * young / thin, flat, pressure / (SKIN * reach)), most / area)
        return stiffness, _damping(stiffness * area, one.mass / body.n_nodes) / area


def _damping(stiffness: float, mass: float) -> float:
    return 2.0 * DAMPING_RATIO * float(np.sqrt(stiffness * mass))


# --- Texts about the contact of a scene: numbers that it leaves open, and steps that are too long for its impacts -----

#: Share of the thinnest part that an impact may move in a step without a warning.
FAST = 0.8
#: How many times the mass of the lightest body the heaviest may have without a word.
LIGHT = 1e3


def read_by_contact(built: BuiltScene) -> set[int]:
    """Return where numbers of theta are that contact reads between what may touch."""
    found: set[int] = set()
    for arrays in (points.arrays for points in built.model.term(BodyContact)):
        run, shape = meeting_pairs(arrays).T
        row, column = np.unique([arrays.runs[run, GROUP], arrays.columns[shape, 0]], axis=1)
        found |= {*arrays.tables[row, column].ravel().tolist()}
    for meshes in built.model.term(MeshContact):
        found |= {*meshes.tables.ravel().tolist(), *meshes.thickness.tolist()}
    return found


def said_numbers(scene: SceneSpec, built: BuiltScene) -> list[str]:
    """Return in words the numbers of contact that a scene leaves open, and the step that resolves its impacts.

    Parameters
    ----------
    scene, built : the scene as it is given, and as it was built
    """
    if not without_numbers(scene) or not read_by_contact(built):
        return []
    contact = built.scene.contact
    sections: dict[str, Spec] = {"contact": contact, "contact.nodes": contact.nodes, "contact.mesh": contact.mesh}
    text = ", ".join(
        f"{at}.{key} {value:.3g} {_unit(part, key, contact.stiffness_per)}"
        for at, part in sections.items()
        for key in NUMBERS
        if (value := getattr(part, key, None))
    )
    of = Touching(built.scene, built)
    rates = of.rates()
    if not rates:
        return [f"by weight and size: {text}"]
    name, speed, rate = max(rates, key=lambda item: item[2])
    lasts = np.pi / rate / np.sqrt(1.0 - DAMPING_RATIO**2)
    dt = scene.time.dt
    framed = any(body.moves and body.has_frame and body.contact_points().radii.size for body in built.model.bodies)
    framed = framed and not contact.has_layer
    rebounds = f"; the heaviest body rebounds head on with {RESTITUTION:.1f} of its speed" if framed else ""
    return [
        f"by weight and size: {text}{rebounds}",
        f"an impact of '{name}' at {speed:.2g} m/s lasts {lasts:.2g} s or {lasts / dt:.2g} steps; time.dt = "
        f"{lasts / ENOUGH_STEPS:.1g} s resolves it",
        *_light_bodies(built, of),
    ]


def _light_bodies(built: BuiltScene, of: Touching) -> list[str]:
    """Return in words that rigid bodies or trees far lighter than others take long, and the numbers that help."""
    contact = built.scene.contact
    bodies = [one for one in of.touching() if not isinstance(built.model.body(one.parts[0]), NodalBody)]
    lightest, heaviest = (pick(bodies, key=lambda one: one.mass) for pick in (min, max)) if bodies else (None, None)
    if not lightest or not heaviest or lightest.mass * LIGHT > heaviest.mass:
        return []
    share, k_d = np.sqrt(lightest.mass / heaviest.mass), contact.damping or 0.0
    k_t = contact.stick_stiffness or (contact.stiffness or 0.0) * built.scene.time.dt
    unit = _unit(contact, "damping", contact.stiffness_per)
    damping, stick = (f"{value * share:.2g} {unit}" for value in (k_d, k_t))
    return [
        f"'{lightest.name}' weighs {lightest.mass / heaviest.mass:.0e} of '{heaviest.name}': steps in which it touches "
        f"may take long; rows of contact.pairs for it, with damping {damping} and stick_stiffness {stick}, help"
    ]


def fast_impacts(built: BuiltScene) -> list[str]:
    """Return the free bodies and trees that move by most of their thinnest part in a step at their impact, in words."""
    scene = built.scene
    hard = scene.contact.friction_law in HARD
    if hard or scene.time.substeps == "auto" or not built.model.obstacles:
        return []
    dt, joined = scene.time.dt, set(strings_in(scene.couplings))
    touch = Touching(scene, built)
    movable = built.model.system.rotations
    free = {
        body.name
        for body in built.model.bodies
        if isinstance(body, RigidBody | TreeBody) and body.name not in joined
        and (isinstance(body, RigidBody) or built.model.system.dofs[body.name].start + 3 in movable)
    }  # fmt: skip
    falls = [
        (one, np.sqrt(one.speed**2 + 2.0 * touch.gravity * one.fall)) for one in touch.touching() if one.name in free
    ]
    needs = [(one.name, speed, one.thin) for one, speed in falls]
    needs = [(name, speed, thin) for name, speed, thin in needs if speed * dt > FAST * thin]
    if not needs:
        return []
    name, speed, thin = max(needs, key=lambda item: item[1] / item[2])
    gains = ", and may gain energy" if any(isinstance(body, TreeBody) for body in built.model.bodies) else ""
    others = f", and {len(needs) - 1} more bodies" if len(needs) > 1 else ""
    return [
        f"time.dt: an impact of '{name}' at {speed:.2g} m/s moves {speed * dt / thin:.2g} times its thinnest part in a "
        f"step{others}: its rebound is one of the step{gains}; try {0.1 * thin / speed:.1g} s, or "
        "time.substeps 'auto'"
    ]


def _unit(part: Spec, key: str, per: str) -> str:
    unit = part.unit_of(key)
    return f"{unit}^3" if per == "area" and unit.endswith("/m") else unit
