"""Recordings of a scene: read, registered, cropped, on the simulation's clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from add.errors import InputError
from add.mocap import Recording, read_csv, register
from add.mocap.recording import require_names
from add.scene.spec_objective import RecordingSpec


def load_recording(spec: RecordingSpec, place: str, end: float) -> Recording:
    """Return the recording in the scene's frame and clock, with the scene's markers only.

    Parameters
    ----------
    spec : RecordingSpec
    place : str
        JSON path of the section, for errors.
    end : float
        End of the simulation [s]; later frames are dropped.

    Raises
    ------
    InputError
        If names do not match or nothing is left.
    """
    recording = read_csv(spec.file, unit=spec.unit)
    try:
        require_names(list(spec.markers), recording.names, source=recording.source)
        if spec.register_ is not None:
            first = float(recording.times[0])
            window = spec.register_.window or (first, first)
            recording, _ = register(recording, spec.register_.markers, window=window)
        recording = recording.select(list(spec.markers)).rename(dict(spec.markers)).with_origin(spec.time_offset)
        start, stop = spec.crop or (0.0, end)
        room = 1e-9 * max(1.0, abs(stop))
        recording = recording.crop(start - room, stop + room)
        for mask in spec.mask:
            recording = recording.mask([spec.markers[mask.marker]], mask.from_, mask.to)
    except InputError as error:
        if error.place is None:
            error.place = place
        raise
    if not recording.valid.any():
        raise InputError("no marker is seen while the simulation runs", file=spec.file, place=place)
    # A frame a rounding error before the start belongs to the start.
    return replace(recording, times=np.where(np.abs(recording.times) < room, 0.0, recording.times))
