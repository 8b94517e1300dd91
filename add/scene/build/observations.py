"""Named observations of a scene's states: markers, poses, angles of hinges, contact forces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.bodies import LinkBody, RigidBody
from add.equations.kinematics import Kinematics, State
from add.errors import InputError
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.scene.build.built import BuiltScene, contact_forces
from add.scene.read.paths import require_known
from add.scene.spec.couplings import HingeSpec
from add.simulation import Record
from add.typing import FloatArray, require_kind


class Seen(NamedTuple):
    """A state as observations take it.

    Attributes
    ----------
    state : State
    record : Record or None
        Of the step that led there; None for a start.
    values : (n_s,) the scene's numbers
    theta : (n_theta,)
    """

    state: State
    record: Record | None
    values: FloatArray
    theta: FloatArray

    @property
    def kin(self) -> Kinematics:
        """Coordinates and velocities of the state."""
        state = self.state
        return Kinematics(state.q[0], state.v[0], np.zeros_like(state.q[0]), state.t, state.step)


@final
@dataclass(frozen=True)
class Observations:
    """Several observations as one vector.

    Attributes
    ----------
    parts : name -> its place in the vector
    """

    parts: dict[str, slice]
    _functions: tuple[Callable[[Seen], FloatArray], ...]

    @property
    def size(self) -> int:
        """Numbers in the vector."""
        return max((part.stop for part in self.parts.values()), default=0)

    def __call__(self, seen: Seen) -> FloatArray:
        """Return the vector."""
        return np.concatenate([function(seen) for function in self._functions])


def observations(built: BuiltScene, names: Sequence[str]) -> Observations:
    """Return the observations of these names.

    Parameters
    ----------
    built : BuiltScene
    names : sequence of str
        ``time`` [s]; ``markers.NAME``, ``markers.NAME.velocity`` [m], [m/s]; of rigid bodies ``bodies.NAME.position``,
        ``.orientation`` (unit quaternion w, x, y, z, the one with w >= 0), ``.velocity``, ``.angular_velocity`` (world
        axes), the position that of the frame's origin, as in a scene, the velocity that of the centre of mass, of a
        link of its frame's origin; of hinges ``couplings.NAME.angle`` (from the poses at t = 0, in (-pi, pi]) and
        ``.rate`` [rad], [rad/s]; ``contact.BODY``, the force of all contacts on a body, on all its links
        or nodes [N].

    Raises
    ------
    InputError
        If there is none of that name.
    """
    parts: dict[str, slice] = {}
    functions = []
    start = 0
    for name in names:
        if name in parts:
            raise InputError("this observation is named twice", place=name)
        size, function = _observation(built, name)
        parts[name] = slice(start, start + size)
        start += size
        functions.append(function)
    if not functions:
        raise InputError("nothing is observed", expected="names such as 'markers.tip' or 'bodies.cart.position'")
    return Observations(parts, tuple(functions))


def _observation(built: BuiltScene, name: str) -> tuple[int, Callable[[Seen], FloatArray]]:
    """Return the size of an observation, and its function."""
    require_kind(name, str, "observations", "a list of names such as 'markers.tip'")
    kind, *keys = name.split(".")
    if kind == "time" and not keys:
        return 1, lambda seen: np.array([seen.state.t])
    if kind == "markers" and keys and keys[1:] in ([], ["velocity"]):
        require_known("marker", keys[0], built.marker_names, name)
        points, part = built.marker(keys[0]), len(keys) - 1
        return 3, lambda seen: points.points(seen.kin, seen.theta)[part][0]
    if kind == "bodies" and len(keys) == 2 and keys[1] in _FRAMES:
        return _FRAMES[keys[1]][0], _frame(built, name, *keys)
    if kind == "couplings" and len(keys) == 2 and keys[1] in ("angle", "rate"):
        return 1, _hinge(built, name, keys[0], keys[1] == "rate")
    if kind == "contact" and len(keys) == 1:
        return 3, _contact(built, name, keys[0])
    raise InputError(
        "there is no such observation",
        place=name,
        expected="'time', 'markers.NAME', 'markers.NAME.velocity', 'bodies.NAME.' with "
        f"{', '.join(_FRAMES)}, 'couplings.NAME.angle' or '.rate', 'contact.BODY'",
    )


#: Name -> size, and function of place, rotation vector and their rates.
_FRAMES: dict[str, tuple[int, Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]]] = {
    "position": (3, lambda x, w, x_dot, w_dot: x),
    "orientation": (4, lambda x, w, x_dot, w_dot: Rotation.from_rotvec(w).as_quat(canonical=True, scalar_first=True)),
    "velocity": (3, lambda x, w, x_dot, w_dot: x_dot),
    "angular_velocity": (3, lambda x, w, x_dot, w_dot: left_jacobian(w) @ w_dot),
}


def _rows(built: BuiltScene, name: str, body: str) -> int:
    """Return the first row of X of a body with a frame."""
    framed = [one.name for one in built.model.bodies if one.has_frame]
    require_known("body with a frame", body, framed, name)
    return built.model.lift.rows[body].start


def _motion(built: BuiltScene, seen: Seen, start: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    at = built.model.lift.kinematics(seen.kin, seen.theta)
    x, w = at.q[start : start + 6].reshape(2, 3)
    x_dot, w_dot = at.v[start : start + 6].reshape(2, 3)
    return x, w, x_dot, w_dot


def _frame(built: BuiltScene, name: str, body: str, key: str) -> Callable[[Seen], FloatArray]:
    start, function = _rows(built, name, body), _FRAMES[key][1]
    item = built.model.body(body)
    if key == "position" and isinstance(item, RigidBody) and item.moves:  # its coordinates are the centre of mass
        centre = built.model.system.parameters[f"bodies.{body}.centre"].indices

        def origin(seen: Seen) -> FloatArray:
            x, w, *_ = _motion(built, seen, start)
            return np.asarray(x - rotation_matrix(w) @ seen.theta[centre])

        return origin
    return lambda seen: function(*_motion(built, seen, start)).copy()


def _hinge(built: BuiltScene, name: str, coupling: str, rate: bool) -> Callable[[Seen], FloatArray]:
    hinges = {key: item for key, item in built.scene.couplings.items() if isinstance(item, HingeSpec)}
    require_known("hinge", coupling, list(hinges), name)
    item = hinges[coupling]
    ends = [item.a.body, item.b.body]
    starts = [None if body is None else _rows(built, name, body) for body in ends]
    # Orientations at t = 0, of given motions where they begin: the hinge's own angle counts from these.
    layout = built.model.system.parameters
    known = {entry.name for entry in layout.entries}
    blocks = [None if body is None else f"bodies.{body}.orientation" for body in ends]
    began = [block if f"{block}.begins" not in known else f"{block}.begins" for block in blocks]
    poses = [None if block is None else layout[block].indices for block in began]
    axis_of = layout[f"couplings.{coupling}.axis.a"].indices

    def function(seen: Seen) -> FloatArray:
        turns, spins, first = [], [], []
        for start, pose in zip(starts, poses, strict=True):
            _, w, _, w_dot = (np.zeros(3),) * 4 if start is None else _motion(built, seen, start)
            turns.append(rotation_matrix(w))
            spins.append(left_jacobian(w) @ w_dot)
            first.append(rotation_matrix(np.zeros(3) if pose is None else seen.theta[pose]))
        axis = seen.theta[axis_of]
        if rate:
            return np.array([turns[0] @ axis @ (spins[1] - spins[0])])
        turned = turns[0].T @ turns[1] @ (first[0].T @ first[1]).T
        # The part of the turn about the axis: of the small turns across it only the stiffness of the hinge is left.
        quaternion = Rotation.from_matrix(turned).as_quat()
        angle = 2.0 * np.arctan2(quaternion[:3] @ axis, quaternion[3])
        return np.array([angle - 2.0 * np.pi * np.ceil((angle - np.pi) / (2.0 * np.pi))])

    return function


def _contact(built: BuiltScene, name: str, body: str) -> Callable[[Seen], FloatArray]:
    require_known("body", body, [one.name for one in built.model.bodies], name)
    model = built.model
    links = [one.name for one in model.bodies if isinstance(one, LinkBody) and one.tree == body]
    parts = [model.lift.rows[part].slice for part in links or [body]]
    framed = bool(links) or model.body(body).has_frame

    def function(seen: Seen) -> FloatArray:
        kin, record = seen.kin, seen.record
        if record is not None:  # the forces of a step are those at its end, before a change of chart
            before = record.unchanged if record.unchanged is not None else seen.state
            kin = Kinematics(before.q[0], record.kin.v, record.kin.a, record.kin.t, record.kin.step)
        force, _ = contact_forces(model, built.simulation, kin, record, seen.theta)
        on_parts = [force[part].reshape(-1, 3) for part in parts]
        return np.sum([part[0] if framed else part.sum(axis=0) for part in on_parts], axis=0)

    return function
