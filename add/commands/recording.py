"""`add recording`: what a capture file holds, in another format, in a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.mocap import Recording, Take, write_csv, write_pose_csv, write_signals, write_trc
from add.mocap.suspects import suspects

#: Formats to which markers are converted, by the name of the file.
WRITERS = {".csv": write_csv, ".trc": write_trc}


def contents(take: Take) -> dict[str, Any]:
    """Return what a file holds, for JSON; lengths in metres, times in seconds."""
    out: dict[str, Any] = {
        "file": take.source,
        "format": take.format,
        "unit": take.unit or None,
        "rate": take.rate,
        "up": take.up,
        "markers": {} if take.markers is None else _seen(take.markers, take.unlabelled),
        "bodies": {name: {"frames": pose.n_frames} | _span(pose.times) for name, pose in take.bodies.items()},
        "angles": [] if take.angles is None else list(take.angles.names),
        "signals": [
            {"name": item.name, "unit": item.unit, "samples": len(item.times)} | _span(item.times)
            for item in take.signals
        ],
        "events": [{"name": event.name, "time": event.time} for event in take.events],
        "notes": list(take.notes),
        "warnings": [
            *take.doubts,
            *([take.frame] if take.frame else []),
            *(() if take.markers is None else suspects(take.markers)),
        ],
    }
    times = _times(take)
    if times is not None:
        out |= {"frames": len(times)} | _span(times)
    return out


def _times(take: Take) -> np.ndarray | None:
    """Return the times of the markers, or of the first thing that has some."""
    parts = (take.markers, *take.bodies.values(), take.angles, *take.signals)
    return next((part.times for part in parts if part is not None), None)


def _span(times: np.ndarray) -> dict[str, float]:
    return {"start": float(times[0]), "end": float(times[-1])}


def _seen(markers: Recording, unlabelled: Sequence[str]) -> dict[str, Any]:
    """Return, of each marker, the frames in which it was seen and the number of its gaps."""
    found = {}
    for k, name in enumerate(markers.names):
        valid = markers.valid[:, k]
        frames = np.flatnonzero(valid)
        inside = valid[frames[0] : frames[-1] + 1] if frames.size else valid[:0]
        gaps = int((np.diff(inside.astype(int)) == -1).sum())
        found[name] = {"seen": int(valid.sum()), "gaps": gaps, "labelled": name not in unlabelled}
    return found


def description(take: Take) -> list[str]:
    """Return what a file holds in lines for people."""
    found = contents(take)
    lines = [f"{take.source}: {take.format}"]
    if "frames" in found:
        rate = "" if take.rate is None else f", {take.rate:.6g} frames a second"
        unit = f", unit of the file {take.unit}" if take.unit else ""
        lines.append(f"  {found['frames']} frames from {found['start']:.6g} to {found['end']:.6g} s{rate}{unit}")
    labelled = {name: item for name, item in found["markers"].items() if item["labelled"]}
    if found["markers"]:
        lines.append(f"  {len(labelled)} markers" + _gaps(labelled, found["frames"]))
        lines += [f"    {name}: {_coverage(item, found['frames'])}" for name, item in labelled.items()]
    if take.unlabelled:
        lines.append(f"  {len(take.unlabelled)} unlabelled tracks, kept; a fit uses only what a scene names")
        lines += [f"    {name}: {_coverage(found['markers'][name], found['frames'])}" for name in take.unlabelled]
    for name, body in found["bodies"].items():
        lines.append(f"  body {name}: pose in {body['frames']} frames")
    if found["angles"]:
        lines.append(f"  angles: {', '.join(found['angles'])}")
    if take.signals:
        lines.append(f"  {len(take.signals)} signals")
        for item in found["signals"]:
            lines.append(
                f"    {item['name']}" + (f" [{item['unit']}]" if item["unit"] else "") + f": {item['samples']} samples"
            )
    lines += [f"  event at {event.time:.6g} s: {event.name}" for event in take.events]
    lines += [f"  note: {text}" for text in take.notes]
    return lines


def _coverage(item: dict[str, Any], frames: int) -> str:
    if item["seen"] == frames:
        return "every frame"
    return f"{item['seen']} of {frames} frames, {item['gaps']} gap{'' if item['gaps'] == 1 else 's'} within"


def _gaps(markers: dict[str, Any], frames: int) -> str:
    whole = sum(item["seen"] == frames for item in markers.values())
    return ", all seen in every frame" if whole == len(markers) else f", {whole} of them seen in every frame"


def convert(
    take: Take,
    out: str,
    *,
    names: Sequence[str] = (),
    labelled: bool = False,
    body: str | None = None,
    signals: bool = False,
) -> list[Path]:
    """Write a capture file in another format, in metres with z up.

    Parameters
    ----------
    take : what was read
    out : file; .csv or .trc
    names : of the markers to write; default: all
    labelled : leave unlabelled tracks out
    body : write the pose of this body instead
    signals : write the signals instead

    Raises
    ------
    InputError
        If the format is unknown, nothing of the kind is there, or the file cannot be written.
    """
    target = Path(out)
    suffix = target.suffix.lower()
    if suffix not in WRITERS or (suffix != ".csv" and (body is not None or signals)):
        expected = ".csv" if body is not None or signals else " or ".join(WRITERS)
        raise InputError("cannot be written in this format", file=out, found=repr(target.suffix), expected=expected)
    if signals:
        return write_signals(target, take.signals)
    if body is not None or (take.markers is None and take.bodies and suffix == ".csv"):
        write_pose_csv(target, take.body(body))
        return [target]
    markers = take.require_markers()
    if names:
        markers = markers.select(list(names))
    elif labelled:
        chosen = [name for name in markers.names if name not in take.unlabelled]
        if not chosen:
            raise InputError("no track has a label", file=take.source, found=f"{markers.n_markers} unlabelled ones")
        markers = markers.select(chosen)
    WRITERS[suffix](target, markers)
    return [target]
