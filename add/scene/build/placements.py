"""Placements of recordings in a scene, and beginnings of point clouds: numbers that parameters may name."""

from __future__ import annotations

import numpy as np

from add.bodies import Block
from add.equations.layout import ParameterLayout
from add.mocap import Recording
from add.objectives.placement import Placement
from add.scene.build.markers import MarkerParts
from add.scene.build.numbers import SceneParameter
from add.scene.spec.cloud import CloudObjectiveSpec
from add.scene.spec.markers import DirectionMarkerSpec, PlacementSpec
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray

_RECORDING = "recording.place"


def placement_blocks(spec: SceneSpec, parts: MarkerParts) -> list[Block]:
    """Return the blocks of theta for placements and for the clocks of clouds; add them to the numbers."""
    found: list[tuple[str, object, str]] = []
    if spec.recording is not None and spec.recording.place is not None:
        found += _numbers(_RECORDING, spec.recording.place)
    for k, item in enumerate(spec.objective):
        if isinstance(item, CloudObjectiveSpec):
            found.append((cloud_clock(k), item.time_offset, "s"))
            if item.place is not None:
                found += _numbers(_of_cloud(k), item.place)
    blocks: list[Block] = []
    for path, value, unit in found:
        array = np.asarray(value, dtype=float)
        blocks.append((path, array.shape, unit))
        parts.numbers.append(SceneParameter(path, array, unit, ((path, 1.0),)))
    return blocks


def cloud_clock(k: int) -> str:
    """Return the path, and name in theta, of the recording's time at which the simulation of a cloud starts."""
    return f"objective.{k}.time_offset"


def recording_placement(spec: SceneSpec, layout: ParameterLayout, names: tuple[str, ...]) -> Placement | None:
    """Return where the recording of some markers lies; None where the scene's `recording` has no `place`."""
    recording = spec.recording
    if recording is None or recording.place is None:
        return None
    directions = np.array([isinstance(spec.markers[name], DirectionMarkerSpec) for name in names])
    scales = np.where(directions, 0.0, 1.0)
    moves = np.zeros(len(names)) if recording.displacement else scales
    return _placement(_RECORDING, recording.place, layout, moves, scales)


def cloud_placement(item: CloudObjectiveSpec, k: int, layout: ParameterLayout) -> Placement | None:
    """Return where the cloud of objective k lies; None where it has no `place`."""
    return None if item.place is None else _placement(_of_cloud(k), item.place, layout, np.ones(1), np.ones(1))


def placed_positions(spec: SceneSpec, layout: ParameterLayout, recording: Recording, theta: FloatArray) -> FloatArray:
    """Return the recorded positions (n_frames, n_markers, 3) where theta puts them [m]."""
    placement = recording_placement(spec, layout, recording.names)
    positions = np.asarray(recording.positions)
    return positions if placement is None else placement.places(positions, theta)


def _of_cloud(k: int) -> str:
    return f"objective.{k}.place"


def _numbers(path: str, place: PlacementSpec) -> list[tuple[str, object, str]]:
    values = (("turn", place.turn, "rad"), ("move", place.move, "m"), ("scale", place.scale, "-"))
    return [(f"{path}.{key}", value, unit) for key, value, unit in values]


def _placement(
    path: str, place: PlacementSpec, layout: ParameterLayout, moves: FloatArray, scales: FloatArray
) -> Placement:
    turn, move = (layout[f"{path}.{key}"].indices for key in ("turn", "move"))
    return Placement(turn, move, layout[f"{path}.scale"].start, np.array(place.about), moves, scales)
