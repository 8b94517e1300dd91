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

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from add.bodies import Body, LinkBody, MassSpringBody, NodalBody, SoftBody, TreeBody
from add.contact.restitution import clipped_restitution_from_damping
from add.equations.kinematics import Kinematics
from add.kernels.rotation import rotation_matrix
from add.kernels.shape_codes import CAPSULE, CYLINDER, PLANE, SPHERE
from add.materials import element_loops
from add.model import meeting_meshes
from add.model.overlaps import Surface, still_surfaces
from add.scene.build.built import BuiltScene
from add.scene.build.mesh_contact import ONSET as MESH_ONSET
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray

#: Depth of an impact, and shares of the thinnest part: that of static depth with `ONSET`, and of the onset.
IMPACT, STATIC, ONSET = 0.1, 0.0025, 0.02
#: Least height of fall that is reckoned with, in thinnest parts.
FALL = 5.0
#: Stiffness of contact over that of what is behind it.
STIFFER = 10.0
#: Share of a body's surface that touches where it lands flat.
FLAT = 1.0 / 6.0
#: Share of the skins that the pressure of an impact may use.
SKIN = 0.15
#: Density by which what has no size, a particle, gets one [kg/m^3].
WATER = 1000.0
#: Least thickness of a tree that counts, over its extent.
THIN_LINKS = 0.1
#: Damping over the critical one, and the restitution that follows.
DAMPING_RATIO = 0.5
RESTITUTION = clipped_restitution_from_damping(2.0 * DAMPING_RATIO, 1.0, 1.0)
#: What stands for gravity where there is none and nothing moves at the start [m/s^2].
WEIGHT = 9.81
STIFF = ("stiffness", "damping")
NUMBERS = (*STIFF, "onset", "damping_ramp")
#: Steps of the search for what lies below, and how near it counts as found, over the way to it.
_LOOKS, _NEAR = 60, 1e-3


class _Moving(NamedTuple):
    """A body, or a tree: mass [kg], thinnest part [m], speed of an impact without what stands still around it [m/s]."""

    name: str
    mass: float
    thin: float
    fall: float
    speed: float


def without_numbers(scene: SceneSpec) -> bool:
    """Return whether a scene leaves the stiffness of its contact open."""
    return scene.contact.stiffness is None and scene.contact.friction_law not in ("exact", "impulse")


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


class Touching:
    """The rule above for one scene: what moves in it, and what its contact needs."""

    def __init__(self, scene: SceneSpec, built: BuiltScene) -> None:
        self.scene, self.model, self.theta = scene, built.model, built.theta
        model, theta = self.model, self.theta
        q, v = model.initial.evaluate(theta)
        self.kin = model.lift.kinematics(Kinematics(q, v, np.zeros_like(v), 0.0, 0), theta)
        self.masses = model.node_masses(theta)
        self.pull = np.array(model.system.parameters.view(theta, "gravity"))
        self.gravity = float(np.linalg.norm(self.pull))
        self.still = still_surfaces(model, self.kin, theta)
        self.thinnest_still = min([_thickness(shape.kind, shape.size) for shape in self.still], default=np.inf)
        self.moving = list(self._moving())

    # --- what is there ----------------------------------------------------------------------------------------------

    def _moving(self) -> Iterator[_Moving]:
        trees: dict[str, list[LinkBody]] = {}
        for body in self.model.bodies:
            if isinstance(body, LinkBody):
                trees.setdefault(body.tree, []).append(body)
        for body in self.model.bodies:
            if isinstance(body, LinkBody) or not body.moves:
                continue
            parts: list[Body] = list(trees[body.name]) if isinstance(body, TreeBody) else [body]
            parts = [part for part in parts if part.contact_points().radii.size or part.shapes or part.contact_mesh()]
            state = body.state(self.kin, self.masses, self.theta, self.model.layouts)
            mass = float(state.get("mass", 0.0))
            if not parts or mass <= 0.0:
                continue
            thin = min(self._thin(part, mass) for part in parts)
            if not 0.0 < thin < np.inf:
                thin = 2.0 * (0.75 * mass / np.pi / WATER) ** (1.0 / 3.0)
            if isinstance(body, TreeBody):  # robots carry thin plates that bear nothing
                places = [self.kin.q[self.model.lift.rows[part.name].start :][:3] for part in trees[body.name]]
                thin = max(thin, THIN_LINKS * float(np.ptp(places, axis=0).max()))
            speed = max(self._speed(part) for part in parts)
            fall = max(self._fall(part) for part in parts) if self.gravity else 0.0
            yield _Moving(body.name, mass, thin, fall, speed)

    def _thin(self, body: Body, mass: float) -> float:
        """Return the thinnest part of a body [m]."""
        if isinstance(body, NodalBody):
            out = _least_extent(body.rest)
            if isinstance(body, SoftBody):  # what is hollow or ring-shaped: 6 V / A is the width of a cube and a ball
                density = float(self._number(body, "density"))
                area = float(body.contact_points().areas.sum())
                out = min(out, 6.0 * mass / density / area) if area > 0.0 else out
            return max(out, self._width(body))
        if body.shapes:
            return min(_thickness(shape.kind, shape.size) for shape in body.shapes)
        points = body.contact_points()
        if points.radii.size and points.radii.max() > 0.0:
            return 2.0 * float(points.radii.max())
        extent = np.ptp(body.rest, axis=0) if body.rest.size else np.zeros(3)
        return float(extent[extent > 0.0].min(initial=np.inf))

    def _width(self, body: NodalBody) -> float:
        """Return the width of the surface, or of the net, between nodes [m]."""
        area = float(_mean(body.contact_points().areas))
        if area > 0.0:
            return float(np.sqrt(area))
        if isinstance(body, MassSpringBody) and body.edges.size:
            ends = body.points[body.edges]
            return float(np.median(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)))
        return 0.0

    def _speed(self, body: Body) -> float:
        """Return the greatest speed of a body at the start [m/s]."""
        rows = self.model.lift.rows[body.name]
        v = self.kin.v[rows.start : rows.stop].reshape(-1, 3)
        if not body.has_frame:
            return float(np.linalg.norm(v, axis=1).max())
        far = float(np.linalg.norm(body.rest, axis=1).max()) if body.rest.size else 0.0
        return float(np.linalg.norm(v[0]) + far * np.linalg.norm(v[1]))

    def _fall(self, body: Body) -> float:
        """Return the free fall of a body's lowest point to the next obstacle below [m]; zero where there is none."""
        start = self.model.lift.rows[body.name].start
        if body.has_frame:
            turn = rotation_matrix(self.kin.q[start + 3 : start + 6])
            points = body.contact_points()
            if not points.radii.size:
                return 0.0
            centre = body.centre(self.model.layouts)
            arms = points.arms - np.where(centre >= 0, self.theta[centre], 0.0)
            places, radii = self.kin.q[start : start + 3] + arms @ turn.T, points.radii
        else:
            places = self.kin.q[start : start + 3 * body.rest.shape[0]].reshape(-1, 3)
            radii = np.zeros(places.shape[0])
        down = self.pull / self.gravity
        lowest = int(np.argmax(places @ down + radii))
        return _below(self.still, places[lowest] + radii[lowest] * down, down)

    def _number(self, body: Body, key: str) -> Any:
        return self.model.system.parameters.view(self.theta, f"bodies.{body.name}.{key}")

    def _young(self, body: Body) -> tuple[float, float]:
        """Return Young's modulus [Pa] and the stiffness of a node's surroundings [N/m]; inf of what is rigid."""
        if isinstance(body, SoftBody):
            moduli = [float(self._number(body, modulus.key)) for modulus in body.law.parameters]
            mu, lame = element_loops(body.law).linear_moduli(np.array([moduli]))[0][0]
            young = mu * (3.0 * lame + 2.0 * mu) / (lame + mu)
            return young, young * self._width(body)
        if isinstance(body, MassSpringBody):
            stiffness = float(self._number(body, "stiffness")) if body.edges.size else 0.0
            width = self._width(body)
            return (stiffness / width if width else 0.0), stiffness
        return np.inf, np.inf

    def rates(self) -> list[tuple[str, float, float]]:
        """Return of each body its name, the speed of an impact [m/s] and the rate at which one point stops it [1/s]."""
        needs = [(one, self.needs(one)) for one in self.moving]
        return [(one.name, speed, float(np.sqrt(need / one.mass))) for one, (need, speed, _) in needs]

    # --- the rule ---------------------------------------------------------------------------------------------------

    def needs(self, one: _Moving) -> tuple[float, float, float]:
        """Return the stiffness that one point of a body needs [N/m], its speed of impact [m/s], and L [m]."""
        thin = min(one.thin, self.thinnest_still)
        gravity = self.gravity or WEIGHT
        speed = np.sqrt(one.speed**2 + 2.0 * gravity * max(one.fall, FALL * thin))
        approach = one.speed + max((other.speed for other in self.moving if other is not one), default=0.0)
        if not self.gravity and approach > 0.0:
            speed = approach
        heaviest = max(other.mass for other in self.moving)
        return max(one.mass * (speed / (IMPACT * thin)) ** 2, heaviest * gravity / (STATIC * thin)), speed, thin

    def numbers(self) -> Iterator[tuple[str, float]]:
        """Yield the paths and values of the numbers."""
        kinds = {body.name: body for body in self.model.bodies}
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
        if contact.onset is None and law in ("penalty", "penalty+wall"):
            yield "contact.onset", 0.0 if restituted else sets_in
        if contact.damping_ramp is None and law != "soft-max":
            yield "contact.damping_ramp", 0.0 if restituted else sets_in
        if of_frames and of_nodes:
            for key, value in zip(STIFF, of_nodes, strict=True):
                if getattr(contact.nodes, key) is None:
                    yield f"contact.nodes.{key}", value
        of_meshes = self._of_meshes({one.name: one for one in self.moving})
        if of_meshes:
            for key, value in zip(NUMBERS, of_meshes, strict=True):
                if getattr(contact.mesh, key) is None and (key in STIFF or law in ("penalty", "penalty+wall")):
                    yield f"contact.mesh.{key}", value

    def _per(self, body: Body) -> float:
        """Return the area of a point where stiffness counts per area [m^2], else one."""
        if self.scene.contact.stiffness_per == "node":
            return 1.0
        parts = [body]
        if isinstance(body, TreeBody):
            parts = [part for part in self.model.bodies if isinstance(part, LinkBody) and part.tree == body.name]
        return _mean(np.concatenate([part.contact_points().areas for part in parts])) or 1.0

    def _of_frames(self, bodies: list[_Moving], kinds: dict[str, Body]) -> tuple[float, float]:
        found = [(self.needs(one)[0], one.mass, self._per(kinds[one.name])) for one in bodies]
        stiffness, _, area = max(found)
        return stiffness / area, _damping(stiffness, max(mass for _, mass, _ in found)) / area

    def _of_nodes(self, bodies: list[_Moving], kinds: dict[str, Body]) -> tuple[float, float]:
        found = []
        for one in bodies:
            body = kinds[one.name]
            need, _, _ = self.needs(one)
            n = max(body.contact_points().radii.size, 1)
            stiffness = min(need, max(STIFFER * self._young(body)[1], need / max(FLAT * n, 1.0)))
            area = self._per(body)
            found.append((stiffness / area, _damping(stiffness, one.mass / len(body.rest)) / area))
        return max(k for k, _ in found), max(c for _, c in found)

    def _of_meshes(self, known: dict[str, _Moving]) -> tuple[float, float, float, float] | None:
        meeting = meeting_meshes(self.model.bodies, self.model.contact)
        found, reaches = [], []
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
            found.append(min(self._of_mesh(one, body, impact, reach) for one, body in meet))
            reaches.append(reach)
        if not found:
            return None
        sets_in = MESH_ONSET * min(reaches)
        return max(k for k, _ in found), max(c for _, c in found), sets_in, sets_in

    def _thickness(self, body: Body) -> float:
        return 2.0 * float(self.theta[self.model.system.parameters[f"bodies.{body.name}.half_thickness"].start])

    def _density(self, one: _Moving, body: Body) -> float:
        """Return the density of a soft body, of others that of the box around them [kg/m^3]."""
        if isinstance(body, SoftBody):
            return float(self._number(body, "density"))
        extent = np.maximum(np.ptp(body.rest, axis=0), one.thin) if body.rest.size else np.full(3, one.thin)
        return one.mass / float(extent.prod())

    def _of_mesh(
        self, one: _Moving, body: Body, impact: tuple[float, float, float], reach: float
    ) -> tuple[float, float]:
        """Return what one side asks for: stiffness [N/m^3] and damping [N s/m^3].

        ``impact``: speed [m/s], the greater density [kg/m^3], and the greater stiffness that one point needs [N/m].
        """
        mesh = body.contact_mesh()
        assert mesh is not None
        areas = body.contact_points().areas if mesh.areas is None else mesh.areas
        area = _mean(areas) or _face_area(mesh.points, mesh.faces) or self._thickness(body) ** 2
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
        return stiffness, _damping(stiffness * area, one.mass / len(body.rest)) / area


def _damping(stiffness: float, mass: float) -> float:
    return 2.0 * DAMPING_RATIO * float(np.sqrt(stiffness * mass))


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else 0.0


def _face_area(points: FloatArray, faces: Any) -> float:
    if not len(faces):
        return 0.0
    a, b, c = (points[faces[:, k]] for k in range(3))
    return float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / max(len(points), 1))


def _least_extent(points: FloatArray) -> float:
    """Return the extent of points along the axis along which it is least [m]."""
    middle = points - points.mean(axis=0)
    axes = np.linalg.eigh(middle.T @ middle)[1]
    return float(np.ptp(middle @ axes, axis=0).min()) if len(points) > 1 else 0.0


def _thickness(kind: int, size: Any) -> float:
    """Return the thinnest part of a shape [m]; of a mesh that of the box around it, of what has no end inf."""
    a, b, c = (float(x) for x in tuple(size)[:3])
    if kind == PLANE:
        return np.inf
    if kind in (SPHERE, CAPSULE):
        return 2.0 * a
    return 2.0 * (min(a, b) if kind == CYLINDER else min(a, b, c))


def _below(surfaces: list[Surface], place: FloatArray, down: FloatArray) -> float:
    """Return how far a point falls to the next surface [m], by steps as long as the distance to it; 0 to none."""
    nearest = np.inf
    for surface in surfaces:
        fallen = 0.0
        for _ in range(_LOOKS):
            gap = float(surface.gaps((place + fallen * down)[None])[0])
            fallen += max(gap, 0.0)
            if gap <= _NEAR * fallen:
                nearest = min(nearest, fallen)
                break
    return nearest if np.isfinite(nearest) else 0.0
