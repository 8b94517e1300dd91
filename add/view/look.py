"""How a picture is drawn, what a camera sees and where it stands, what is beside bodies; whether pyvista is there."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, final

import numpy as np

from add.errors import InputError
from add.io.trajectory_data import RunData
from add.typing import BoolArray, FloatArray
from add.view.quantities import solid_hull

if TYPE_CHECKING:
    import pyvista


#: From what is looked at to the camera, by name.
DIRECTIONS = {
    "fit": (0.55, -1.0, 0.42), "front": (0.0, -1.0, 0.0), "back": (0.0, 1.0, 0.0), "left": (-1.0, 0.0, 0.0),
    "right": (1.0, 0.0, 0.0), "top": (0.0, 0.0, 1.0),
}  # fmt: skip


@final
@dataclass(frozen=True)
class Look:
    """The contents and the style of a picture.

    Attributes
    ----------
    colour : str
        One of `add.view.COLOURS`.
    camera : str
        "fit", "front", "back", "left", "right", "top", or a direction "x,y,z" from what is looked at to the camera;
        each sees the whole motion. With "follow" before it, as "follow" or "follow front", the camera keeps to the
        bodies, and moves with their middle.
    arrows : bool, optional
        Contact forces as arrows; None: when coloured by "contact".
    edges : bool
        Edges of the surface triangles.
    plain : bool
        Without shadows and ambient occlusion, which take a while without a graphics card.
    """

    colour: str = "displacement"
    camera: str = "fit"
    arrows: bool | None = None
    edges: bool = False
    plain: bool = False

    @property
    def follows(self) -> bool:
        """Whether the camera moves with the bodies."""
        return self.camera.split(" ")[0] == "follow"

    @property
    def direction(self) -> FloatArray:
        """Unit vector from what is looked at to the camera.

        Raises
        ------
        InputError
            If the camera is no name and no direction.
        """
        text = self.camera.removeprefix("follow").strip() or "fit"
        try:
            away = np.array(DIRECTIONS.get(text) or [float(part) for part in text.split(",")])
        except ValueError:
            away = np.zeros(0)
        if away.shape != (3,) or not np.isfinite(away).all() or not (length := float(np.linalg.norm(away))) > 0.0:
            raise InputError(
                "unknown camera",
                found=repr(self.camera),
                expected=f"{', '.join(DIRECTIONS)}, x,y,z, or follow before it",
            )
        return away / length


def require_pyvista() -> None:
    """Refuse to draw where pyvista is not installed.

    Raises
    ------
    InputError
        With the command that installs it.
    """
    if find_spec("pyvista") is None:
        raise InputError("pictures of bodies need pyvista and VTK: pip install 'add-sim[view]'")


_STATES = 200


def round_number(value: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten from above.

    Examples
    --------
    >>> round_number(0.03)
    0.05
    """
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m for m in (1.0, 2.0, 5.0, 10.0) if m * power >= value * (1.0 - 1e-9)) * power)


def round_down(value: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten from below.

    Examples
    --------
    >>> round_down(0.03)
    0.02
    """
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m for m in (5.0, 2.0, 1.0) if m * power <= value * (1.0 + 1e-9)) * power)


def middles(data: RunData) -> FloatArray:
    """Middle of all bodies that move, in every state, (k, 3) [m]."""
    centres = [data.q[:, body.entries].reshape(data.n_states, -1, 3).mean(axis=1) for body in data.nodal]
    centres += [data.q[:, solid.entries][:, :3] for solid in data.solids if not solid.kinematic]
    return np.mean(centres, axis=0) if centres else np.zeros((data.n_states, 3))


def seen(x: FloatArray) -> BoolArray:
    """Which of the points (n, 3) are known."""
    return np.asarray(np.isfinite(x).all(axis=1))


def framing_points(data: RunData, middles: FloatArray | None = None) -> FloatArray:
    """Points round all that moves in states spread over the run, (m, 3): what a camera should see.

    A camera that follows sees the bodies alone, from their ``middles`` (k, 3) in all states: points are those about
    that of the first.
    """
    states = np.unique(np.linspace(0, data.n_states - 1, _STATES).round().astype(int))
    corners = []
    shifts = np.zeros((data.n_states, 3)) if middles is None else middles - middles[0]
    shift = shifts[states]
    for body in data.nodal:
        x = data.q[states, body.entries].reshape(len(states), -1, 3) - shift[:, None]
        ends = np.stack([x.min(axis=1), x.max(axis=1)])
        corners += [ends[list(pick), :, range(3)].T for pick in np.ndindex(2, 2, 2)]
    for solid in data.solids:
        hull = solid_hull(solid)
        for k in states:
            rotation, position = data.pose(solid, int(k))
            corners.append(hull @ rotation.T + position - shifts[k])
    if middles is not None:
        points = np.concatenate(corners) if corners else np.zeros((1, 3))
        return points[seen(points)]
    for line in data.lines.values():
        ends = line.ends[states] if line.kind != "load" else line.ends[states, :1]
        corners.append(ends.reshape(-1, 3))
    corners += [joint.place[states] for joint in data.joints.values()]
    corners += [x for _, x in data.targets.values()]
    solids = {solid.name: solid for solid in data.solids}
    for goal in data.goals.values():
        corners.append(goal.points)
        if goal.body in solids:
            corners.append(solid_hull(solids[goal.body]) @ goal.rotation.T + goal.position)
    points = np.concatenate(corners) if corners else np.zeros((0, 3))
    points = points[seen(points)]
    return points if len(points) else np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])


def largest_body(data: RunData) -> float:
    """Size of the largest body, diagonal of its box [m]."""
    shapes = [body.rest for body in data.nodal] + [solid_hull(solid) for solid in data.solids]
    spans = [float(np.linalg.norm(np.ptp(shape, axis=0))) for shape in shapes]
    return max(spans, default=0.0)


def aim(plotter: "pyvista.Plotter", points: FloatArray, least: float, away: FloatArray) -> None:
    """Look at ``points`` (m, 3) from the side of the unit vector ``away``, z up, from no nearer than ``least`` [m]."""
    camera = plotter.camera
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    # Seen from above y is up.
    right = np.cross((0.0, 1.0, 0.0) if abs(away[2]) > 0.999 else (0.0, 0.0, 1.0), away)
    right /= np.linalg.norm(right)
    up = np.cross(away, right)
    camera.view_angle = 28.0
    width, height = plotter.window_size
    half_height = 0.8 * np.tan(np.radians(camera.view_angle) / 2.0)  # a margin, and the scalar bar at the right
    half_width = half_height * width / height * 0.9
    distance = 0.0
    for _ in range(3):  # centre the picture, which perspective shifts
        arm = points - centre
        depth = arm @ away
        distance = float(
            max((np.abs(arm @ right) / half_width + depth).max(), (np.abs(arm @ up) / half_height + depth).max())
        )
        distance = max(distance, least)
        for axis in (right, up):
            slope = (arm @ axis) / (distance - depth)
            centre = centre + 0.5 * (slope.min() + slope.max()) * distance * axis
    # leave the right edge to the scalar bar
    centre = centre + 0.06 * half_width * distance * right
    camera.focal_point = tuple(centre)
    camera.position = tuple(centre + distance * away)
    camera.up = tuple(up)
    plotter.reset_camera_clipping_range()
