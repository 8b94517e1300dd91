"""Rigid bodies and moving obstacles in a picture, and the poses they should take."""

from typing import Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.io.trajectory import GoalData, RunData, SolidData
from add.typing import FloatArray
from add.view.parts import EDGE_COLOUR, GIVEN_COLOUR, SHINE, TARGET_COLOUR, Canvas, Moment, Part, in_front, not_in_front
from add.view.quantities import Quantity
from add.view.shapes import polylines, shaded, solid_meshes


@final
class Solid(Part):
    """A rigid body with lines that show how it is turned; grey if its motion is given."""

    def __init__(self, canvas: Canvas, index: int, solid: SolidData) -> None:
        self._data, self._index, self._solid = canvas.data, index, solid
        surface, lines = solid_meshes(solid, 0.05 * canvas.span)
        self._surface = surface
        self._actors: list[Any] = []
        self._coloured: tuple[Any, ...] = ()
        if surface is not None:
            style: dict[str, Any] = {"color": GIVEN_COLOUR}
            if not solid.kinematic:
                surface.point_data["value"] = np.zeros(surface.n_points)
                style = {"scalars": "value", "cmap": "viridis"}
            actor = canvas.add(surface, f"solid {index}", smooth_shading=True, **SHINE, **style)
            self._actors.append(actor)
            self._coloured = () if solid.kinematic else (actor,)
        if lines.n_points:
            actor = canvas.add(
                lines, f"solid edges {index}", color=EDGE_COLOUR, line_width=1.3 * canvas.pixel, lighting=False
            )
            not_in_front(actor)
            self._actors.append(actor)

    @property
    def coloured(self) -> tuple[Any, ...]:
        """The surface, unless its motion is given."""
        return self._coloured

    @property
    def casting(self) -> tuple[tuple[Any, Any], ...]:
        """The surface."""
        return () if self._surface is None else ((self._surface, self._actors[0]),)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Place the body."""
        matrix = pose_between(self._data, self._solid, moment)
        for actor in self._actors:
            actor.user_matrix = matrix
        if self._coloured:
            assert self._surface is not None
            places = np.asarray(self._surface.points, dtype=float)
            values = quantity.at(self._index, moment.before, places)
            if moment.share:
                values = moment.between(values, quantity.at(self._index, moment.after, places))
            self._surface.point_data["value"] = values


def pose_between(data: RunData, solid: SolidData, moment: Moment) -> FloatArray:
    """Return the pose (4, 4): the centre of mass moves straight, the body turns about one axis at a steady rate."""
    rotation, position = data.pose(solid, moment.before)
    centre = position + rotation @ solid.centre
    if moment.share:
        later, place = data.pose(solid, moment.after)
        turn = Rotation.from_matrix(rotation.T @ later).as_rotvec()
        centre = moment.between(centre, place + later @ solid.centre)
        rotation = rotation @ Rotation.from_rotvec(moment.share * turn).as_matrix()
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, centre - rotation @ solid.centre
    return matrix


def draw_goals(canvas: Canvas) -> None:
    """Draw what objectives want: bodies as red outlines, points as red crosses."""
    data = canvas.data
    solids = {solid.name: solid for solid in data.solids}
    surfaces = {body.name: body.surface for body in data.bodies} | {s.name: s.triangles for s in data.sheets}
    for name, goal in data.goals.items():
        if goal.body in solids:
            _ghost(canvas, name, solids[goal.body], goal)
        elif len(surfaces.get(goal.body, ())):
            mesh = shaded(goal.points, surfaces[goal.body])
            canvas.add(mesh, f"goal {name}", color=TARGET_COLOUR, opacity=0.16, smooth_shading=True)
        elif len(goal.points):
            reach = 0.02 * canvas.span
            crosses = [np.stack([x - arm, x + arm]) for x in goal.points for arm in reach * np.eye(3)]
            actor = canvas.add(
                polylines(crosses), f"goal {name}", color=TARGET_COLOUR, line_width=2.2 * canvas.pixel, lighting=False
            )
            in_front(actor, -66000.0)


def _ghost(canvas: Canvas, name: str, solid: SolidData, goal: GoalData) -> None:
    surface, lines = solid_meshes(solid, 0.05 * canvas.span)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = goal.rotation, goal.position
    if surface is not None:
        actor = canvas.add(surface, f"goal {name}", color=TARGET_COLOUR, opacity=0.14, smooth_shading=True)
        in_front(actor, 0.5)  # behind the floor it may stand on
        actor.user_matrix = matrix
    if lines.n_points:
        actor = canvas.add(
            lines, f"goal edges {name}", color=TARGET_COLOUR, line_width=1.5 * canvas.pixel, lighting=False
        )
        actor.user_matrix = matrix
