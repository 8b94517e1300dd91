"""Angles of joints over time, such as those of a pendulum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap.recording import check_times

__all__ = ["AngleRecording"]


@final
@dataclass(frozen=True, eq=False)
class AngleRecording:
    """Angles at given times; every method returns a new recording, the arrays are private read-only copies.

    Parameters
    ----------
    names : (na,) of the angles, unique
    times : (nf,) strictly increasing [s]
    angles : (nf, na) as recorded, continuous beyond pi [rad]
    rates : (nf, na), or None where they were not recorded [rad/s]
    source : where it came from, for messages (a path, usually)
    """

    names: tuple[str, ...]
    times: NDArray[np.float64]
    angles: NDArray[np.float64]
    rates: NDArray[np.float64] | None = None
    source: str = "recording"

    def __post_init__(self) -> None:
        names = tuple(self.names)
        if not names or len(set(names)) < len(names):
            raise InputError(
                "bad names of angles", file=self.source, found=names, expected="one or more, all different"
            )
        times = np.array(self.times, dtype=np.float64)
        check_times(times, self.source)
        arrays = {"times": times}
        for name, values in (("angles", self.angles), ("rates", self.rates)):
            if values is None:
                continue
            array = arrays[name] = np.array(values, dtype=np.float64)
            if array.shape != (len(times), len(names)):
                raise InputError(
                    f"{name} have the wrong shape",
                    file=self.source,
                    found=array.shape,
                    expected=f"(frames, angles) = {(len(times), len(names))}",
                )
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                frame, column = bad[0]
                raise InputError(
                    f"{name} are not finite",
                    file=self.source,
                    place=f"{names[column]!r}, frame {frame} (t = {times[frame]:g} s)",
                    found=array[frame, column],
                )
        object.__setattr__(self, "names", names)
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.times)

    def crop(self, start: float = -np.inf, stop: float = np.inf) -> AngleRecording:
        """Keep the frames with start <= t <= stop [s]."""
        keep = (self.times >= start) & (self.times <= stop)
        if not keep.any():
            raise InputError(
                "no frame in the window",
                file=self.source,
                found=f"[{start:g}, {stop:g}] s",
                expected=f"a part of [{self.times[0]:g}, {self.times[-1]:g}] s that holds a frame",
            )
        rates = None if self.rates is None else self.rates[keep]
        return replace(self, times=self.times[keep], angles=self.angles[keep], rates=rates)

    def with_origin(self, t0: float) -> AngleRecording:
        """Count time from t0 [s]: the new times are t - t0."""
        return replace(self, times=self.times - t0)
