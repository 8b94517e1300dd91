"""Force plates of C3D files: force on the plate and moment about its origin from its channels, in the plate's axes.

The types are those of the format's manual: 1 has three forces, the centre of pressure and the free moment; 2 has three
forces and three moments; 3 has eight forces of four sensors; 4 is type 2 behind a calibration matrix, F = C s with s
the channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from add.mocap.take import Signal

_CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
_COMPONENTS = (("Fx", "N"), ("Fy", "N"), ("Fz", "N"), ("Mx", ""), ("My", ""), ("Mz", ""))


def plate_signals(
    parameters: Mapping[str, NDArray[np.float64]], analog: Sequence[Signal], notes: list[str]
) -> list[Signal]:
    """Return force and moment of each plate.

    Parameters
    ----------
    parameters : of the group FORCE_PLATFORM, arrays with the first index of the file last
    analog : channels, of which the plates use some
    notes : extended by plates that cannot be read

    Returns
    -------
    list of Signal
        Six a plate, "plate 1 Fx" to "plate 1 Mz": components in the axes of the plate, moments about its origin, in the
        units of its channels.
    """
    used = int(parameters.get("USED", np.zeros(1))[0])
    if used < 1 or "CHANNEL" not in parameters or not analog:
        return []
    kinds = parameters.get("TYPE", np.zeros(0)).astype(int)
    rows = np.atleast_2d(parameters["CHANNEL"]).astype(int)
    found: list[Signal] = []
    for plate in range(min(used, len(kinds), len(rows))):
        kind, numbers = int(kinds[plate]), rows[plate]
        needed = _CHANNELS.get(kind)
        if (
            needed is None
            or len(numbers) < needed
            or not ((1 <= numbers[:needed]) & (numbers[:needed] <= len(analog))).all()
        ):
            notes.append(
                f"force plate {plate + 1} of type {kind}: its forces are not made out; its channels are signals"
            )
            continue
        channels = [analog[number - 1] for number in numbers[:needed]]
        values = np.array([channel.values for channel in channels])
        origin = np.atleast_2d(parameters.get("ORIGIN", np.zeros((used, 3))))[min(plate, used - 1)]
        wrench = _wrench(kind, values, origin, parameters, plate)
        for k, (name, unit) in enumerate(_COMPONENTS):
            unit = channels[k].unit if kind in (1, 2) and not (kind == 1 and k in (3, 4)) else unit
            found.append(Signal(f"plate {plate + 1} {name}", channels[0].times, wrench[k], unit))
    return found


def _wrench(
    kind: int,
    values: NDArray[np.float64],
    origin: NDArray[np.float64],
    parameters: Mapping[str, NDArray[np.float64]],
    plate: int,
) -> NDArray[np.float64]:
    """Return force and moment (6, n) in the axes of the plate."""
    if kind == 1:
        force, (px, py), free = values[:3], values[3:5], values[5]
        return np.stack([*force, py * force[2], -px * force[2], free + px * force[1] - py * force[0]])
    if kind == 3:
        fx12, fx34, fy14, fy23, fz1, fz2, fz3, fz4 = values
        a, b = abs(origin[0]), abs(origin[1])
        return np.stack([
            fx12 + fx34, fy14 + fy23, fz1 + fz2 + fz3 + fz4,
            b * (fz1 + fz2 - fz3 - fz4), a * (-fz1 + fz2 + fz3 - fz4), b * (fx34 - fx12) + a * (fy14 - fy23),
        ])  # fmt: skip
    if kind == 4 and "CAL_MATRIX" in parameters:
        # The file's first index runs fastest: element (i, j) of the matrix is [j, i] here.
        matrices = parameters["CAL_MATRIX"].reshape(-1, 6, 6)
        return matrices[min(plate, len(matrices) - 1)].T @ values
    return values
