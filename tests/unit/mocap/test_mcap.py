"""MCAP files that the ecosystem's own writers make, read back."""

import json

import numpy as np
import pytest

from add.errors import InputError
from add.mocap.formats import read_take

mcap = pytest.importorskip("mcap_ros2.writer", reason="mcap-ros2-support is not installed: pip install 'add-sim[ros]'")

BREAK = "\n" + 80 * "=" + "\n"
HEADER = f"{BREAK}MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id{BREAK}" + (
    "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec"
)
POSE = f"{BREAK}MSG: geometry_msgs/Pose\nPoint position\nQuaternion orientation{BREAK}" + (
    f"MSG: geometry_msgs/Point\nfloat64 x\nfloat64 y\nfloat64 z{BREAK}"
    "MSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w"
)
VECTOR = f"{BREAK}MSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z"
TYPES = {
    "sensor_msgs/msg/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
    "float64[] effort" + HEADER,
    "geometry_msgs/msg/PoseWithCovarianceStamped": "std_msgs/Header header\ngeometry_msgs/PoseWithCovariance pose"
    f"{HEADER}{BREAK}MSG: geometry_msgs/PoseWithCovariance\nPose pose\nfloat64[36] covariance{POSE}",
    "geometry_msgs/msg/WrenchStamped": f"std_msgs/Header header\ngeometry_msgs/Wrench wrench{HEADER}{BREAK}"
    f"MSG: geometry_msgs/Wrench\nVector3 force\nVector3 torque{VECTOR}",
    "tf2_msgs/msg/TFMessage": f"geometry_msgs/TransformStamped[] transforms{BREAK}MSG: geometry_msgs/TransformStamped\n"
    f"std_msgs/Header header\nstring child_frame_id\nTransform transform{HEADER}{BREAK}"
    f"MSG: geometry_msgs/Transform\nVector3 translation\nQuaternion rotation{VECTOR}{BREAK}"
    "MSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "std_msgs/msg/String": "string data",
}
START, N = 1_700_000_000, 5


def header(k):
    return {"stamp": {"sec": START, "nanosec": 10_000_000 * k}, "frame_id": "map"}


def vector(*values):
    return dict(zip("xyz", values, strict=True))


def bag(path, names=("a", "b"), finish=True):
    """Five frames of a joint state whose names change their order, a pose, a transform, a wrench and a text."""
    turn = {"x": 0.0, "y": 0.0, "z": 0.6, "w": 0.8}
    with open(path, "wb") as stream:
        writer = mcap.Writer(stream)
        schemas = {name: writer.register_msgdef(name, text) for name, text in TYPES.items()}
        for k in range(N):
            swap = 1 if k % 2 == 0 else -1
            state = {"header": header(k), "name": list(names)[::swap], "position": [0.1 * k, 1.0][::swap],
                     "velocity": [10.0, 0.0][::swap], "effort": [float(k), -1.0][::swap]}  # fmt: skip
            pose = {"header": header(k), "pose": {"pose": {"position": vector(k, 2.0, 3.0), "orientation": turn},
                    "covariance": (1e-4 * np.eye(6)).ravel().tolist()}}  # fmt: skip
            wrench = {"header": header(k), "wrench": {"force": vector(0, 0, k), "torque": vector(1, 2, 3)}}
            frame = {"header": header(k), "child_frame_id": "tool",
                     "transform": {"translation": vector(0, k, 0), "rotation": turn}}  # fmt: skip
            for topic, kind, message in (
                ("/joint_states", "sensor_msgs/msg/JointState", state),
                ("/box/pose", "geometry_msgs/msg/PoseWithCovarianceStamped", pose),
                ("/tf", "tf2_msgs/msg/TFMessage", {"transforms": [frame]}),
                ("/wrist", "geometry_msgs/msg/WrenchStamped", wrench),
                ("/log", "std_msgs/msg/String", {"data": "hello"}),
            ):
                writer.write_message(topic, schemas[kind], message, log_time=10**9 * START + k)
        if finish:
            writer.finish()
    return path


def test_joint_states_poses_and_wrenches(tmp_path):
    take = read_take(bag(tmp_path / "run.mcap"))
    clock = 0.01 * np.arange(N)
    assert take.angles.names == ("a", "b")
    np.testing.assert_allclose(take.angles.times, clock, atol=1e-15)
    np.testing.assert_allclose(take.angles.angles[:, 0], 0.1 * np.arange(N))
    np.testing.assert_allclose(take.angles.rates, np.tile([10.0, 0.0], (N, 1)))
    assert set(take.bodies) == {"box/pose", "tool"} and take.rate == pytest.approx(100, rel=1e-3)
    box, tool = take.bodies["box/pose"], take.bodies["tool"]
    np.testing.assert_allclose(box.position, [[k, 2, 3] for k in range(N)])
    np.testing.assert_allclose(box.quaternion, np.tile([0.8, 0, 0, 0.6], (N, 1)))
    np.testing.assert_allclose(box.covariance, np.tile(1e-4 * np.eye(6), (N, 1, 1)))
    assert tool.covariance is None and tool.position[3, 1] == 3.0
    signals = {signal.name: signal for signal in take.signals}
    np.testing.assert_allclose(signals["wrist.force.z"].values, np.arange(N))
    assert signals["wrist.torque.x"].unit == "N m" and signals["a.effort"].values.tolist() == [0, 1, 2, 3, 4]
    assert "5 messages of type String are not read" in take.notes
    turned = read_take(tmp_path / "run.mcap", up="y").bodies["box/pose"]
    np.testing.assert_allclose(turned.position[0], [0, -3, 2], atol=1e-12)


def test_json_messages(tmp_path):
    from mcap.writer import Writer

    path = tmp_path / "json.mcap"
    with open(path, "wb") as stream:
        writer = Writer(stream)
        writer.start()
        kinds = ("sensor_msgs/JointState", "std_msgs/Float64")
        schema, number = (writer.register_schema(name, "jsonschema", b"{}") for name in kinds)
        channel, plain = writer.register_channel("/j", "json", schema), writer.register_channel("/v", "json", number)
        for k in range(3):
            state = {"header": {"stamp": {"sec": 0, "nsec": 0}}, "name": ["hip"], "position": [k], "velocity": [],
                     "effort": []}  # fmt: skip
            writer.add_message(channel, k * 10**8, json.dumps(state).encode(), k * 10**8)
            writer.add_message(plain, k * 10**8, json.dumps({"data": 2 * k}).encode(), k * 10**8)
        writer.finish()
    take = read_take(path)
    np.testing.assert_allclose(take.angles.times, [0, 0.1, 0.2])
    assert take.angles.rates is None and take.signals[0].values.tolist() == [0, 2, 4]


def test_what_is_refused(tmp_path):
    whole = bag(tmp_path / "whole.mcap").read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut\.mcap: .*MCAP: the file is damaged, or was not closed"):
        read_take(cut)
    chunk = whole.index(b"\x28\xb5\x2f\xfd") + 12  # compressed
    cut.write_bytes(whole[:chunk] + b"\xff" * 40 + whole[chunk + 40 :])
    with pytest.raises(InputError, match=r"damaged, or was not closed.*Zstd"):
        read_take(cut)
    spoilt = bytearray(whole)
    spoilt[300:310] = b"\xff" * 10
    cut.write_bytes(bytes(spoilt))
    with pytest.raises(InputError, match="MCAP: "):
        read_take(cut)
    with pytest.raises(InputError, match="bad names of angles"):
        read_take(bag(tmp_path / "twice.mcap", names=("a", "a")))
    with pytest.raises(InputError, match="the file says its unit"):
        read_take(tmp_path / "whole.mcap", unit="mm")


@pytest.mark.parametrize(("frames", "said"), [(("map", "base"), True), (("map", "odom"), False)])
def test_frames_that_move_themselves(tmp_path, frames, said):
    """A tree of transforms: what a moving frame carries is said to be no pose in the world."""
    turn = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
    with open(tmp_path / "tree.mcap", "wb") as stream:
        writer = mcap.Writer(stream)
        schema = writer.register_msgdef("tf2_msgs/msg/TFMessage", TYPES["tf2_msgs/msg/TFMessage"])
        for k in range(N):
            parts = [
                {"header": header(k) | {"frame_id": frame}, "child_frame_id": child,
                 "transform": {"translation": vector(0, k, 0), "rotation": turn}}
                for frame, child in zip(frames, ("base", "hand"), strict=True)
            ]  # fmt: skip
            writer.write_message("/tf", schema, {"transforms": parts}, log_time=10**9 * START)
        writer.finish()
    take = read_take(tmp_path / "tree.mcap")
    assert set(take.bodies) == {"base", "hand"}
    text = "poses of 'hand' are in the frame 'base', which moves itself: they are not the world's"
    assert take.doubts == ((text,) if said else ())


def test_poses_in_several_frames(tmp_path):
    kind = "geometry_msgs/msg/PoseWithCovarianceStamped"
    pose = {"position": vector(1, 2, 3), "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}
    with open(tmp_path / "two.mcap", "wb") as stream:
        writer = mcap.Writer(stream)
        schema = writer.register_msgdef(kind, TYPES[kind])
        for k, frame in enumerate(("map", "odom")):
            message = {"header": header(k) | {"frame_id": frame}, "pose": {"pose": pose, "covariance": [0.0] * 36}}
            writer.write_message("/lid", schema, message, log_time=10**9 * START)
        writer.finish()
    (doubt,) = read_take(tmp_path / "two.mcap").doubts
    assert doubt == "poses of 'lid' are in several frames (map, odom), taken for those in one"


@pytest.mark.parametrize("apart", [0, 1000])
def test_two_clocks(tmp_path, apart):
    """Headers of a simulation's time, and numbers that have none: their times are the log's."""
    kinds = {kind: TYPES.get(kind, "float64 data") for kind in ("sensor_msgs/msg/JointState", "std_msgs/msg/Float64")}
    with open(tmp_path / "clocks.mcap", "wb") as stream:
        writer = mcap.Writer(stream)
        schemas = {name: writer.register_msgdef(name, text) for name, text in kinds.items()}
        for k in range(N):
            state = {"header": header(k), "name": ["a"], "position": [0.1 * k], "velocity": [], "effort": []}
            time = 10**9 * (START + apart) + 10_000_000 * k
            writer.write_message("/joints", schemas["sensor_msgs/msg/JointState"], state, log_time=time)
            writer.write_message("/u", schemas["std_msgs/msg/Float64"], {"data": 1.0}, log_time=time)
        writer.finish()
    take = read_take(tmp_path / "clocks.mcap")
    assert take.signals[0].times[0] == pytest.approx(apart)
    assert len(take.doubts) == (apart > 0)
    assert not apart or "the clock of the log is 1000 s ahead of that of the headers" in take.doubts[0]
