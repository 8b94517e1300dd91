"""Named inputs of a rollout: numbers of the scene by their paths, the initial state, and signals."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from add.equations.kinematics import State
from add.equations.signals import BSplineSignal, Constant, Signal, Sine, Spline, Table
from add.errors import InputError
from add.scene.build.numbers import SceneParameters
from add.scene.read.paths import meant
from add.scene.spec import signals
from add.scene.spec.common import SignalReferenceSpec
from add.scene.spec.scene import SceneSpec
from add.simulation.run import Simulation
from add.simulation.start import given_state, refuse_jumps
from add.typing import NAMED, FloatArray, IntArray, as_numbers, require_kind

#: Names of the coordinates and velocities that a rollout begins with.
STATE_Q, STATE_V = "state.q", "state.v"

#: Name of an input -> its values.
Values = Mapping[str, ArrayLike]


def arrays_of(values: Values) -> dict[str, FloatArray]:
    """Return values of inputs, or their tangents, as arrays."""
    return {name: as_numbers(name, value) for name, value in values.items()}


@final
@dataclass(frozen=True)
class Inputs:
    """Places of inputs, one after the other as a caller named them.

    Attributes
    ----------
    simulation : Simulation
    numbers : SceneParameters
    places : path -> indices in the scene's numbers, in the shape that the input has in the scene
    state : tuple of int or None
        Shape of the given coordinates: (n,) begins a run, (m, n) goes on from a state with its history; None where
        the simulation begins as it says.
    """

    simulation: Simulation
    numbers: SceneParameters
    places: Mapping[str, IntArray]
    state: tuple[int, ...] | None

    @classmethod
    def of(cls, simulation: Simulation, numbers: SceneParameters, shapes: Mapping[str, tuple[int, ...]]) -> "Inputs":
        """Return the places of inputs of these shapes.

        Raises
        ------
        InputError
            If a name is no number of the scene, two name one number, or a shape does not fit.
        """
        places: dict[str, IntArray] = {}
        owners: dict[int, str] = {}
        for name, shape in shapes.items():
            if not isinstance(name, str):
                raise InputError("an input is named by its path", found=f"{name!r}", expected="'bodies.cube.mass'")
            if name in (STATE_Q, STATE_V):
                continue
            places[name] = place = numbers.place(name)
            require_shape(name, shape, place.shape, numbers.resolve(name)[1])
            for index in place.ravel().tolist():
                if owners.setdefault(index, name) != name:
                    raise InputError(
                        "two inputs set one number", place=name, found=f"'{owners[index]}' and '{name}'",
                        expected="one of them",
                    )  # fmt: skip
        given = [shapes[name] for name in (STATE_Q, STATE_V) if name in shapes]
        if not given:
            return cls(simulation, numbers, places, None)
        if len(given) == 1:
            missing = STATE_V if STATE_Q in shapes else STATE_Q
            raise InputError("an initial state is coordinates and velocities", place=missing, found="no such input")
        n, m = simulation.system.n, simulation.stepper.n_history
        if given[0] != given[1] or given[0] not in ((n,), (m, n)):
            raise InputError(
                "these are no coordinates and velocities of this system", place=STATE_Q,
                found=f"shapes {given[0]} and {given[1]}", expected=f"({n},) or ({m}, {n}) both",
            )  # fmt: skip
        return cls(simulation, numbers, places, given[0])

    def scene_values(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Return all numbers of the scene with those of the inputs set.

        Raises
        ------
        InputError
            If a number is not finite or outside the limits that the scene's format sets.
        """
        return self.rows({name: np.asarray(values[name])[None] for name in self.places}, 1)[0]

    def rows(self, values: Mapping[str, FloatArray], b: int) -> FloatArray:
        """Return the scene's numbers (b, n_s) with inputs of b members, a row each.

        Raises
        ------
        InputError
            As `scene_values`; it names the member where there are several.
        """
        s = np.repeat(self.numbers.values[None], b, axis=0)
        for name, place in self.places.items():
            given = values[name]
            require_finite_rows(name, given)
            limits = self.numbers.limits(name)
            broken = limits.broken(given)
            if broken.any():
                k = int(np.argwhere(broken)[0, 0])
                found = f"{given[k][broken[k]].flat[0]:g}"
                raise InputError(
                    "impossible value", place=of_member(k, b, name), found=found, expected=str(limits)
                )  # fmt: skip
            s[:, place] = given
        return s

    def initial(self, values: Mapping[str, FloatArray], step: int | None = None) -> State | None:
        """Return the given state; ``step`` is the number of steps behind it (see `Simulation.state`)."""
        if self.state is None:
            return None
        for name in (STATE_Q, STATE_V):
            require_finite_rows(name, np.asarray(values[name])[None])
        pair = values[STATE_Q], values[STATE_V]
        return given_state(self.simulation.stepper, self.simulation.system.n, pair, step)

    def require_motion(self, state: State, theta: FloatArray) -> None:
        """Refuse a given state that the first step would jump from: loops are open, or given motions are elsewhere.

        Raises
        ------
        InputError
            Of the coordinate with a given motion that is farthest away, or of the loops.
        """
        refuse_jumps(self.simulation.system, self.simulation.start.initial, state, theta, STATE_Q)

    def tangent(self, dots: Mapping[str, FloatArray]) -> FloatArray:
        """Return the tangent of the scene's numbers along those of the inputs; none of an input that is not there.

        Raises
        ------
        InputError
            If a name is no input, or a shape does not fit.
        """
        s_dot = np.zeros_like(self.numbers.values)
        for name, dot in dots.items():
            if name in self.places:
                place = self.places[name]
                require_shape(name, dot.shape, place.shape)
                s_dot[place] = dot
            elif self.state is not None and name in (STATE_Q, STATE_V):
                require_shape(name, dot.shape, self.state)
            else:
                known = [*self.places, *((STATE_Q, STATE_V) if self.state is not None else ())]
                raise InputError(
                    f"this is no input of the rollout{meant(name, known)}", place=name, expected=", ".join(known)
                )
        return s_dot

    def cotangents(self, s_bar: FloatArray) -> dict[str, FloatArray]:
        """Return the parts of a cotangent of the scene's numbers (..., n_s) that belong to the inputs."""
        return {name: s_bar[..., place] for name, place in self.places.items()}

    def pairs(self, one: FloatArray) -> FloatArray:
        """Return a tangent of given coordinates as one of (m, n) pairs, newest first."""
        out = np.zeros((self.simulation.stepper.n_history, self.simulation.system.n))
        out[: 1 if one.ndim == 1 else None] = one
        return out


def require_shape(name: str, found: tuple[int, ...], expected: tuple[int, ...], unit: str = "") -> None:
    """Refuse values, or (co)tangents, of an input of another shape."""
    if tuple(found) != tuple(expected):
        raise InputError(
            "the values of an input do not fit", place=name, found=f"shape {tuple(found)}",
            expected=f"shape {tuple(expected)}" + (f" [{unit}]" if unit else ""),
        )  # fmt: skip


def require_inputs(inputs: Mapping[str, object]) -> None:
    """Refuse a function of a framework without inputs: there is nothing that its batch could have the size of."""
    require_kind(inputs, (Mapping, NoneType), "inputs", NAMED)
    if not inputs:
        raise InputError("a rollout is a function of its inputs", found="none", expected="one input at least")


def require_pair(state: object) -> None:
    """Refuse a state that is no pair of coordinates and velocities: a tuple of two, or an array of two rows."""
    size = len(state) if isinstance(state, (tuple, list)) else (*getattr(state, "shape", ()), 0)[0]
    if size != 2:
        found = f"{type(state).__name__} of {size}" if size else type(state).__name__
        raise InputError("wrong type", place="state", found=found, expected="States(q, v)")


def require_step_number(k: object, whole: bool) -> None:
    """Refuse a number of steps behind a state that is not ``whole``."""
    if not whole:
        raise InputError("a state has a whole number of steps behind it", place="k", found=f"{k!r:.80}")


def of_member(k: int, b: int, name: str) -> str:
    """Return the place of an input of member k of b in an error."""
    return f"member {k}: {name}" if b > 1 else name


def require_finite_rows(name: str, values: FloatArray, what: str = "an input is not a finite number") -> None:
    """Refuse numbers (b, ...) that are not finite, naming the member where there are several."""
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        k, *at = (int(i) for i in bad[0])
        where = f" at {at}" if at else ""
        raise InputError(
            what, place=of_member(k, values.shape[0], name), found=f"{values[(k, *at)]}{where}",
            expected="finite numbers",
        )  # fmt: skip


def signal_of(spec: signals.SignalSpec, end: float, place: str) -> Signal:
    """Return a signal; ``end`` is that of the run, for controls that name none."""
    if isinstance(spec, signals.ConstantSignalSpec):
        return Constant()
    if isinstance(spec, signals.SineSignalSpec):
        return Sine(spec.frequency, spec.phase)
    if isinstance(spec, signals.ControlSignalSpec):
        last = end if spec.end is None else spec.end
        if not spec.start < last:
            raise InputError(
                "a control must start before it ends", place=f"{place}.start", found=spec.start, expected=f"< {last:g}"
            )
        return BSplineSignal(signals.CONTROL_DEGREES[spec.basis], spec.rows, spec.start, last)
    kind = Table if isinstance(spec, signals.TableSignalSpec) else Spline
    return kind(np.array(spec.times))


def rows_of(spec: signals.SignalSpec) -> FloatArray:
    """Return the rows (n_rows, width) of a signal's coefficients."""
    if isinstance(spec, signals.ConstantSignalSpec):
        rows: list[object] = [spec.value]
    else:
        rows = [spec.offset, spec.amplitude] if isinstance(spec, signals.SineSignalSpec) else list(spec.values)
    return np.array(rows, dtype=float).reshape(len(rows), -1)


def require_width(spec: signals.SignalSpec, width: int, place: str, name: str) -> None:
    """Refuse a signal whose values are numbers where vectors are needed, or the other way round."""
    if spec.width != width:
        words = {1: "a number", 3: "a vector [x, y, z]"}
        raise InputError(
            f"the values of signal '{name}' do not fit",
            place=place,
            found=words[spec.width],
            expected=f"{words[width]} at each time",
        )


def range_of(scene: SceneSpec, value: float | SignalReferenceSpec) -> tuple[float, float]:
    """Return the lowest and the highest number by which a scene says a value over time; steps may meet less of it."""
    if not isinstance(value, SignalReferenceSpec):
        return value, value
    signal = scene.signals[value.signal]
    known = [getattr(signal, key, None) for key in ("values", "value", "offset")]
    given = np.concatenate([np.ravel(one) for one in known if one is not None])
    swing = np.abs(getattr(signal, "amplitude", 0.0)).max()
    return float(given.min() - swing), float(given.max() + swing)
