"""The content of one capture file: markers, bodies, angles, signals, events, and remarks on how it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.mocap.poses import AngleRecording, PoseRecording
from add.mocap.recording import Recording

__all__ = ["Event", "Signal", "Take"]


@final
@dataclass(frozen=True, eq=False)
class Signal:
    """One channel of an analog device, a force plate or a model, over time.

    Parameters
    ----------
    name : of the channel, with its device where the file names one
    times : (n,) [s]
    values : (n,) NaN where missing, in `unit`
    unit : as the file says it; "" where it says none
    """

    name: str
    times: NDArray[np.float64]
    values: NDArray[np.float64]
    unit: str = ""


@final
@dataclass(frozen=True)
class Event:
    """A moment that was marked in the recording.

    Parameters
    ----------
    name : of the event, with its context or subject where the file has one
    time : on the clock of the file [s]
    """

    name: str
    time: float


@final
@dataclass(frozen=True, eq=False)
class Take:
    """The content of one file of a capture system.

    Parameters
    ----------
    format : of the file, with its version where it says one
    source : path of the file
    markers : measured tracks, labelled and not, or None; model positions are never among them [m]
    unlabelled : names of the tracks that no label was given to
    bodies : name -> pose over time, frames in which the body was not seen left out [m]
    angles : of joints, or None
    signals : analog channels, force plates, outputs of models
    events : in order of time
    unit : of length, as it was read; "" where nothing has a length
    rate : frames a second [Hz], or None for a single frame
    up : "z", or the file's axis that was turned to z
    notes : how it was read, such as what was left out
    doubts : what is probably not meant, such as fewer frames than promised
    frame : remark on which axis points up, where the file leaves that open or the frame was turned; "" for none
    """

    format: str
    source: str
    markers: Recording | None = None
    unlabelled: tuple[str, ...] = ()
    bodies: Mapping[str, PoseRecording] = field(default_factory=dict)
    angles: AngleRecording | None = None
    signals: tuple[Signal, ...] = ()
    events: tuple[Event, ...] = ()
    unit: str = ""
    rate: float | None = None
    up: str = "z"
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    frame: str = ""

    def require_markers(self) -> Recording:
        """Return the markers.

        Raises
        ------
        InputError
            If the file has none.
        """
        if self.markers is None:
            held = [
                *(["poses of bodies"] if self.bodies else []),
                *(["angles"] if self.angles else []),
                *(["signals"] if self.signals else []),
            ]
            raise InputError(
                "no markers",
                file=self.source,
                found=f"{self.format} with {' and '.join(held) or 'nothing in it'}",
                expected="trajectories of markers",
            )
        return self.markers

    def body(self, name: str | None) -> PoseRecording:
        """Return the pose of a body; of the only one for None.

        Raises
        ------
        InputError
            If it is not there, or several are.
        """
        listed = ", ".join(map(repr, self.bodies)) or "none"
        if name is None:
            if len(self.bodies) != 1:
                what = "no poses of bodies" if not self.bodies else "several bodies: say which one"
                raise InputError(what, file=self.source, found=listed, expected="the pose of one body")
            return next(iter(self.bodies.values()))
        if name not in self.bodies:
            raise InputError("there is no such body", file=self.source, found=repr(name), expected=f"one of {listed}")
        return self.bodies[name]

    def require_angles(self) -> AngleRecording:
        """Return the angles.

        Raises
        ------
        InputError
            If the file has none.
        """
        if self.angles is None:
            raise InputError(
                "no angles of joints", file=self.source, found=self.format, expected="'<name>_rad' columns"
            )
        return self.angles
