"""From the signals of a scene to `Signal`s."""

from __future__ import annotations

import numpy as np

from add.equations.signals import BSplineSignal, Constant, Signal, Sine, Spline, Table
from add.errors import InputError
from add.scene.spec.signals import (
    CONTROL_DEGREES,
    ConstantSignalSpec,
    ControlSignalSpec,
    SignalSpec,
    SineSignalSpec,
    TableSignalSpec,
)


def signal_of(spec: SignalSpec, end: float, place: str) -> Signal:
    """Return a signal; ``end`` is that of the run, for controls that name none."""
    if isinstance(spec, ConstantSignalSpec):
        return Constant()
    if isinstance(spec, SineSignalSpec):
        return Sine(spec.frequency, spec.phase)
    if isinstance(spec, ControlSignalSpec):
        last = end if spec.end is None else spec.end
        if not spec.start < last:
            raise InputError(
                "a control must start before it ends", place=f"{place}.start", found=spec.start, expected=f"< {last:g}"
            )
        return BSplineSignal(CONTROL_DEGREES[spec.basis], spec.rows, spec.start, last)
    kind = Table if isinstance(spec, TableSignalSpec) else Spline
    return kind(np.array(spec.times))


def require_width(spec: SignalSpec, width: int, place: str, name: str) -> None:
    """Refuse a signal whose values are numbers where vectors are needed, or the other way round."""
    if spec.width != width:
        words = {1: "a number", 3: "a vector [x, y, z]"}
        raise InputError(
            f"the values of signal '{name}' do not fit",
            place=place,
            found=words[spec.width],
            expected=f"{words[width]} at each time",
        )
