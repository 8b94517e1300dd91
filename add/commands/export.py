"""Controls as tables or bags for the machine that plays them, markers as capture files, runs as VTU for ParaView."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from add.bodies import TreeBody, TreeJoint
from add.equations.signals import BSplineSignal, Signal
from add.errors import InputError, require_known
from add.geometry import quadrature_geometry
from add.io.lock import remove_killed, replacing
from add.io.runfolder import FITTED, SCENE
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import BodyData, MassSpringData, SolidData
from add.machine.files import require_suffix
from add.mocap import Recording, write_csv, write_trc
from add.mocap.take import AngleRecording, PoseRecording, Signal as Samples, Take
from add.mocap.write import write_c3d
from add.scene import Scene, load_scene
from add.scene.build.built import BuiltScene
from add.scene.build.inputs import signal_of
from add.scene.build.run_data import run_data
from add.scene.read.reader import experiment_scenes
from add.scene.spec.common import SignalReferenceSpec
from add.scene.spec.links import robot_of, trees
from add.scene.spec.scene import SceneSpec
from add.simulation.run import Trajectory
from add.terms import LengthActuator, OnLengths
from add.typing import FloatArray
from add.view.parts import Moment

#: Most samples of a table.
MOST = 10_000_000


class Limits(NamedTuple):
    """Bounds that a machine sets to one signal, in its unit and its unit a second.

    Attributes
    ----------
    lower, upper : float
    rate : float
        Largest change a second between two samples.
    """

    lower: float = -np.inf
    upper: float = np.inf
    rate: float = np.inf


def scene_of(path: str | Path) -> Scene:
    """Return the scene of a file, or of a run folder: that with the numbers found, if the run has fitted any.

    Raises
    ------
    InputError
        If there is no scene.
    """
    folder = Path(path)
    if not folder.exists():
        raise InputError("is not there", file=folder, expected="a scene file (JSON) or a run folder")
    if not folder.is_dir():
        return load_scene(folder)
    for name in (FITTED, SCENE):
        if (folder / name).is_file():
            return load_scene(folder / name)
    raise InputError("this folder holds no run", file=folder, expected=f"{FITTED} or {SCENE}")


def experiment_of(scene: Scene, name: str) -> Scene:
    """Return the scene of an experiment; refuse a name that none has."""
    scenes = experiment_scenes(scene) if scene.experiments else {}
    require_known((name,), scenes or ["no experiment"], "there is no such experiment", place="--experiment")
    return scenes[name]


def scene_that_plays(scene: Scene, experiment: str | None, *, whole: bool) -> Scene:
    """Return the scene of an experiment; without a name what all play, signals or ``whole`` motions.

    Raises
    ------
    InputError
        If there is no such experiment, or they differ and none is named.
    """
    if experiment is not None:
        return experiment_of(scene, experiment)
    scenes = experiment_scenes(scene)
    sections = {path.split(".")[0] for item in scene.experiments for path in item.overrides}
    if len(scenes) == 1:
        return next(iter(scenes.values()))
    if sections if whole else sections & {"signals", "time"}:
        what = "motions" if whole else "controls"
        raise InputError(f"the experiments have {what} of their own", place="--experiment",
                         expected=f"one of {', '.join(scenes)}")  # fmt: skip
    return scene


def sampled_controls(built: BuiltScene, rate: float, names: tuple[str, ...] = ()) -> list[Samples]:
    """Sample the signals of a scene from t = 0 to its end.

    A control of degree 0 is held from each sample to the next: its value is the one that begins there.

    Parameters
    ----------
    built : BuiltScene
    rate : float
        Samples a second.
    names : of signals; none: all

    Raises
    ------
    InputError
        If there are no signals, a name is none, or the rate does not fit.
    """
    spec = built.scene
    if not spec.signals:
        raise InputError("this scene has no signals to export", place="signals")
    require_known(names, spec.signals, "there is no such signal")
    times = _sampled(spec.time.end, rate, MOST, "samples")
    layout, out = built.simulation.system.parameters, []
    for name in names or tuple(spec.signals):
        given = spec.signals[name]
        signal = signal_of(given, spec.time.end, f"signals.{name}")
        for entry in layout.entries:
            if entry.name.rpartition(".")[0] != f"signals.{name}":
                continue
            values = _values(signal, layout.view(built.theta, entry.name), times)
            if given.width == 1:
                out.append(Samples(name, times, values[:, 0], entry.unit))
            else:
                out += [Samples(f"{name}.{axis}", times, values[:, k], entry.unit) for k, axis in enumerate("xyz")]
    if not out:
        raise InputError("these signals drive nothing", place="signals", found=", ".join(names or spec.signals))
    return out


def _values(signal: Signal, rows: FloatArray, times: FloatArray) -> FloatArray:
    """Return the values (k, 3) of a signal."""
    if isinstance(signal, BSplineSignal) and signal.degree == 0:
        # Its intervals hold their ends, as implicit steps want it; whoever plays it holds what begins at a sample.
        times = times + 1e-6 * (signal.end - signal.start) / signal.n_intervals
    return np.stack([signal.weights(float(t)) @ rows for t in times])


def motion_with(built: BuiltScene, signals: list[Samples]) -> Take:
    """Return the motion that signals make, at their times: joints with efforts, poses of rigid bodies and links.

    Efforts are what drives and given motions do to hinges and slides [N m, N], at the ends of steps; none where
    activations follow controls, which a state does not hold. Between steps all is linear.
    """
    times, trajectory = signals[0].times, built.run()
    data = run_data(built, trajectory, built.theta)
    places = np.clip(times, data.t[0], data.t[-1])  # the last step may end behind the last sample, or before

    def at(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(places, data.t, column) for column in values.T], axis=1)

    poses = {}
    for solid in data.solids:
        frames = [data.pose(solid, k) for k in range(data.n_states)]
        turn = Slerp(data.t, Rotation.from_matrix(np.stack([rotation for rotation, _ in frames])))(places)
        position = at(np.stack([position for _, position in frames]))
        poses[solid.name] = PoseRecording(times, position, np.roll(turn.as_quat(), 1, axis=1))
    trees, dofs = [body for body in built.model.bodies if isinstance(body, TreeBody)], built.simulation.system.dofs
    axes = [
        (body.name, joint, dofs[body.name].start + first)
        for body in trees for first, joint in zip(body.first, body.joints, strict=True) if joint.n == 1
    ]  # fmt: skip
    if not axes:
        return Take("MCAP", "the run", bodies=poses, signals=tuple(signals))
    names = tuple(joint.name if len(trees) == 1 else f"{body}/{joint.name}" for body, joint, _ in axes)
    columns = [column for _, _, column in axes]
    angles = AngleRecording(names, times, at(trajectory.q[:, columns]), at(trajectory.v[:, columns]))
    forces = at(_efforts(built, trajectory, axes)[:, columns])
    if not any(drive.state for body in trees for drive in body.drives):
        signals = signals + [Samples(f"{name}.effort", times, f, "") for name, f in zip(names, forces.T, strict=True)]
    return Take("MCAP", "the run", bodies=poses, angles=angles, signals=tuple(signals))


def _efforts(built: BuiltScene, trajectory: Trajectory, axes: Sequence[tuple[str, TreeJoint, int]]) -> FloatArray:
    """Return what drives and given motions do to coordinates (k, n); axes: body, joint, its coordinate."""
    drives = [term for term in built.model.term(OnLengths) if isinstance(term.law, LengthActuator)]
    out = np.zeros_like(trajectory.q)
    for k in range(len(out)):
        for term in drives:
            term.residual(trajectory.kinematics(k), built.theta, out[k])
    out = -out
    for k, record in enumerate(trajectory.records, start=1):
        given = built.tree_reactions(record)
        for body, joint, column in axes:
            if joint.motion is not None:
                out[k, column] = given[body][joint.name][0]
    return out


def limits_of_servos(scene: SceneSpec) -> dict[str, Limits]:
    """Return what the joints allow that position servos drive, by signal: their range, and the rate of their file."""
    out: dict[str, Limits] = {}
    for name, body in trees(scene).items():
        joints = {joint.name: joint for joint in robot_of(name, body).joints}
        for drive in body.drives.values():
            if drive.type == "position" and drive.joint is not None and isinstance(drive.input, SignalReferenceSpec):
                joint, said = joints[drive.joint], out.get(drive.input.signal, Limits())
                out[drive.input.signal] = Limits(
                    max(said.lower, joint.lower), min(said.upper, joint.upper), min(said.rate, joint.velocity)
                )
    return out


def beyond_limits(signals: list[Samples], limits: Mapping[str, Limits]) -> list[str]:
    """Return a sentence for every signal that goes beyond its limits, or changes too fast.

    Limits are those of the whole signal, or of a component as ``push.x``.

    Raises
    ------
    InputError
        If a limit names no signal.
    """
    known = {signal.name for signal in signals} | {signal.name.rpartition(".")[0] or signal.name for signal in signals}
    require_known(limits, sorted(known), "a limit is of no signal that is exported")
    out = []
    for signal in signals:
        for name in dict.fromkeys((signal.name, signal.name.rpartition(".")[0])):
            if name in limits:
                out += _beyond(signal, limits[name])
    return out


def _beyond(signal: Samples, limits: Limits) -> list[str]:
    out, values, room = [], signal.values, 1e-9
    for beyond, bound, word in (
        (limits.lower - values, limits.lower, "below its lower limit"),
        (values - limits.upper, limits.upper, "above its upper limit"),
    ):
        k = int(np.argmax(beyond))
        if beyond[k] > room * max(1.0, abs(bound)):
            out.append(
                f"'{signal.name}' is {values[k]:.6g} {signal.unit} at t = {signal.times[k]:.6g} s, "
                f"{word} of {bound:g} {signal.unit}"
            )
    if values.size > 1:
        rates = np.abs(np.diff(values)) / np.diff(signal.times)
        k = int(np.argmax(rates))
        if rates[k] > limits.rate * (1.0 + room):
            out.append(
                f"'{signal.name}' changes by {rates[k]:.6g} {signal.unit}/s at t = {signal.times[k]:.6g} s, "
                f"faster than {limits.rate:g} {signal.unit}/s"
            )
    return out


WRITERS = {".csv": write_csv, ".trc": write_trc, ".c3d": write_c3d}
#: Most moments of an export.
MOST_MOMENTS = 100_000


def moments(data: RunData, rate: float | None) -> FloatArray:
    """Return the times of the states, or as many a second as asked for.

    Raises
    ------
    InputError
        If the rate does not fit.
    """
    if rate is None:
        return data.t
    return data.t[0] + _sampled(float(data.t[-1] - data.t[0]), rate, MOST_MOMENTS, "moments")


def _sampled(duration: float, rate: float, most: int, what: str) -> FloatArray:
    """Return times from zero on, so many a second."""
    if not np.isfinite(rate) or rate <= 0.0 or duration * rate > most:
        expected = f"above 0, at most {most} {what}"
        raise InputError("the rate does not fit", place="--rate", found=f"{rate:g} Hz", expected=expected)
    return np.arange(int(np.floor(duration * rate + 1e-9)) + 1) / rate


def export_markers(data: RunData, path: Path, rate: float | None) -> int:
    """Write the simulated markers as .csv, .trc or .c3d; return the number of frames.

    Between states they are interpolated linearly: a spline would overshoot at impacts.

    Raises
    ------
    InputError
        If there are none, the kind of file is unknown, or a C3D has no rate.
    """
    if not data.markers:
        raise InputError("this run has no markers", file=path, expected="`markers` in its scene")
    write = WRITERS[require_suffix(path, WRITERS)]
    times = moments(data, rate)
    states = [Moment.of(data.t, float(time)) for time in times]
    x = np.stack([np.stack([m.of_states(track) for m in states]) for track in data.markers.values()], axis=1)
    recording = Recording(tuple(data.markers), times, x, np.asarray(np.isfinite(x).all(axis=2)), "the run")
    write(path, recording)
    return len(times)


def export_vtu(data: RunData, path: Path, rate: float | None) -> int:
    """Write soft bodies, sheets and rigid bodies as VTU files in a folder, and ``path`` (.pvd) that lists them by time.

    Nodes have displacement [m], velocity [m/s], contact force [N]; of soft bodies also strain [-] and von Mises stress
    [Pa], as `add view` has them. Return the number of moments.

    Raises
    ------
    InputError
        If the name does not end in .pvd, the folder is no such one, or nothing moves.
    """
    import meshio

    require_suffix(path, (".pvd",))
    times = moments(data, rate)
    parts = [(body.name, _nodal(data, body)) for body in data.nodal]
    parts += [(solid.name, at) for solid in data.solids if (at := _rigid(data, solid))]
    if not parts:
        raise InputError("this run has no bodies with a shape", file=path)
    folder = path.with_suffix("")
    remove_killed(folder)
    # What an earlier export left is replaced; anything else in the way is somebody's.
    others = [item.name for item in folder.iterdir() if item.suffix != ".vtu"] if folder.is_dir() else []
    if others:
        raise InputError("the folder for the VTU files holds something else", file=folder, found=sorted(others)[0],
                         expected="another name for the .pvd")  # fmt: skip
    folder.mkdir(exist_ok=True)
    remove_killed(path.parent)
    rows = []
    for number, time in enumerate(times):
        moment = Moment.of(data.t, float(time))
        for k, (own, mesh_at) in enumerate(parts):
            name = f"{folder.name}/{k}_{number:05d}.vtu"
            with replacing(path.parent / name) as temporary:
                meshio.write(temporary, mesh_at(moment), file_format="vtu")
            rows.append(
                f'  <DataSet timestep="{float(time)!r}" part="{k}" name={quoteattr(own)} file={quoteattr(name)}/>'
            )
    head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n <Collection>\n'
    with replacing(path) as temporary:
        temporary.write_text(head + "\n".join(rows) + "\n </Collection>\n</VTKFile>\n", encoding="utf-8")
    return len(times)


def _nodal(data: RunData, body: BodyData | MassSpringData) -> Callable[[Moment], Any]:
    """Return what gives the mesh of a soft body or a sheet at a moment."""
    import meshio

    from add.view.quantities import stretching, von_mises

    fields_of: dict[str, Callable[..., Any]] = {}
    rows = body.entries
    if isinstance(body, BodyData):
        fields_of = {"strain": stretching, "von Mises stress": von_mises}
        geometry = quadrature_geometry(body.mesh)
        cells = [(body.mesh.family.meshio_name, body.cells)]
    else:
        kinds = (("triangle", body.triangles), ("line", body.edges))
        cells = [(kind, items) for kind, items in kinds if len(items)]
        cells = cells or [("vertex", np.arange(body.n_nodes)[:, None])]

    def at(moment: Moment) -> Any:
        q, v, force = (moment.of_states(kept)[rows] for kept in (data.q, data.v, data.contact_force))
        moved = {"displacement": q - data.q[0, rows], "velocity": v, "contact force": force}
        fields = {name: values.reshape(-1, 3) for name, values in moved.items()}
        fields |= {name: field(body, q, geometry) for name, field in fields_of.items()}
        return meshio.Mesh(q.reshape(-1, 3), cells, point_data=fields)

    return at


def _rigid(data: RunData, solid: SolidData) -> Callable[[Moment], Any] | None:
    """Return what gives the mesh of a rigid body at a moment, by its surface; None without one."""
    import meshio

    from add.view.shapes import pose_between, solid_meshes

    surface, _ = solid_meshes(solid, 0.05)
    if surface is None or not len(triangles := surface.triangulate().regular_faces):
        return None
    points = np.asarray(surface.points, dtype=float)
    first = pose_between(data, solid, Moment(float(data.t[0]), 0, 0, 0.0))

    def at(moment: Moment) -> Any:
        pose = pose_between(data, solid, moment)
        velocity, spin = data.twist(solid, moment.nearest)
        x = points @ pose[:3, :3].T + pose[:3, 3]
        fields = {
            "displacement": x - (points @ first[:3, :3].T + first[:3, 3]),
            "velocity": velocity + np.cross(spin, (points - solid.centre) @ pose[:3, :3].T),
        }
        return meshio.Mesh(x, [("triangle", triangles)], point_data=fields)

    return at
