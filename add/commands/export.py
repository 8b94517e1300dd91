"""Control signals of a scene or of a run as tables, sampled for the machine that plays them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from add.equations.signals import BSplineSignal, Signal
from add.errors import InputError
from add.io.runfolder import FITTED, SCENE
from add.mocap.take import Signal as Samples
from add.scene import Scene, load_scene
from add.scene.build.built import BuiltScene
from add.scene.build.inputs import signal_of
from add.typing import FloatArray

#: Most samples of a table.
MOST = 10_000_000


@final
@dataclass(frozen=True)
class Limits:
    """Bounds that a machine sets to one signal, in its unit and its unit a second.

    Attributes
    ----------
    lower, upper : float
    rate : float
        Largest change a second between two samples.
    """

    lower: float = -np.inf
    upper: float = np.inf
    rate: float = np.inf


def scene_of(path: str | Path) -> Scene:
    """Return the scene of a file, or of a run folder: that with the numbers found, if the run has fitted any.

    Raises
    ------
    InputError
        If there is no scene.
    """
    folder = Path(path)
    if not folder.is_dir():
        return load_scene(folder)
    for name in (FITTED, SCENE):
        if (folder / name).is_file():
            return load_scene(folder / name)
    raise InputError("this folder holds no run", file=folder, expected=f"{FITTED} or {SCENE}")


def sampled_controls(built: BuiltScene, rate: float, names: tuple[str, ...] = ()) -> list[Samples]:
    """Sample the signals of a scene from t = 0 to its end.

    A control of degree 0 is held from each sample to the next: its value is the one that begins there.

    Parameters
    ----------
    built : BuiltScene
    rate : float
        Samples a second.
    names : of signals; none: all

    Raises
    ------
    InputError
        If there are no signals, a name is none, or the rate does not fit.
    """
    spec = built.scene
    if not spec.signals:
        raise InputError("this scene has no signals to export", place="signals")
    missing = [name for name in names if name not in spec.signals]
    if missing:
        raise InputError("there is no such signal", found=missing[0], expected=", ".join(spec.signals))
    if not np.isfinite(rate) or rate <= 0.0 or spec.time.end * rate > MOST:
        raise InputError(
            "the rate does not fit", place="--rate", found=f"{rate:g} Hz", expected=f"above 0, at most {MOST} samples"
        )
    times = np.arange(int(np.floor(spec.time.end * rate + 1e-9)) + 1) / rate
    layout, out = built.simulation.system.parameters, []
    for name in names or tuple(spec.signals):
        given = spec.signals[name]
        signal = signal_of(given, spec.time.end, f"signals.{name}")
        for entry in layout.entries:
            if entry.name.rpartition(".")[0] != f"signals.{name}":
                continue
            values = _values(signal, layout.view(built.theta, entry.name), times)
            if given.width == 1:
                out.append(Samples(name, times, values[:, 0], entry.unit))
            else:
                out += [Samples(f"{name}.{axis}", times, values[:, k], entry.unit) for k, axis in enumerate("xyz")]
    if not out:
        raise InputError("these signals drive nothing", place="signals", found=", ".join(names or spec.signals))
    return out


def _values(signal: Signal, rows: FloatArray, times: FloatArray) -> FloatArray:
    """Return the values (k, 3) of a signal."""
    if isinstance(signal, BSplineSignal) and signal.degree == 0:
        # Its intervals hold their ends, as implicit steps want it; whoever plays it holds what begins at a sample.
        times = times + 1e-6 * (signal.end - signal.start) / signal.n_intervals
    return np.stack([signal.weights(float(t)) @ rows for t in times])


def beyond_limits(signals: list[Samples], limits: Mapping[str, Limits]) -> list[str]:
    """Return a sentence for every signal that goes beyond its limits, or changes too fast.

    Limits are those of the whole signal, or of a component as ``push.x``.

    Raises
    ------
    InputError
        If a limit names no signal.
    """
    known = {signal.name for signal in signals} | {signal.name.rpartition(".")[0] or signal.name for signal in signals}
    wrong = [name for name in limits if name not in known]
    if wrong:
        raise InputError("a limit is of no signal that is exported", found=wrong[0], expected=", ".join(sorted(known)))
    out = []
    for signal in signals:
        for name in dict.fromkeys((signal.name, signal.name.rpartition(".")[0])):
            if name in limits:
                out += _beyond(signal, limits[name])
    return out


def _beyond(signal: Samples, limits: Limits) -> list[str]:
    out, values, room = [], signal.values, 1e-9
    for beyond, bound, word in (
        (limits.lower - values, limits.lower, "below its lower limit"),
        (values - limits.upper, limits.upper, "above its upper limit"),
    ):
        k = int(np.argmax(beyond))
        if beyond[k] > room * max(1.0, abs(bound)):
            out.append(
                f"'{signal.name}' is {values[k]:.6g} {signal.unit} at t = {signal.times[k]:.6g} s, {word} of {bound:g}"
            )
    if values.size > 1:
        rates = np.abs(np.diff(values)) / np.diff(signal.times)
        k = int(np.argmax(rates))
        if rates[k] > limits.rate * (1.0 + room):
            out.append(
                f"'{signal.name}' changes by {rates[k]:.6g} {signal.unit}/s at t = {signal.times[k]:.6g} s, "
                f"faster than {limits.rate:g}"
            )
    return out
