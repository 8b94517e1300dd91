"""Numbers from which something is settled once, when the scene is built: they cannot be parameters."""

from collections.abc import Iterator

from add.scene.read.problems import Problem
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.nets import NetSpec
from add.scene.spec.scene import SceneSpec


def check_frozen(spec: SceneSpec, path: str, at: str) -> Iterator[Problem]:
    """Refuse a parameter that a choice of nodes, or the targets of a recording of poses, would have to follow.

    Every other default that depends on numbers follows them by the ties of theta.

    Parameters
    ----------
    spec : SceneSpec
    path : of the parameter
    at : where the scene names it
    """
    section, name, key, *_ = [*path.split("."), "", ""]
    if section == "bodies" and key in ("position", "orientation"):
        yield from _chosen_nodes(spec, name, path, at)
    if section == "recording" and name == "place":
        yield from _unseen(spec, key, path, at)
    if section == "markers" and key in ("point", "direction"):
        yield from _recorded(spec, name, path, at)


def _chosen_nodes(spec: SceneSpec, body: str, path: str, at: str) -> Iterator[Problem]:
    for coupling, item in spec.couplings.items():
        ends = {key: getattr(item, key) for key in ("a", "b") if hasattr(item, key)}
        for key, end in ends.items():
            if end.at is None and body in [other.body for other in ends.values()] and _takes_nodes(spec, end.body):
                yield Problem(
                    at,
                    f"the nodes of couplings.{coupling}.{key} are those where the other end starts, and would have to "
                    "change with this number",
                    f"'{path}'",
                    f"a place at couplings.{coupling}.{key}.at",
                )


def _takes_nodes(spec: SceneSpec, body: str | None) -> bool:
    """Whether a place on a body is a choice among its nodes; the only node of a handle is none."""
    item = spec.bodies.get(body or "")
    if isinstance(item, NetSpec):
        return not item.is_handle
    return isinstance(item, SoftBodySpec)


def _unseen(spec: SceneSpec, key: str, path: str, at: str) -> Iterator[Problem]:
    """A place that no sample of the recording depends on."""
    for recording in [spec.recording, *(item.recording for item in spec.experiments)]:
        if recording is None or recording.place is None:
            continue
        if key == "move" and recording.displacement:
            yield Problem(
                at, "displacements do not tell where the recording lies", f"'{path}'", '"displacement": false'
            )
        if key in ("move", "scale") and recording.angles is not None:
            yield Problem(at, "angles turn with the recording, but do not move", f"'{path}'", "recording.place.turn")


def _recorded(spec: SceneSpec, marker: str, path: str, at: str) -> Iterator[Problem]:
    for recording in [spec.recording, *(item.recording for item in spec.experiments)]:
        if recording is None or recording.pose is None:
            continue
        joint = recording.pose.joint
        if spec.markers[marker].body in (recording.pose.body, joint.body if joint else None):
            yield Problem(
                at,
                "a recording of poses gives the path of this marker, and its targets would have to change with this "
                "number",
                f"'{path}'",
                "a marker of a body without such a recording",
            )
