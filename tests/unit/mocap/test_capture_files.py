"""Files of capture systems: the public samples against their twins, and every variant of a format that is published."""

import numpy as np
import pytest
from support import capture_files as made
from support.c3d_files import DEC, INTEL, MIPS, c3d_bytes
from support.places import DATA

from add.errors import InputError
from add.mocap import read_csv, read_take, write_csv, write_trc

real = pytest.mark.skipif(not (DATA / "mocap").is_dir(), reason=f"no recordings at {DATA} (set ADD_DATA)")
MOTION = made.motion()


def take(tmp_path, data: bytes, name: str = "take.dat", **choices):
    """Read bytes under a name that says nothing about them."""
    (tmp_path / name).write_bytes(data)
    return read_take(tmp_path / name, **choices)


def require_motion(found, positions=MOTION, start: float = 0.0) -> None:
    markers = found.markers
    assert found.rate == pytest.approx(100.0)
    np.testing.assert_allclose(markers.times, start + np.arange(len(positions)) / 100.0, atol=1e-12)
    assert (markers.valid == ~np.isnan(positions).any(axis=2)).all()
    np.testing.assert_allclose(markers.positions, positions / 1000.0, atol=1e-9)


# --- the public samples ----------------------------------------------------------------------------------------------

C3D_TWINS = [
    *(("soft/srl_mit/beam_c3d", "soft/csv/silicone_beam", f"beam_{name}") for name in ("gravity_V2_a", "load52_V2_a")),
    *(("soft/srl_mit/segment_c3d", "soft/csv/pneumatic_segment", f"{p}mbar_V3") for p in (100, 200, 300, 400)),
    *(("soft/srl_mit/segment_c3d", "soft/csv/pneumatic_segment", f"segment-{p}mbar") for p in (200, 400)),
]


@real
@pytest.mark.parametrize(("folder", "twins", "name"), C3D_TWINS)
def test_c3d_is_its_csv(folder, twins, name):
    found = read_take(DATA / folder / f"{name}.c3d").markers
    twin = read_csv(DATA / twins / f"{name}.csv")
    assert [label.replace(" ", "") for label in found.names] == list(twin.names)
    assert (found.valid == twin.valid).all()
    np.testing.assert_allclose(found.times, twin.times, atol=1e-9)
    np.testing.assert_allclose(found.positions, twin.positions, atol=0.5001e-6)  # the CSV has six decimals


@real
def test_vicon_csv_and_c3d_are_one_trial():
    folder = DATA / "mocap" / "pyomeca_apache2"
    csv, c3d = read_take(folder / "markers.csv"), read_take(folder / "markers_analogs.c3d")
    assert csv.markers.names == c3d.markers.names
    assert csv.markers.n_markers == 51
    assert (csv.markers.valid == c3d.markers.valid).all()
    assert (~csv.markers.valid).sum() == 305  # blank in one, a negative residual in the other
    np.testing.assert_allclose(csv.markers.times, c3d.markers.times, atol=1e-9)
    # Six significant digits of a number beyond 1000 mm.
    np.testing.assert_allclose(csv.markers.positions, c3d.markers.positions, atol=0.51e-5)
    assert (csv.unit, c3d.unit, csv.rate, c3d.rate) == ("mm", "mm", 100.0, 100.0)
    assert len(c3d.signals) == 38
    voltage = c3d.signals[0]
    assert (voltage.name, voltage.unit, voltage.values.shape) == ("Voltage.1", "V", (11600,))
    assert voltage.times[1] == pytest.approx(1 / 2000)


@real
@pytest.mark.parametrize("k", [0, 1, 2])
def test_qualisys_has_the_throws(k):
    """Each throw was cut out of the unlabelled tracks of the export by somebody else."""
    found = read_take(DATA / "mocap/jugglebot_qtm/3_throws_tracking_lost_on_each.tsv")
    throw = read_csv(DATA / f"rigid/csv/ball_throws/3_throws_tracking_lost_on_each_{k:02}.csv")
    assert found.markers.names[:6] == tuple(f"base_{i}" for i in range(1, 7))
    assert found.unlabelled == tuple(f"unlabelled {i}" for i in range(1, 7))
    loose = found.markers.select(found.unlabelled)
    frames = np.round(throw.times * 300).astype(int)
    np.testing.assert_allclose(loose.times[frames], throw.times, atol=0.6e-5)
    seen = throw.valid[:, 0]
    together = np.nanmean(np.where(loose.valid[frames][:, :, None], loose.positions[frames], np.nan)[seen], axis=1)
    np.testing.assert_allclose(together, throw.positions[seen, 0], atol=0.6e-5)


@real
def test_motive_sample():
    """Marker 1 of the rigid body at rest is at the place that its model has there."""
    found = read_take(DATA / "mocap/hmv_bsd3/sample_optitrack_take.csv")
    assert (found.format, found.unit, found.rate) == ("Motive CSV 1.21", "m", 120.0)
    assert found.markers.n_frames == 250
    assert len(found.unlabelled) == 6
    assert [name for name in found.markers.names if name not in found.unlabelled] == [
        f"Rigid Body 1:Marker{k}" for k in (1, 2, 3)
    ]
    body = found.bodies["Rigid Body 1"]
    np.testing.assert_allclose(body.position[0], (0.060002, 0.019150, 0.076611), atol=1e-12)
    np.testing.assert_allclose(np.abs(body.quaternion[0]), (1.0, 3.5e-5, 1.6e-5, 3.0e-5), atol=1e-6)
    np.testing.assert_allclose(
        found.markers.marker("Rigid Body 1:Marker1")[0], (0.009933, 0.019160, 0.009812), atol=1e-12
    )
    assert any("Rigid Body Marker" in text for text in found.notes)
    assert "y up" in found.frame


@real
def test_motive_turned():
    path = DATA / "mocap/hmv_bsd3/sample_optitrack_take.csv"
    found, turned = read_take(path), read_take(path, up="y")
    x, y, z = np.moveaxis(found.markers.positions, 2, 0)
    np.testing.assert_array_equal(turned.markers.positions, np.stack([x, -z, y], axis=2))
    body, again = found.bodies["Rigid Body 1"], turned.bodies["Rigid Body 1"]
    point = np.array([[0.1, -0.2, 0.3]])
    before, after = body.markers(point).positions[:, 0], again.markers(point).positions[:, 0]
    np.testing.assert_allclose(after, before[:, [0, 2, 1]] * [1, -1, 1], atol=1e-12)


@real
def test_trc_sample():
    """Comma-separated and cut by its authors: the header promises 652 frames."""
    path = DATA / "mocap/pyomeca_apache2/markers.trc"
    found = read_take(path)
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[6:]]
    expected = np.array([[float(cell) for cell in row[2:155]] for row in rows]).reshape(-1, 51, 3) / 1000
    np.testing.assert_allclose(found.markers.positions, expected, atol=1e-12)
    np.testing.assert_allclose(found.markers.times, [float(row[1]) for row in rows], atol=1e-9)
    assert "promises 652 frames, and 93" in found.doubts[0]


# --- variants of the formats -----------------------------------------------------------------------------------------

SAME = {
    "motive 1.21": made.motive(MOTION),
    "motive 1.23": made.motive(MOTION, parent=True, labels=True, end="\r\n", bom=True),
    "motive parent, no labels": made.motive(MOTION, parent=True),
    "vicon": made.vicon(MOTION),
    "vicon devices": made.vicon(MOTION, devices=True, end="\n"),
    "vicon semicolons": made.vicon(MOTION, delimiter=";", devices=True),
    "vicon tabs": made.vicon(MOTION, delimiter="\t"),
    "qualisys": made.qualisys(MOTION),
    "qualisys 2": made.qualisys(MOTION, version="2.0.0"),
    "qualisys blank": made.qualisys(MOTION, missing=""),
    "qualisys no titles": made.qualisys(MOTION, titles=False),
    "qualisys no times": made.qualisys(MOTION, titles=False, timed=False),
    "trc": made.trc(MOTION),
    "trc no blank line": made.trc(MOTION, blank=False),
    "trc commas": made.trc(MOTION, delimiter=","),
    "trc no axes": made.trc(MOTION, axes=False, blank=False),
    "plain": made.plain(MOTION),
}


@pytest.mark.parametrize("variant", SAME)
def test_the_same_motion(variant, tmp_path):
    found = take(tmp_path, SAME[variant])
    require_motion(found)
    expected = tuple(f"Anna:{name}" for name in made.NAMES) if variant.startswith("vicon") else made.NAMES
    assert found.markers.names == expected
    assert not found.doubts
    assert not found.unlabelled


@pytest.mark.parametrize("processor", [INTEL, DEC, MIPS])
@pytest.mark.parametrize("scale", [-0.1, 0.1])
@pytest.mark.parametrize("per_frame", [0, 5])
def test_c3d_of_every_processor(processor, scale, per_frame, tmp_path):
    points = np.zeros((len(MOTION), 3, 4))
    points[:, :, :3] = np.nan_to_num(MOTION)
    points[:, :, 3] = np.where(np.isnan(MOTION).any(axis=2), -1.0, 3.0)
    words = np.arange(2.0 * per_frame * len(MOTION)).reshape(-1, 2) if per_frame else None
    analog = {
        "SCALE": np.array([0.5, 2.0], np.float32),
        "OFFSET": np.array([10, 0], np.int16),
        "GEN_SCALE": np.float32(0.1),
    }
    groups = {
        "POINT": {"LABELS": list(made.NAMES)},
        "ANALOG": analog if per_frame else {},
        "EVENT": {
            "USED": np.int16(1), "LABELS": ["Foot Strike"], "CONTEXTS": ["Left"],
            "TIMES": np.array([[1.0], [0.05]], np.float32),
        },
    }  # fmt: skip
    data = c3d_bytes(points, processor=processor, scale=scale, analog=words, per_frame=max(per_frame, 1), groups=groups)
    found = take(tmp_path, data)
    markers = found.markers
    assert markers.names == made.NAMES
    assert (markers.valid == ~np.isnan(MOTION).any(axis=2)).all()
    np.testing.assert_allclose(markers.positions, MOTION / 1000.0, atol=1e-7)
    assert [(event.name, event.time) for event in found.events] == [("Left Foot Strike", pytest.approx(60.05))]
    if per_frame:
        assert [signal.name for signal in found.signals] == ["A1", "A2"]
        np.testing.assert_allclose(found.signals[0].values, (words[:, 0] - 10) * 0.5 * 0.1, atol=1e-6)
        np.testing.assert_allclose(found.signals[1].values, words[:, 1] * 2.0 * 0.1, atol=1e-5)
        np.testing.assert_allclose(found.signals[0].times, np.arange(len(words)) / 500.0, atol=1e-12)


def test_c3d_of_one_analog_channel(tmp_path):
    """Its offset and scale are plain numbers there, as `ezc3d` writes them, not lists of one."""
    words = np.arange(20.0).reshape(-1, 1)
    analog = {"SCALE": np.float32(0.5), "OFFSET": np.int16(4)}
    found = take(tmp_path, c3d_bytes(points_of(), analog=words, per_frame=5, groups={"ANALOG": analog}))
    assert [signal.name for signal in found.signals] == ["A1"]
    np.testing.assert_allclose(found.signals[0].values, (words[:, 0] - 4.0) * 0.5, atol=1e-6)
    assert found.markers.names == ("M1", "M2", "M3")


def points_of(positions=MOTION[:4]) -> np.ndarray:
    return np.concatenate([positions, np.zeros((*positions.shape[:2], 1))], axis=2)


def test_c3d_begins_later(tmp_path):
    """Frame 1 is at t = 0, so that events stay where they were marked."""
    found = take(tmp_path, c3d_bytes(points_of(), first=51, header_events=[("KICK", 0.52)]))
    require_motion(found, MOTION[:4], start=0.5)
    assert [(event.name, round(event.time, 6)) for event in found.events] == [("KICK", 0.52)]


def test_vicon_begins_later(tmp_path):
    require_motion(take(tmp_path, made.vicon(MOTION, first=51)), start=0.5)


def test_c3d_outputs_of_a_model_are_no_markers(tmp_path):
    groups = {"POINT": {"LABELS": ["heel", "LKneeAngles", "*3"], "ANGLES": ["LKneeAngles"], "ANGLE_UNITS": "deg"}}
    found = take(tmp_path, c3d_bytes(points_of(), groups=groups))
    assert found.markers.names == ("heel", "*3")
    assert found.unlabelled == ("*3",)
    assert [(signal.name, signal.unit) for signal in found.signals] == [
        (f"LKneeAngles {axis}", "deg") for axis in "XYZ"
    ]
    np.testing.assert_allclose(found.signals[1].values, MOTION[:4, 1, 1], rtol=1e-6)


@pytest.mark.parametrize(("said", "up"), [("+Z", "z"), ("+Y", "y"), ("+X", "x"), ("-Z", "z"), (None, "z")])
def test_c3d_turned_only_where_it_says_so(said, up, tmp_path):
    found = take(tmp_path, c3d_bytes(points_of(), groups={"POINT": {"Y_SCREEN": said}}))
    x, y, z = np.moveaxis(MOTION[:4], 2, 0)
    expected = {"x": (y, z, x), "y": (x, -z, y), "z": (x, y, z)}[up]
    np.testing.assert_allclose(found.markers.positions, np.stack(expected, axis=2) / 1000.0, atol=1e-7)
    assert found.up == up
    assert ("turned" in found.frame) is (up != "z")
    assert bool(found.frame) is (said not in ("+Z", None))
    asked = take(tmp_path, c3d_bytes(points_of(), groups={"POINT": {"Y_SCREEN": said}}), up="z")
    np.testing.assert_allclose(asked.markers.positions, MOTION[:4] / 1000.0, atol=1e-7)


def test_force_plate_of_type_2(tmp_path):
    words = np.arange(6.0 * 8).reshape(8, 6)
    groups = {
        "ANALOG": {"LABELS": ["FX", "FY", "FZ", "MX", "MY", "MZ"], "UNITS": ["N", "N", "N", "Nmm", "Nmm", "Nmm"]},
        "FORCE_PLATFORM": {
            "USED": np.int16(1), "TYPE": np.array([2], np.int16), "CHANNEL": np.arange(1, 7, dtype=np.int16)[:, None],
            "ORIGIN": np.zeros((3, 1), np.float32),
        },
    }  # fmt: skip
    found = take(tmp_path, c3d_bytes(points_of(), analog=words, per_frame=2, groups=groups))
    plate = found.signals[6:]
    assert [signal.name for signal in plate] == [f"plate 1 {name}" for name in ("Fx", "Fy", "Fz", "Mx", "My", "Mz")]
    assert [signal.unit for signal in plate] == ["N"] * 3 + ["Nmm"] * 3
    np.testing.assert_allclose(np.array([signal.values for signal in plate]).T, words)


def test_force_plates_of_types_1_3_and_4():
    """The same force (1, 2, 3) N at the point (0.2, 0.1, 0) m, as sensors of each type see it."""
    from add.mocap.formats.c3d import plate_signals
    from add.mocap.take import Signal

    force, point = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.1, 0.0])
    moment = np.cross(point, force)
    a, b = 0.25, 0.15  # sensors at (+-a, +-b)
    corner = [(a, b), (-a, b), (-a, -b), (a, -b)]
    # Fz of each sensor by bilinear shares; Fx and Fy shared so that the moment about z comes out.
    share = [(1 + x / a * point[0] / a) * (1 + y / b * point[1] / b) / 4 for x, y in corner]
    split = moment[2] / 2
    fx12, fx34 = force[0] / 2 - split / (2 * b), force[0] / 2 + split / (2 * b)
    fy14, fy23 = force[1] / 2 + split / (2 * a), force[1] / 2 - split / (2 * a)
    kistler = np.array([fx12, fx34, fy14, fy23, *(3.0 * s for s in share)])
    matrix = np.eye(6) + 0.1 * np.arange(36.0).reshape(6, 6) / 36
    cases = {
        1: (np.array([*force, *point[:2], 0.0]), {}),
        3: (kistler, {"ORIGIN": np.array([[a, b, 0.0]])}),
        4: (np.linalg.solve(matrix, [*force, *moment]), {"CAL_MATRIX": matrix.T[None]}),
    }
    for kind, (values, more) in cases.items():
        analog = [Signal(f"c{k}", np.zeros(1), np.array([value])) for k, value in enumerate(values)]
        parameters = {
            "USED": np.ones(1),
            "TYPE": np.array([kind]),
            "CHANNEL": np.arange(1.0, len(values) + 1)[None],
            **more,
        }
        notes: list[str] = []
        found = [float(signal.values[0]) for signal in plate_signals(parameters, analog, notes)]
        np.testing.assert_allclose(found, [*force, *moment], atol=1e-12, err_msg=f"type {kind}")
        assert not notes


def test_force_plates_that_are_not_made_out(tmp_path):
    """A plate of type 4 without a matrix of its own is none in newtons; a baseline is said, and left in."""
    plate = {
        "USED": np.int16(2),
        "TYPE": np.array([4, 4], np.int16),
        "ORIGIN": np.zeros((3, 2), np.float32),
        "CHANNEL": np.tile(np.arange(1, 7, dtype=np.int16)[:, None], 2),
        "ZERO": np.array([1, 3], np.int16),
    }
    for matrices, made_out in ((None, 0), (np.eye(6, dtype=np.float32)[..., None], 1)):
        groups = {"FORCE_PLATFORM": plate | {"CAL_MATRIX": matrices}}
        found = take(tmp_path, c3d_bytes(points_of(), analog=np.ones((8, 6)), per_frame=2, groups=groups))
        assert len(found.signals) == 6 + 6 * made_out
        assert [f"force plate {k + 1} of type 4" in note for k, note in enumerate(found.notes[1:], start=made_out)] == (
            [True] * (2 - made_out)
        )
        assert "ZERO" in found.notes[0] and "frames 1 to 3" in found.notes[0]


@pytest.mark.parametrize("used", [0, 1, 2, None])
def test_c3d_has_as_many_events_as_it_says(tmp_path, used):
    event = {"USED": None if used is None else np.int16(used), "LABELS": ["on", "off"],
             "TIMES": np.array([[0, 0], [0.1, 0.2]], np.float32)}  # fmt: skip
    found = take(tmp_path, c3d_bytes(points_of(), groups={"EVENT": event}))
    assert [item.name for item in found.events] == ["on", "off"][:used]


@pytest.mark.parametrize("flags", [b"\0\0", b"\0\1", b"\1\1"])
def test_c3d_events_of_the_header_shown_or_not(tmp_path, flags):
    """The format's manual has both 0 and 1 for "on", and says that events are valid whatever their status is."""
    data = bytearray(c3d_bytes(points_of(), header_events=[("KICK", 0.01), ("STOP", 0.02)]))
    data[2 * 188 : 2 * 188 + 2] = flags
    assert [item.name for item in take(tmp_path, bytes(data)).events] == ["KICK", "STOP"]


def test_devices_and_events_of_vicon(tmp_path):
    found = take(tmp_path, made.vicon(MOTION, devices=True, first=11))
    assert [(signal.name, signal.unit) for signal in found.signals] == [
        ("Plate 1 - Force Fx", "N"), ("Plate 1 - Force Fy", "N"), ("Plate 1 - Moment Mx", "N.mm"),
    ]  # fmt: skip
    np.testing.assert_allclose(found.signals[0].times, 0.1 + np.arange(120) / 1000.0, atol=1e-12)
    np.testing.assert_allclose(found.signals[1].values, -np.arange(120.0))
    assert [(event.name, event.time) for event in found.events] == [("Anna Left Foot Strike", 0.05)]


def test_qualisys_with_the_time_alone(tmp_path):
    """A row may begin with its time, or with the number of its frame, 1 at t = 0."""
    head = b"NO_OF_FRAMES\t2\nNO_OF_MARKERS\t1\nFREQUENCY\t100\nDATA_INCLUDED\t3D\nMARKER_NAMES\ta\n"
    for title, rows in ((b"Time", (b"0.50", b"0.51")), (b"Frame", (b"51", b"52"))):
        lines = title + b"\ta X\ta Y\ta Z\n" + b"".join(row + b"\t1\t2\t3\n" for row in rows)
        np.testing.assert_allclose(take(tmp_path, head + lines).markers.times, [0.5, 0.51], atol=1e-12)


def test_poses_in_metres_are_not_taken_for_others(tmp_path):
    data = b"time_s,x_m,y_m,z_m,qw,qx,qy,qz\n0,1,2,3,1,0,0,0\n"
    assert take(tmp_path, data, unit="m").unit == "m"
    with pytest.raises(InputError, match=r"another unit was asked for than the file says .found 'm'; expected 'mm'"):
        take(tmp_path, data, unit="mm")
    assert take(tmp_path, b"time_s,a_rad\n0,1\n", up="y").frame == ""  # nothing was turned


def test_events_of_qualisys(tmp_path):
    assert [(event.name, event.time) for event in take(tmp_path, made.qualisys(MOTION)).events] == [("kick", 0.05)]


def test_rigid_body_of_motive_has_gaps(tmp_path):
    found = take(tmp_path, made.motive(MOTION, parent=True))
    body = found.bodies["Foot"]
    assert body.n_frames == 10  # frames 4 and 5 are blank
    np.testing.assert_allclose(body.quaternion[0], (0.8, 0.6, 0.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(body.position[0], (1e-3, 2e-3, 3e-3), atol=1e-15)


def test_velocities_of_vicon_are_no_markers(tmp_path):
    lines = made.vicon(MOTION, end="\n").decode().splitlines()
    lines[2] += ",Anna:hip',,"
    lines[3] += ",X',Y',Z'"
    lines[4] += ",mm/s,mm/s,mm/s"
    lines[5:] = [line + ",1.0,2.0,3.0" for line in lines[5:]]
    found = take(tmp_path, "\n".join(lines).encode())
    require_motion(found)
    assert found.markers.n_markers == 3


def test_decimal_commas_of_vicon(tmp_path):
    data = made.vicon(MOTION, delimiter=";").decode()
    require_motion(take(tmp_path, data.replace(".", ",").encode()))


def test_times_lose_their_rounding(tmp_path):
    """120 Hz in milliseconds: 0.008, 0.017, 0.025 are frames of 1/120 s."""
    text = made.trc(MOTION).decode().replace("100.00", "120.00")
    for k in range(len(MOTION)):
        text = text.replace(f"\n{k + 1}\t{k / 100:.3f}", f"\n{k + 1}\t{k / 120:.3f}")
    np.testing.assert_allclose(take(tmp_path, text.encode()).markers.times, np.arange(len(MOTION)) / 120, atol=1e-15)


def test_times_are_believed_over_the_rate(tmp_path):
    found = take(tmp_path, made.trc(MOTION).replace(b"100.00\t100.00\t12", b"200.00\t200.00\t12"))
    assert found.markers.times[1] == 0.01
    assert "200 frames a second, the times 100" in found.doubts[0]


# --- units, names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "factor"), [("Meters", 1.0), ("Centimeters", 0.01), ("Millimeters", 1e-3), ("Inches", 0.0254)]
)
def test_units_of_motive(unit, factor, tmp_path):
    found = take(tmp_path, made.motive(MOTION, unit=unit))
    np.testing.assert_allclose(found.markers.positions, MOTION * factor, rtol=1e-12)
    np.testing.assert_allclose(found.bodies["Foot"].position[0], np.array([1, 2, 3]) * factor, rtol=1e-12)


@pytest.mark.parametrize(
    "data",
    [
        made.motive(MOTION).replace(b",Length Units,Millimeters", b""),
        made.trc(MOTION, unit=""),
        made.vicon(MOTION).replace(b",mm", b","),
        c3d_bytes(points_of(), groups={"POINT": {"UNITS": None}}),
    ],
    ids=["motive", "trc", "vicon", "c3d"],
)
def test_a_file_without_a_unit_is_asked_for_one(data, tmp_path):
    with pytest.raises(InputError, match="does not say its unit of length"):
        take(tmp_path, data)
    np.testing.assert_allclose(take(tmp_path, data, unit="mm").markers.positions[0], MOTION[0] / 1000, atol=1e-7)
    np.testing.assert_allclose(take(tmp_path, data, unit="m").markers.positions[0], MOTION[0], atol=1e-4)


def test_another_unit_than_the_file_says(tmp_path):
    with pytest.raises(InputError, match="another unit was asked for"):
        take(tmp_path, made.trc(MOTION), unit="m")


REPEATED = {
    "motive": made.motive(MOTION).replace(b"heel,heel,heel,toe,toe,toe", b"heel,heel,heel,heel,heel,heel"),
    "vicon": made.vicon(MOTION).replace(b"Anna:toe", b"Anna:heel"),
    "qualisys": made.qualisys(MOTION).replace(b"toe", b"heel"),
    "trc": made.trc(MOTION).replace(b"toe", b"heel"),
    "c3d": c3d_bytes(points_of(MOTION[:4]), groups={"POINT": {"LABELS": ["heel", "heel", "hip"]}}),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_repeated_names(kind, tmp_path):
    with pytest.raises(InputError, match="two tracks have the same name"):
        take(tmp_path, REPEATED[kind])
    found = take(tmp_path, REPEATED[kind], number_repeated=True)
    first = "Anna:heel" if kind == "vicon" else "heel"
    assert found.markers.names[:2] == (f"{first}#1", f"{first}#2")
    np.testing.assert_allclose(found.markers.positions[:4], MOTION[:4] / 1000, atol=1e-7)


def test_unlabelled_tracks(tmp_path):
    text = made.motive(MOTION).decode().replace("toe", "Unlabeled 2379").replace("hip", "Unlabeled 2379")
    found = take(tmp_path, text.replace("E,E,E", "F,F,F").encode())
    assert found.markers.names == ("heel", "Unlabeled 2379#1", "Unlabeled 2379#2")
    assert found.unlabelled == found.markers.names[1:]


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "write"), [(".csv", write_csv), (".trc", write_trc)])
def test_written_files_come_back(suffix, write, tmp_path):
    markers = take(tmp_path, made.vicon(MOTION)).markers
    write(tmp_path / f"out{suffix}", markers)
    again = read_take(tmp_path / f"out{suffix}").markers
    assert again.names == markers.names
    assert again.positions.tobytes() == markers.positions.tobytes()
    np.testing.assert_allclose(again.times, markers.times, atol=1e-15)


def test_the_line_between_headings_and_frames_of_a_trc_is_empty(tmp_path):
    """OpenSim takes any text there, the quotes of an empty cell too, for a frame with too few numbers."""
    write_trc(tmp_path / "out.trc", take(tmp_path, made.vicon(MOTION)).markers)
    lines = (tmp_path / "out.trc").read_text().split("\n")
    assert lines[5] == ""
    assert lines[6].startswith("1\t")
