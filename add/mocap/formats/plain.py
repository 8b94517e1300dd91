"""Plain CSV files: `time_s`, then coordinates of markers, the pose of a body, or angles, with units in the headings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import final

from add.mocap.body_csv import read_angle_csv, read_csv, read_pose_csv
from add.mocap.formats.base import Capture, Choices, Format, Remarks
from add.mocap.formats.tracks import turned, upright
from add.mocap.recording import Recording
from add.mocap.take import Take

_UNIT = re.compile(r"_[xyz]_(m|cm|mm)$")


@final
@dataclass(frozen=True)
class PlainCSV(Format):
    """Comma-separated columns with their units."""

    name: str = "plain CSV"

    def recognises(self, capture: Capture) -> bool:
        return _headings(capture.head)[:1] == ["time_s"]

    def read(self, capture: Capture, choices: Choices) -> Take:
        remarks = Remarks()
        up = upright(None, "", choices, remarks)
        headings = _headings(capture.head)
        if "qw" in headings or {"qx", "qy", "qz"} <= set(headings):
            pose = read_pose_csv(capture.file)
            pose = pose if up == "z" else pose.transformed(turned(up), [0.0, 0.0, 0.0])
            rate = None if pose.n_frames < 2 else (pose.n_frames - 1) / (pose.times[-1] - pose.times[0])
            return Take(
                f"{self.name}, pose of a body",
                capture.file,
                bodies={"body": pose},
                unit="m",
                rate=rate,
                up=up,
                **remarks.said(),
            )
        if any(heading.endswith("_rad") for heading in headings):
            return Take(f"{self.name}, angles", capture.file, angles=read_angle_csv(capture.file), **remarks.said())
        said = next((match[1] for match in map(_UNIT.search, headings) if match), None)
        unit = choices.unit or said or "m"
        recording: Recording = read_csv(capture.file, unit=unit)
        if up != "z":
            recording = recording.transformed(turned(up), [0.0, 0.0, 0.0])
        rate = recording.rate if recording.n_frames > 1 else None
        return Take(self.name, capture.file, replace(recording), unit=unit, rate=rate, up=up, **remarks.said())


def _headings(head: str) -> list[str]:
    """Return the cells of the first line that is neither blank nor a comment."""
    for line in re.split(r"\r\n|\n|\r", head):
        if line.strip() and not line.lstrip().startswith("#"):
            return [cell.strip().strip('"') for cell in line.split(",")]
    return []
