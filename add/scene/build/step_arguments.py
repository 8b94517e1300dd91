"""Controls and named inputs of a step: checked, and written into the scene's numbers and theta of many members."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from add.equations.signals import BSplineSignal, Constant, Signal
from add.errors import InputError
from add.inverse.maps import Injection
from add.scene.build.inputs import (
    STATE_Q,
    STATE_V,
    Inputs,
    arrays_of,
    of_member,
    require_finite_rows,
    require_shape,
    signal_of,
)
from add.scene.build.numbers import SceneParameters
from add.scene.read.paths import meant, require_known
from add.scene.spec.scene import SceneSpec
from add.simulation.run import Simulation
from add.ties import copies_of
from add.typing import FloatArray, IntArray, as_numbers

#: Name -> a row a member.
Rows = Mapping[str, FloatArray]

#: Share of a bound by which the same number in single precision, as policies have it, may be beyond it.
_ROUNDING = float(np.finfo(np.float32).eps)
#: Lowest and highest value of a control.
Bounds = tuple[ArrayLike, ArrayLike]


@final
class StepArguments:
    """The controls and inputs that a step of a scene is taken with.

    Parameters
    ----------
    scene, simulation, numbers, controls, inputs, bounds : see `add.scene.build.steps.StepFunction`

    Attributes
    ----------
    inputs : Inputs
    bounds : name of a control -> (low, high), each in its shape
    """

    def __init__(
        self,
        scene: SceneSpec,
        simulation: Simulation,
        numbers: SceneParameters,
        controls: tuple[str, ...],
        inputs: tuple[str, ...],
        bounds: Mapping[str, Bounds],
    ) -> None:
        for name in (STATE_Q, STATE_V):
            if name in inputs:
                raise InputError("the state is an argument of a step of its own", place=name)
        self.numbers, self._dt = numbers, simulation.stepper.dt
        self._signals = {name: _controlling(scene, name) for name in controls}
        self.inputs = Inputs.of(simulation, numbers, {name: numbers.place(name).shape for name in inputs})
        self._rows = {name: _rows(numbers, name, signal) for name, signal in self._signals.items()}
        self.bounds = {name: self._spread(name, pair) for name, pair in bounds.items()}
        self.require_apart(inputs)

    def _spread(self, name: str, pair: Bounds) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of a control in its shape."""
        self.require_names((name,), self.inputs.places)
        shape = self._rows[name].shape[1:]
        try:
            low, high = (np.broadcast_to(np.asarray(bound, dtype=float), shape) for bound in pair)
        except (TypeError, ValueError):
            raise InputError(
                "bounds do not fit the control", place=f"signals.{name}", found=f"{pair}",
                expected=f"(low, high), each a number or of shape {shape}",
            ) from None  # fmt: skip
        if not (low < high).all():
            raise InputError("bounds are (low, high)", place=name, found=f"{pair}", expected="low below high")
        return low, high

    def _require_within(self, control: Rows) -> None:
        for name, (low, high) in self.bounds.items():
            if name not in control:
                continue
            rows = control[name]
            least, most = low - _ROUNDING * np.abs(low), high + _ROUNDING * np.abs(high)
            outside = np.argwhere(~((rows >= least) & (rows <= most)))
            if outside.size:
                k = int(outside[0, 0])
                raise InputError(
                    "an action is outside its bounds, or not finite",
                    place=of_member(k, rows.shape[0], f"signals.{name}"),
                    found=f"{rows[k].tolist()}", expected=f"{low.tolist()} to {high.tolist()}",
                )  # fmt: skip

    @cached_property
    def _theta(self) -> FloatArray:
        return self.numbers.ties.forward(self.numbers.values)

    @cached_property
    def _copied(self) -> tuple[Injection | None, Injection | None, Injection | None]:
        """Copies in theta of the inputs, of the controls, of both; None where a rule reads one."""
        inputs, controls = (_joined(part.values()) for part in (self.inputs.places, self._rows))
        ties = self.numbers.ties
        return copies_of(ties, inputs), copies_of(ties, controls), copies_of(ties, np.append(controls, inputs))

    def base(self, inputs: Rows, b: int) -> tuple[FloatArray, FloatArray]:
        """Return the scene's numbers (b, n_s) and theta (b, n_theta) with the inputs of b members, without controls.

        Raises
        ------
        InputError
            If a number is not finite or impossible.
        """
        values = self.inputs.rows(inputs, b)
        copied, _, _ = self._copied
        if copied is None:
            return values, np.stack([self.numbers.ties.forward(row) for row in values])
        thetas = np.repeat(self._theta[None], b, axis=0)
        copied.write(values, thetas)
        return values, thetas

    def drive(self, values: FloatArray, thetas: FloatArray, steps: IntArray, control: Rows) -> None:
        """Write the controls that b members take their next steps with into their numbers and theta, in place.

        Parameters
        ----------
        values, thetas : (b, n_s), (b, n_theta), as `base` returns them
        steps : (b,) steps behind each member
        control : name -> (b, ...)

        Raises
        ------
        InputError
            If a name is none, a shape does not fit, or a control is not finite or outside its bounds.
        """
        self.require_names(control, self.inputs.places)
        for name, rows in control.items():
            self._require_control(name, rows.shape[1:])
            require_finite_rows(f"signals.{name}", rows, "a control is not a finite number")
        self._require_within(control)
        for step in np.unique(steps).tolist():
            members = np.flatnonzero(steps == step)
            for name, place in self.places(step).items():
                if name in control:
                    values[members[:, None], place.ravel()] = control[name][members].reshape(members.size, -1)
        _, copied, _ = self._copied
        if copied is None:
            for row, theta in zip(values, thetas, strict=True):
                theta[:] = self.numbers.ties.forward(row)
        else:
            copied.write(values, thetas)

    def pull_numbers(self, values: FloatArray, theta_bars: FloatArray) -> FloatArray:
        """Return cotangents (b, n_s) of the members' numbers for those of theta; those of controls and inputs count."""
        _, _, copied = self._copied
        if copied is not None:
            return copied.pullback(values, theta_bars)
        return np.stack([self.numbers.ties.pullback(s, bar) for s, bar in zip(values, theta_bars, strict=True)])

    def places(self, step: int) -> dict[str, IntArray]:
        """Return control -> indices in the scene's numbers of the row that drives the step after ``step`` steps."""
        t = (step + 1) * self._dt
        return {name: self._rows[name][signal.acting(t)[0].start or 0] for name, signal in self._signals.items()}

    def tangent(self, step: int, control: Mapping[str, ArrayLike], inputs: Mapping[str, ArrayLike]) -> FloatArray:
        """Return the tangent (n_s,) of the scene's numbers along those of controls and inputs.

        Raises
        ------
        InputError
            If a name is none, a shape does not fit, or a tangent of a control is not finite.
        """
        s_dot = self.inputs.tangent(arrays_of(inputs))
        self.require_names(control, self.inputs.places)
        places = self.places(step)
        for name, value in control.items():
            row = as_numbers(f"signals.{name}", value)
            self._require_control(name, row.shape)
            require_finite_rows(f"signals.{name}", row[None], "a control is not a finite number")
            s_dot[places[name]] = row
        return s_dot

    def require_apart(self, names: Iterable[str]) -> None:
        """Refuse inputs, or numbers that are set otherwise, that are rows of controls."""
        given = [self.numbers.place(name) for name in names if name not in (STATE_Q, STATE_V)]
        for name, rows in self._rows.items():
            if np.isin(rows, _joined(given)).any():
                raise InputError(
                    "this signal is a control and an input", place=f"signals.{name}", expected="one of them"
                )

    def require_names(self, control: Iterable[str], inputs: Iterable[str]) -> None:
        """Refuse controls that the function has not, and other inputs than it has."""
        for name in control:
            if name not in self._rows:
                text = f"this signal is no control of the step{meant(name, self._rows)}"
                raise InputError(text, place=name, expected=", ".join(self._rows))
        if set(inputs) != self.inputs.places.keys():
            raise InputError(
                "these are not the inputs that the step was made with",
                found=", ".join(inputs) or "none",
                expected=", ".join(self.inputs.places) or "none",
            )

    def require(self, control: Mapping[str, tuple[int, ...]], inputs: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse names and shapes of controls and inputs that are not those of the function."""
        self.require_names(control, inputs)
        for name, shape in control.items():
            self._require_control(name, shape)
        for name, shape in inputs.items():
            require_shape(name, shape, self.inputs.places[name].shape)

    def _require_control(self, name: str, shape: tuple[int, ...]) -> None:
        if shape != self._rows[name].shape[1:]:
            raise InputError(
                "the values of a control do not fit", place=f"signals.{name}", found=f"shape {shape}",
                expected=f"shape {self._rows[name].shape[1:]}",
            )  # fmt: skip


def _joined(places: Iterable[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(np.ravel(place) for place in places)])


def _controlling(scene: SceneSpec, name: str) -> Signal:
    """Return a signal that one row drives in each step."""
    require_known("signal", name, scene.signals, f"signals.{name}")
    made = signal_of(scene.signals[name], scene.time.end, f"signals.{name}")
    if isinstance(made, Constant) or (isinstance(made, BSplineSignal) and made.degree == 0):
        return made
    raise InputError(
        "this signal has no row for a step: its rows act together",
        place=f"signals.{name}",
        found=type(made).__name__,
        expected="type 'constant', or 'control' with the basis 'constant'; the rows of others are inputs of a rollout",
    )


def _rows(numbers: SceneParameters, name: str, signal: Signal) -> IntArray:
    """Return the indices of a signal's rows in the scene's numbers (rows, ...)."""
    if isinstance(signal, Constant):
        return numbers.place(f"signals.{name}.value")[None]
    return numbers.place(f"signals.{name}.values")
