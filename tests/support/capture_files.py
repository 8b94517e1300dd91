"""Files of capture systems for tests, written after the published layouts: the same motion in every format."""

import numpy as np

RATE = 100.0
NAMES = ("heel", "toe", "hip")


def motion(n_frames: int = 12) -> np.ndarray:
    """Positions (nf, 3, 3) in millimetres with one decimal; the second marker is hidden in frames 4 and 5."""
    rng = np.random.default_rng(7)
    positions = np.round(
        rng.normal(0.0, 300.0, (1, 3, 3)) + np.cumsum(rng.normal(0.0, 3.0, (n_frames, 3, 3)), axis=0), 1
    )
    positions[4:6, 1] = np.nan
    return positions


def cells(values: np.ndarray, blank: str = "") -> list[str]:
    return [blank if np.isnan(value) else f"{value:.1f}" for value in np.ravel(values)]


def motive(
    positions: np.ndarray,
    *,
    parent: bool = False,
    labels: bool = False,
    end: str = "\n",
    bom: bool = False,
    unit: str = "Millimeters",
) -> bytes:
    """Motive CSV 1.21; with ``labels`` and ``parent`` as 1.23 and later have it."""
    keys = ["Format Version", "1.23" if parent else "1.21", "Take Name", "a, b", "Capture Frame Rate",
            "100.000000", "Export Frame Rate", "100.000000", "Total Exported Frames", str(len(positions)),
            "Rotation Type", "Quaternion",
            "Length Units", unit, "Coordinate Space", "Global"]  # fmt: skip
    kinds = ["Rigid Body"] * 8 + ["Rigid Body Marker"] * 4 + ["Marker"] * 9
    names = ["Foot"] * 8 + ["Foot:heel"] * 4 + [name for name in NAMES for _ in range(3)]
    quantity = (
        ["Rotation"] * 4
        + ["Position"] * 3
        + ["Mean Marker Error"]
        + ["Position"] * 3
        + ["Marker Quality"]
        + ["Position"] * 9
    )
    axes = [*"XYZW", *"XYZ", "", *"XYZ", "", *("XYZ" * 3)]
    head = [("Type", kinds), ("Name", names), ("ID", [f'"{k // 3:X}"' for k in range(len(kinds))])]
    head[2] = ("ID", ["A"] * 8 + ["B"] * 4 + ["C"] * 3 + ["D"] * 3 + ["E"] * 3)
    if parent:
        head.append(("Parent", [""] * 8 + ["Foot"] * 4 + ["Foot"] * 6 + [""] * 3))
    lines = [",".join(f'"{key}"' if "," in key else key for key in keys), ""]
    lines += [",".join(["", name if labels else "", *row]) for name, row in [*head, ("", quantity)]]
    lines.append(",".join(["Frame", "Time (Seconds)" if parent else "Time", *axes]))
    for k, frame in enumerate(positions):
        seen = not np.isnan(frame).any()
        body = ["0.6", "0.0", "0.0", "0.8", "1.0", "2.0", "3.0", "0.1"] if seen else [""] * 8
        lines.append(",".join([str(k), f"{k / RATE:.6f}", *body, "9.0", "9.0", "9.0", "1.0", *cells(frame)]))
    return (b"\xef\xbb\xbf" if bom else b"") + (end.join(lines) + end).encode()


def vicon(
    positions: np.ndarray, *, delimiter: str = ",", first: int = 1, devices: bool = False, end: str = "\r\n"
) -> bytes:
    """Vicon Nexus CSV; with two analog channels at ten times the rate, and events."""
    lines = []
    if devices:
        lines += [
            "Events",
            "100",
            "Subject,Context,Name,Time (s),Description",
            "Anna,Left,Foot Strike,0.05,the heel",
            "",
        ]
        lines += ["Devices", "1000", ",,Plate 1 - Force,,Plate 1 - Moment", "Frame,Sub Frame,Fx,Fy,Mx", ",,N,N,N.mm"]
        for k in range(10 * len(positions)):
            lines.append(f"{first + k // 10},{k % 10},{k / 10},{-k},{3 * k}")
        lines.append("")
    lines += [
        "Trajectories",
        "100",
        ",,Anna:heel,,,Anna:toe,,,Anna:hip,,",
        "Frame,Sub Frame" + ",X,Y,Z" * 3,
        "," + ",mm" * 9,
    ]
    lines += [",".join([str(first + k), "0", *cells(frame)]) for k, frame in enumerate(positions)]
    return (end.join(lines) + end).replace(",", delimiter).encode()


def qualisys(
    positions: np.ndarray, *, titles: bool = True, timed: bool = True, version: str = "", missing: str = "0.000"
) -> bytes:
    """Qualisys TSV; ``titles`` and ``timed`` are options of its export."""
    lines = [f"FILE_VERSION\t{version}"] if version else []
    lines += [f"NO_OF_FRAMES\t{len(positions)}", "NO_OF_CAMERAS\t8", f"NO_OF_MARKERS\t{positions.shape[1]}",
              "FREQUENCY\t100", "DESCRIPTION\t--", "TIME_STAMP\t2024-12-11, 14:44:57.047\t64924.7", "DATA_INCLUDED\t3D",
              "EVENT\tkick\t6\t0.05", "MARKER_NAMES\t" + "\t".join(NAMES)]  # fmt: skip
    if version:
        lines.append("TRAJECTORY_TYPES" + "\tMeasured" * 3)
    if titles:
        lines.append(
            "\t".join((["Frame", "Time"] if timed else []) + [f"{name} {axis}" for name in NAMES for axis in "XYZ"])
        )
    for k, frame in enumerate(positions):
        lines.append("\t".join(([str(k + 1), f"{k / RATE:.5f}"] if timed else []) + cells(frame, missing)))
    return ("\r\n".join(lines) + "\r\n").encode()


def trc(
    positions: np.ndarray, *, delimiter: str = "\t", blank: bool = True, unit: str = "mm", axes: bool = True
) -> bytes:
    """TRC; the blank line below the axes is not always there."""
    n, m = positions.shape[:2]
    keys = "DataRate CameraRate NumFrames NumMarkers Units OrigDataRate OrigDataStartFrame OrigNumFrames"
    lines = ["PathFileType\t4\t(X/Y/Z)\twalk.trc", keys.replace(" ", "\t"),
             f"100.00\t100.00\t{n}\t{m}\t{unit}\t100.00\t1\t{n}",
             "Frame#\tTime\t" + "\t\t\t".join(NAMES) + "\t\t"]  # fmt: skip
    if axes:
        lines.append("\t\t" + "\t".join(f"{axis}{k + 1}" for k in range(m) for axis in "XYZ"))
    lines += [""] if blank else []
    lines += ["\t".join([str(k + 1), f"{k / RATE:.3f}", *cells(frame)]) for k, frame in enumerate(positions)]
    return ("\n".join(lines) + "\n").replace("\t", delimiter).encode()


def plain(positions: np.ndarray) -> bytes:
    """Plain CSV with the unit in the headings."""
    lines = [",".join(["time_s", *(f"{name}_{axis}_mm" for name in NAMES for axis in "xyz")])]
    lines += [",".join([repr(k / RATE), *cells(frame)]) for k, frame in enumerate(positions)]
    return ("\n".join(lines) + "\n").encode()
