"""A whole trajectory in memory; the parts of a run that was gone on with as one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, final

import numpy as np

from add.equations.kinematics import NO_CARRY, Carry
from add.errors import InputError
from add.io import trajectory_parts
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.typing import FloatArray, IntArray

#: Times and recorded places of a marker.
TIMES, PATH = trajectory_parts.Kept(("m",), "s"), trajectory_parts.Kept(("m", 3), "m")


@final
@dataclass(frozen=True, eq=False)
class RunData(trajectory_parts.Part):
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

    t: Annotated[FloatArray, trajectory_parts.Kept(("k",), "s")]
    q: Annotated[FloatArray, trajectory_parts.Kept(("k", "n"), "m")]
    v: Annotated[FloatArray, trajectory_parts.Kept(("k", "n"), "m/s")]
    energy: Annotated[Mapping[str, FloatArray], trajectory_parts.Kept(("k",), "J", named=True)]
    newton_iterations: Annotated[IntArray, trajectory_parts.Kept(("steps",), whole=True)]
    newton_residual: Annotated[FloatArray, trajectory_parts.Kept(("steps",), "N")]
    contact_force: Annotated[FloatArray, trajectory_parts.Kept(("k", "n"), "N")]
    bodies: tuple[trajectory_parts.BodyData, ...]
    obstacles: tuple[trajectory_parts.ObstacleData, ...] = ()
    markers: Annotated[Mapping[str, FloatArray], trajectory_parts.Kept(("k", 3), "m", named=True)] = field(
        default_factory=dict
    )
    targets: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    sheets: tuple[trajectory_parts.MassSpringData, ...] = ()
    solids: tuple[trajectory_parts.SolidData, ...] = ()
    lines: Mapping[str, trajectory_parts.LineData] = field(default_factory=dict)
    joints: Mapping[str, trajectory_parts.JointData] = field(default_factory=dict)
    contacts: trajectory_parts.ContactData = field(default_factory=trajectory_parts.ContactData)
    goals: Mapping[str, trajectory_parts.GoalData] = field(default_factory=dict)
    carry: Carry = NO_CARRY

    def _place(self, *names: str) -> str:
        return ".".join(names).replace("newton_", "newton.")

    def _sizes(self) -> dict[str, int]:
        if not len(self.t):
            raise InputError("a run has at least one state", place="t", found="none")
        return {"steps": len(self.t) - 1}

    def _check(self) -> None:
        self._check_places(self.q.shape[1])
        self._check_states(len(self.t))
        targets = {}
        for name, (times, positions) in self.targets.items():
            sizes: dict[str, int] = {}
            times = TIMES.brought(times, sizes, f"targets_time.{name}")
            targets[name] = times, PATH.brought(positions, sizes, f"targets.{name}")
        object.__setattr__(self, "targets", targets)

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
    def nodal(self) -> tuple[trajectory_parts.BodyData | trajectory_parts.MassSpringData, ...]:
        """Soft bodies, then sheets: all whose coordinates are nodes."""
        return (*self.bodies, *self.sheets)

    def positions(self, body: trajectory_parts.BodyData | trajectory_parts.MassSpringData, k: int) -> FloatArray:
        """Nodes of a body in state ``k``, (n, 3) [m]."""
        return self.q[k, body.entries].reshape(-1, 3)

    def pose(self, solid: trajectory_parts.SolidData, k: int) -> tuple[FloatArray, FloatArray]:
        """Rotation (3, 3) and position (3,) of the frame of a rigid body in state ``k``: x = R X + p [m]."""
        x, w = self.q[k, solid.entries].reshape(2, 3)
        rotation = rotation_matrix(w)
        return rotation, x - rotation @ solid.centre

    def twist(self, solid: trajectory_parts.SolidData, k: int) -> tuple[FloatArray, FloatArray]:
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
    meet = first.q.shape[1:] == then.q.shape[1:] and first.t[-1] == then.t[0]
    if not meet or not _same_place(first, then):
        raise InputError("what was kept of the run does not end where it goes on", place="t", found=float(first.t[-1]))
    n = first.n_states - (not stays)

    over_states = [name for name, how in RunData.KEPT.items() if how.lengths[0] == "k"]
    changed = {name: _both(getattr(first, name), getattr(then, name), n) for name in (*over_states, "lines", "joints")}
    return replace(
        first,
        **changed,
        contacts=_contacts(first, then, n),
        carry=then.carry,
        newton_iterations=_over_cut(first.newton_iterations, then.newton_iterations, stays, np.add),
        newton_residual=_over_cut(first.newton_residual, then.newton_residual, stays, np.maximum),
    )


def _same_place(first: RunData, then: RunData) -> bool:
    """Return whether the last state of one run and the first of another are one, in whatever charts of rotations.

    A run keeps the vector w with which the equations of a step held, and goes on from w (1 - 2 pi / |w|) where |w| is
    above pi: a change of chart just there is none of place, and moves links behind a ball by rounding.
    """
    ends, begins = first.q[-1], then.q[0].copy()
    for solid in first.solids:
        turn = slice(solid.start + 3, solid.start + 6)
        if not np.array_equal(ends[turn], begins[turn]):
            same = np.allclose(rotation_matrix(ends[turn]), rotation_matrix(begins[turn]), rtol=0.0, atol=1e-9)
            begins[turn] = ends[turn] if same else np.nan
    return np.allclose(ends, begins, rtol=1e-9, atol=1e-12)


def _both(first: Any, then: Any, n: int) -> Any:
    """Return n states of an array or a part, and behind them all but the first of another; so of each of several."""
    if isinstance(first, Mapping):
        return {name: _both(one, then[name], n) for name, one in first.items()}
    if isinstance(first, np.ndarray):
        return np.concatenate([first[:n], then[1:]])
    return replace(first, **{key: _both(getattr(first, key), getattr(then, key), n) for key in first.KEPT})


def _over_cut(a: Any, b: Any, stays: bool, merge: Any) -> Any:
    """Return the numbers of the intervals between kept states; the one over the cut is merged where no state stays."""
    if stays or not a.size or not b.size:
        return np.concatenate([a, b])
    return np.concatenate([a[:-1], merge(a[-1:], b[:1]), b[1:]])


def _contacts(first: RunData, then: RunData, n: int) -> trajectory_parts.ContactData:
    """Return the contacts of the first n states of one part, and of all but the first of the other."""
    if not first.contacts.offsets.size and not then.contacts.offsets.size:
        return first.contacts
    states = [(first.contacts, k) for k in range(n)] + [(then.contacts, k) for k in range(1, then.n_states)]
    counts = [len(contacts.at(k)[0]) for contacts, k in states]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(contacts, name)[contacts.of_state(k)] for contacts, k in states])

    offsets = np.concatenate([[0], np.cumsum(counts)])
    return trajectory_parts.ContactData(offsets, *(joined(name) for name in ("places", "forces", "modes", "margins")))
