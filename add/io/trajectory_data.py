"""A whole trajectory in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

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
        values = {
            "t": t,
            "q": q,
            "v": floats(self.v, (k, n), "v"),
            "energy": {name: floats(e, (k,), f"energy.{name}") for name, e in self.energy.items()},
            "newton_iterations": floats(self.newton_iterations, (k - 1,), "newton.iterations").astype(np.int64),
            "newton_residual": floats(self.newton_residual, (k - 1,), "newton.residual"),
            "contact_force": floats(self.contact_force, (k, n), "contact_force"),
            "bodies": tuple(self.bodies),
            "obstacles": tuple(self.obstacles),
            "markers": {name: floats(x, (k, 3), f"markers.{name}") for name, x in self.markers.items()},
            "targets": targets,
            "sheets": tuple(self.sheets),
            "solids": tuple(self.solids),
            "lines": dict(self.lines),
            "joints": dict(self.joints),
            "goals": dict(self.goals),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_places(self, n: int) -> None:
        """Refuse bodies whose coordinates are not in q."""
        items: tuple[tuple[str, tuple[BodyData | MassSpringData | SolidData, ...]], ...] = (
            ("bodies", tuple(self.bodies)), ("sheets", tuple(self.sheets)), ("solids", tuple(self.solids)),
        )  # fmt: skip
        for group, bodies in items:
            for body in bodies:
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
