"""Numbers of a scene that are taken from its recordings where they are not given: the moment of a release."""

from __future__ import annotations

from typing import Any

from add.errors import InputError
from add.mocap import read_take, release_time
from add.mocap.recording import require_names
from add.scene.spec.markers import RecordingSpec
from add.scene.spec.scene import SceneSpec

__all__ = ["fill_in_starts"]


def fill_in_starts(raw: dict[str, Any], spec: SceneSpec) -> bool:
    """Write what recordings say into a valid scene, where its numbers are not given; whether there was anything.

    The scene of a run holds the numbers, so that it says by itself what was simulated.

    Parameters
    ----------
    raw : the scene as JSON, changed in place
    spec : what it says

    Raises
    ------
    InputError
        Naming the place, if a recording cannot be read or does not show what is asked for.
    """
    found = [("recording", raw.get("recording"), spec.recording)]
    found += [
        (f"experiments.{k}.recording", item.get("recording"), experiment.recording)
        for k, (item, experiment) in enumerate(zip(raw.get("experiments", ()), spec.experiments, strict=True))
    ]
    changed = False
    for place, section, recording in found:
        if recording is None or section is None or recording.start is None or "time_offset" in section:
            continue
        try:
            section["time_offset"] = _release(recording)
        except InputError as error:
            where = ": ".join(str(part) for part in (error.file, error.place) if part is not None)
            error.message = f"{where}: {error.message}"
            error.file, error.place = spec.source, f"{place}.start"
            raise
        changed = True
    return changed


def _release(spec: RecordingSpec) -> float:
    """Return the time at which the markers that the scene names are let go [s]."""
    markers = read_take(spec.file, unit=spec.unit, up=spec.up, number_repeated=spec.number_repeated).require_markers()
    names = list(spec.markers or ())
    require_names(names, markers.names, source=markers.source)
    return round(release_time(markers.select(names)), 6)
