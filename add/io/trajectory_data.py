"""A whole trajectory in memory; the parts of a run that was gone on with as one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from add.equations.kinematics import NO_CARRY, Carry
from add.errors import InputError
from add.io.trajectory_parts import (
    BodyData,
    ContactData,
    GoalData,
    JointData,
    LineData,
    MassSpringData,
    ObstacleData,
    SolidData,
    floats,
    set_fields,
)
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class RunData:
    """All that is kept of a run; k states of n coordinates.

    Attributes
    ----------
    t : (k,) [s]
    q, v : (k, n) [m], [m/s]
        Rotation vectors and their rates of rigid bodies: [rad], [rad/s].
    energy : name -> (k,) [J]
        Such as "kinetic", "elastic", "gravity", "coupling", "contact".
    newton_iterations : (k - 1,)
    newton_residual : (k - 1,) [N]
    contact_force : (k, n)
        Force of all contacts on every node [N]. On rigid bodies: their resultant, and their generalised torque [N m].
    bodies : tuple of BodyData
    obstacles : tuple of ObstacleData
    markers : name -> (k, 3)
        Simulated markers [m].
    targets : name -> ((m,), (m, 3))
        Times [s] and recorded places [m]; NaN where a marker was not seen.
    sheets : tuple of MassSpringData
    solids : tuple of SolidData
    lines : name -> LineData
        Springs, cables and given forces.
    joints : name -> JointData
    contacts : ContactData
        Where rigid bodies touch.
    goals : name -> GoalData
        Points and poses that objectives want.
    carry : Carry
        Numbers that the last state hands on beside q and v.
    """

    t: FloatArray
    q: FloatArray
    v: FloatArray
    energy: Mapping[str, FloatArray]
    newton_iterations: IntArray
    newton_residual: FloatArray
    contact_force: FloatArray
    bodies: tuple[BodyData, ...]
    obstacles: tuple[ObstacleData, ...] = ()
    markers: Mapping[str, FloatArray] = field(default_factory=dict)
    targets: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    sheets: tuple[MassSpringData, ...] = ()
    solids: tuple[SolidData, ...] = ()
    lines: Mapping[str, LineData] = field(default_factory=dict)
    joints: Mapping[str, JointData] = field(default_factory=dict)
    contacts: ContactData = field(default_factory=ContactData)
    goals: Mapping[str, GoalData] = field(default_factory=dict)
    carry: Carry = NO_CARRY

    def __post_init__(self) -> None:
        """Bring to plain arrays and check that the shapes fit."""
        t = floats(self.t, (None,), "t")
        k = len(t)
        if not k:
            raise InputError("a run has at least one state", place="t", found="none")
        q = floats(self.q, (k, None), "q")
        n = q.shape[1]
        self._check_places(n)
        self._check_states(k)
        targets = {}
        for name, (times, positions) in self.targets.items():
            times = floats(times, (None,), f"targets_time.{name}")
            targets[name] = (times, floats(positions, (len(times), 3), f"targets.{name}"))
        set_fields(
            self,
            t=t,
            q=q,
            v=floats(self.v, (k, n), "v"),
            energy={name: floats(e, (k,), f"energy.{name}") for name, e in self.energy.items()},
            newton_iterations=floats(self.newton_iterations, (k - 1,), "newton.iterations").astype(np.int64),
            newton_residual=floats(self.newton_residual, (k - 1,), "newton.residual"),
            contact_force=floats(self.contact_force, (k, n), "contact_force"),
            markers={name: floats(x, (k, 3), f"markers.{name}") for name, x in self.markers.items()},
            targets=targets,
        )

    def _check_places(self, n: int) -> None:
        """Refuse bodies whose coordinates are not in q."""
        for group in ("bodies", "sheets", "solids"):
            for body in getattr(self, group):
                width = body.entries.stop - body.start
                if body.start < 0 or body.entries.stop > n:
                    raise InputError("body outside of q", place=f"{group}.{body.name}.start", found=body.start,
                                     expected=f"0 ... {n - width}")  # fmt: skip

    def _check_states(self, k: int) -> None:
        """Refuse links and contacts of another number of states."""
        lengths = {f"lines.{name}": len(line.tension) for name, line in self.lines.items()}
        lengths |= {f"joints.{name}": len(joint.place) for name, joint in self.joints.items()}
        if len(self.contacts.offsets):
            lengths["contacts.offsets"] = len(self.contacts.offsets) - 1
        for place, length in lengths.items():
            if length != k:
                raise InputError("wrong number of states", place=place, found=length, expected=str(k))

    @property
    def n_states(self) -> int:
        """Number of states, the initial one included."""
        return len(self.t)

    @property
    def nodal(self) -> tuple[BodyData | MassSpringData, ...]:
        """Soft bodies, then sheets: all whose coordinates are nodes."""
        return (*self.bodies, *self.sheets)

    def positions(self, body: BodyData | MassSpringData, k: int) -> FloatArray:
        """Nodes of a body in state ``k``, (n, 3) [m]."""
        return self.q[k, body.entries].reshape(-1, 3)

    def pose(self, solid: SolidData, k: int) -> tuple[FloatArray, FloatArray]:
        """Rotation (3, 3) and position (3,) of the frame of a rigid body in state ``k``: x = R X + p [m]."""
        x, w = self.q[k, solid.entries].reshape(2, 3)
        rotation = rotation_matrix(w)
        return rotation, x - rotation @ solid.centre

    def twist(self, solid: SolidData, k: int) -> tuple[FloatArray, FloatArray]:
        """Velocity of the centre of mass [m/s] and angular velocity in world axes [rad/s] in state ``k``, (3,) each."""
        velocity, rate = self.v[k, solid.entries].reshape(2, 3)
        return velocity, left_jacobian(self.q[k, solid.entries][3:]) @ rate


def joined(first: RunData, then: RunData, *, stays: bool) -> RunData:
    """Return one run of two parts, of which the second begins with the last state of the first.

    Parameters
    ----------
    first, then : RunData
    stays : bool
        Whether that state is one of those that a run which was never cut keeps. If not, the steps on its both sides
        belong to the next one.

    Raises
    ------
    InputError
        If the second part does not begin where the first ends.
    """
    if first.q.shape[1:] != then.q.shape[1:] or first.t[-1] != then.t[0] or not np.array_equal(first.q[-1], then.q[0]):
        raise InputError("what was kept of the run does not end where it goes on", place="t", found=float(first.t[-1]))
    n = first.n_states - (not stays)

    def both(a: FloatArray, b: FloatArray) -> FloatArray:
        return np.concatenate([a[:n], b[1:]])

    def each(a: Mapping[str, FloatArray], b: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: both(values, b[name]) for name, values in a.items()}

    lines = {}
    for name, line in first.lines.items():
        other = then.lines[name]
        lines[name] = LineData(line.kind, both(line.ends, other.ends), both(line.tension, other.tension))
    joints = {
        name: JointData(both(joint.place, then.joints[name].place), both(joint.axis, then.joints[name].axis))
        for name, joint in first.joints.items()
    }
    return replace(
        first,
        t=both(first.t, then.t),
        q=both(first.q, then.q),
        v=both(first.v, then.v),
        contact_force=both(first.contact_force, then.contact_force),
        energy=each(first.energy, then.energy),
        markers=each(first.markers, then.markers),
        lines=lines,
        joints=joints,
        contacts=_contacts(first, then, n),
        carry=then.carry,
        newton_iterations=_over_cut(first.newton_iterations, then.newton_iterations, stays, np.add),
        newton_residual=_over_cut(first.newton_residual, then.newton_residual, stays, np.maximum),
    )


def _over_cut(a: Any, b: Any, stays: bool, merge: Any) -> Any:
    """Return the numbers of the intervals between kept states; the one over the cut is merged where no state stays."""
    if stays or not a.size or not b.size:
        return np.concatenate([a, b])
    return np.concatenate([a[:-1], merge(a[-1:], b[:1]), b[1:]])


def _contacts(first: RunData, then: RunData, n: int) -> ContactData:
    """Return the contacts of the first n states of one part, and of all but the first of the other."""
    if not first.contacts.offsets.size and not then.contacts.offsets.size:
        return first.contacts
    states = [(first.contacts, k) for k in range(n)] + [(then.contacts, k) for k in range(1, then.n_states)]
    counts = [len(contacts.at(k)[0]) for contacts, k in states]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(contacts, name)[contacts.of_state(k)] for contacts, k in states])

    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ContactData(offsets, *(joined(name) for name in ("places", "forces", "modes", "margins")))
