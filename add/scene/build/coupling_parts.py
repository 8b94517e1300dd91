"""Drag, fluids and air of a scene as joint parts, with the numbers they read."""

from collections.abc import Sequence

import numpy as np

from add.bodies import Body, Layouts, NetBody, NodalBody
from add.equations.signals import constant
from add.equations.sites import SiteKind
from add.errors import InputError
from add.joints import laws
from add.kernels.air import enclosed_volume
from add.scene.build.ties import OfScene, SceneParts
from add.scene.robots.mjcf import fluid_around
from add.scene.spec.actuation import FluidSpec
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.couplings import AirSpec, DragSpec
from add.scene.spec.links import robot_of
from add.terms import AddedMass
from add.ties import WeightedSum
from add.typing import FloatArray, IntArray


def drag(item: DragSpec, at: str, on: laws.BodySite, radius: float | None, parts: SceneParts) -> None:
    """Add the drag of a body as a whole; ``radius`` [m] of a rigid ball.

    Raises
    ------
    InputError
        Without a cross-section.
    """
    area = item.area if item.area is not None or radius is None else np.pi * radius**2
    if area is None:
        raise InputError(
            "the cross-section is known of rigid balls alone",
            place=f"{at}.area",
            found=f"null, of body '{item.on.body}'",
            expected="an area [m^2]",
        )
    numbers = (*parts.numbers_of(at, item, "density", "coefficient"), parts.number(f"{at}.area", area, "m^2"))
    wind = parts.signal(item.wind, f"{at}.wind", "m/s", 3)
    parts.joint_parts.append(laws.JointPart(laws.Drag, (on,), numbers, wind))


def body_forces(name: str, body: object, parts: SceneParts) -> None:
    """Add what acts on every body of a robot's file, wherever it is."""
    if isinstance(body, ArticulatedBodySpec):
        _fluid(name, body, parts)
        _compensation(name, body, parts)
        parts.owners += [name] * (len(parts.joint_parts) - len(parts.owners))


def _compensation(name: str, body: ArticulatedBodySpec, parts: SceneParts) -> None:
    """Add the forces on a robot's links that take weight away, whatever the gravity of the scene."""
    for k, (link, place, mass) in enumerate(robot_of(name, body).compensated):
        at = f"bodies.{name}.compensated.{k}"
        site = laws.BodySite(SiteKind.POINT, f"{name}/{link}", parts.constant(f"{at}.place", place, "m"))
        force = parts.follow(f"{at}.force", "N", WeightedSum((-mass,)), OfScene("gravity"), shape=(1, 3), each=True)
        parts.joint_parts.append(laws.JointPart(laws.PointForce, (site,), drive=constant(force)))


def _fluid(name: str, body: ArticulatedBodySpec, parts: SceneParts) -> None:
    """Add the fluid around the links of a robot, along and about the axes of their boxes."""
    robot, said = robot_of(name, body), body.fluid or FluidSpec()
    of_file = robot.fluid or fluid_around(robot)
    if body.fluid is None and robot.fluid is None:
        return
    if robot.fluid is None and said.density is None and said.viscosity is None:
        raise InputError("a fluid needs a density or a viscosity", place=f"bodies.{name}.fluid", found="neither")
    at, turning = f"bodies.{name}.fluid", "about"
    by_density: list[tuple[str, float]] = []
    by_viscosity: list[tuple[str, float]] = []
    wind = constant(f"{at}.wind")
    still = constant(parts.constant(f"{at}.still", np.zeros((1, 3)), "m/s"))
    for k, (link, centre, axes, edges) in enumerate(of_file.boxes):
        owner, mean = f"{name}/{link}", float(edges.mean())
        place = laws.BodySite(SiteKind.POINT, owner, parts.constant(f"{at}.boxes.{k}.centre", centre, "m"))
        for i in range(3):
            d, others = float(edges[i]), np.delete(edges, i)
            axis = laws.BodySite(SiteKind.DIRECTION, owner, parts.constant(f"{at}.boxes.{k}.{i}", axes[:, i], "-"))
            along = (place, 3.0 * np.pi * mean, 0.5 * float(others.prod()), wind)
            about = (laws.BodySite(SiteKind.SPIN, owner), np.pi * mean**3, d * float((others**4).sum()) / 64.0, still)
            for word, (site, viscous, inertial, drive) in (("along", along), (turning, about)):
                c, b = f"{at}.boxes.{k}.{i}.{word}.c", f"{at}.boxes.{k}.{i}.{word}.b"
                units = ("N m s", "N m s^2") if word == turning else ("N s/m", "N s^2/m^2")
                parts.blocks += [(c, (), units[0]), (b, (), units[1])]
                by_viscosity.append((c, viscous))
                by_density.append((b, inertial))
                parts.joint_parts.append(laws.JointPart(laws.AxialDrag, (site, axis), (c, b), drive))
    rho, beta = f"{at}.ellipsoids.density", f"{at}.ellipsoids.viscosity"
    for k, (link, centre, axes, values) in enumerate(of_file.ellipsoids):
        owner, own = f"{name}/{link}", f"{at}.ellipsoids.{k}"
        place = laws.BodySite(SiteKind.POINT, owner, parts.constant(f"{own}.centre", centre, "m"))
        first, second = (
            laws.BodySite(SiteKind.DIRECTION, owner, parts.constant(f"{own}.{i}", axes[:, i], "-")) for i in range(2)
        )
        numbers = [
            parts.constant(f"{own}.{key}", np.array(value), unit)
            for (key, unit), value in zip(laws.ELLIPSOID_NUMBERS, values, strict=True)
        ]
        sites = (place, laws.BodySite(SiteKind.SPIN, owner), first, second)
        parts.joint_parts.append(laws.JointPart(laws.EllipsoidInFluid, sites, (rho, beta, *numbers), wind))
    if of_file.ellipsoids:
        parts.blocks += [(rho, (), "kg/m^3"), (beta, (), "Pa s")]
        by_density.append((rho, 1.0))
        by_viscosity.append((beta, 1.0))
    parts.blocks.append((f"{at}.wind", (1, 3), "m/s"))
    targets = {"density": by_density, "viscosity": by_viscosity, "wind": [(f"{at}.wind", 1.0)]}
    for key, unit in (("density", "kg/m^3"), ("viscosity", "Pa s"), ("wind", "m/s")):
        own = getattr(said, key)
        value = getattr(of_file, key) if own is None else own
        parts.add(f"{at}.{key}", value, unit, targets[key], fixed=own is None)


def air(item: AirSpec, at: str, body: Body, parts: SceneParts) -> None:
    """Add the air on the faces of a body.

    Raises
    ------
    InputError
        If the body has no faces, or a given motion.
    """
    points, nodes, faces = _surface(body)
    if not faces.size or not body.moves:
        raise InputError(
            "the air acts on faces of bodies that move by forces",
            place=f"{at}.body",
            found=f"'{item.body}', {'without faces' if body.moves else 'whose motion is given'}",
            expected="a sheet, or a soft or rigid body with a surface of triangles; for round ones a coupling 'drag'",
        )
    used, faces = np.unique(faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    sites = []
    for k in used:
        if nodes is None:
            arm = parts.constant(f"{at}.corners.{k}", points[k], "m")
            sites.append(laws.BodySite(SiteKind.POINT, item.body, arm))
        else:
            sites.append(laws.BodySite(SiteKind.NODES, item.body, nodes=nodes[[k]], weights=np.ones(1)))
    closed = is_closed(faces)
    if closed and enclosed_volume(points[used].ravel(), faces) < 0.0:
        faces = faces[:, ::-1]
    numbers = parts.numbers_of(at, item, "density", "coefficient", "friction")
    wind = parts.signal(item.wind, f"{at}.wind", "m/s", 3)
    kind, corners = laws.AirOnClosedFaces if closed else laws.AirOnFaces, tuple(sites[k] for k in faces.ravel())
    parts.joint_parts.append(laws.JointPart(kind, corners, numbers, wind))
    if item.depth is not None:
        if nodes is None or not isinstance(body, NodalBody) or body.own_nodes.size < body.rest.shape[0]:
            raise InputError("the medium follows nodes, none of which another body carries", place=f"{at}.depth",
                             found=f"'{item.body}'", expected="null")  # fmt: skip
        depth, owner, walls = parts.number(f"{at}.depth", item.depth, "m"), body, nodes[used][faces]

        def carried(_: Sequence[Body], layouts: Layouts) -> list[AddedMass]:
            numbers_of = np.concatenate([layouts.parameters[key].indices.ravel() for key in (numbers[0], depth)])
            return [AddedMass(owner.first_node(layouts) + walls, numbers_of)]

        parts.terms.append(carried)


def _surface(body: Body) -> tuple[FloatArray, IntArray | None, IntArray]:
    """Return the points of a surface, the nodes that they are (None for points of a frame), and triangles of points."""
    if isinstance(body, NetBody):  # a sheet that touches nothing has its faces all the same
        return body.points, np.arange(body.points.shape[0]), body.triangles
    mesh = body.contact_mesh()
    if mesh is None:
        return np.zeros((0, 3)), None, np.zeros((0, 3), dtype=np.int64)
    return mesh.points, mesh.nodes, mesh.faces


def is_closed(faces: IntArray) -> bool:
    """Return whether every side of every triangle (m, 3) is one of another, walked the other way."""
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there, back = (np.unique(part, axis=0) for part in (sides, sides[:, ::-1]))
    return there.shape[0] == sides.shape[0] and np.array_equal(there, back)
