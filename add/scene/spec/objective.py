"""Objective, parameters and optimizer of the scene format."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from add.scene.spec import kinds
from add.scene.spec.common import Facts, Spec, exactly_one
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem, unique
from add.scene.spec.markers import CloudObjectiveSpec, _ObjectiveSpec, _RobustSpec
from add.scene.spec.signals import Values, check_samples

# --- objective -------------------------------------------------------------------------------------------------------


class _TimedSpec(_ObjectiveSpec):
    time: kinds.TimeOrEndSpec | None = Field(None, description='simulation time that counts [s], or "end"')
    window: kinds.Window | None = Field(None, description="simulation times over which the mean counts [s]")

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "time", "window")


class MarkersObjectiveSpec(_RobustSpec):
    """Mean squared distance of the markers from the recording, or a robust loss of it [m^2].

    Of poses with covariances the mean of the squares of their six errors in standard deviations [-].
    """

    type: Literal["markers"] = Field("markers", description="kind of objective")


class PointObjectiveSpec(_TimedSpec):
    """Squared distance of a marker from a point [m^2]; give `time` or `window`."""

    type: Literal["point"] = Field("point", description="kind of objective")
    marker: kinds.MarkerName = Field(description="scene marker name")
    target: kinds.Vector3 = Field(description="target position, world axes [m]")
    axes: kinds.Axes = Field("xyz", description="world axes that count: any of x, y, z")


class LineObjectiveSpec(_TimedSpec):
    """Squared distance of a marker from a straight line [m^2]; give `time` or `window`."""

    type: Literal["line"] = Field("line", description="kind of objective")
    marker: kinds.MarkerName = Field(description="scene marker name")
    point: kinds.Vector3 = Field(description="a point of the line [m]")
    direction: kinds.Direction = Field(description="direction of the line; any length above 0 [-]")


class NearestObjectiveSpec(_ObjectiveSpec):
    """Soft minimum over time of the squared distance of a marker from a point: passing it once is enough [m^2].

    -s^2 ln(mean over steps of exp(-d^2 / s^2)), s the `softness`: never below the least squared distance.

    Attributes
    ----------
    moving : only while the marker moves along this direction, such as [0, 0, -1] on its way down; null = always [-]
    """

    type: Literal["nearest"] = Field("nearest", description="kind of objective")
    marker: kinds.MarkerName = Field(description="scene marker name")
    target: kinds.Vector3 = Field(description="place that should be passed, world axes [m]")
    axes: kinds.Axes = Field("xyz", description="world axes that count: any of x, y, z")
    window: kinds.Window | None = Field(None, description="simulation times that count [s]; null = the whole run")
    moving: kinds.Direction | None = None
    softness: kinds.Positive = Field(0.05, description="distances that differ by less than this count together [m]")


class ContactObjectiveSpec(_ObjectiveSpec):
    """A ball about a marker touches an obstacle, or keeps away from it [m^2]; mesh obstacles excepted.

    `wanted`: the soft minimum over time of its squared gap, zero from touch on, as that of `nearest`; otherwise the
    mean over time of the square by which its gap is less than `margin`.
    """

    type: Literal["contact"] = Field("contact", description="kind of objective")
    marker: kinds.MarkerName = Field(description="scene marker name")
    obstacle: Annotated[kinds.Name, kinds.Refers("obstacle")] = Field(description="name of an obstacle")
    wanted: kinds.Flag = Field(True, description="whether it should touch, or should not")
    radius: kinds.NonNegative = Field(0.0, description="radius of the ball [m]")
    margin: kinds.NonNegative = Field(0.0, description="gap to keep, where contact is not wanted [m]")
    window: kinds.Window | None = Field(None, description="simulation times that count [s]; null = the whole run")
    softness: kinds.Positive = Field(0.05, description="gaps that differ by less than this count together [m]")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return {"margin": "contact is wanted"} if self.wanted else {"softness": "contact is not wanted"}


class TrackObjectiveSpec(_ObjectiveSpec):
    """Mean squared distance of a marker from places at given times [m^2]: a path to follow.

    With a marker that is a direction or a centre of mass, an orientation or the centre of mass over time.

    Attributes
    ----------
    values : where the marker should be then [m]; one per time
    """

    type: Literal["track"] = Field("track", description="kind of objective")
    marker: kinds.MarkerName = Field(description="scene marker name")
    times: tuple[kinds.NonNegative, ...] = Field(min_length=1, description="simulation times, increasing [s]")
    values: Annotated[tuple[kinds.Vector3, ...], Field(min_length=1)]
    axes: kinds.Axes = Field("xyz", description="world axes that count: any of x, y, z")

    def model_post_init(self, context: Any) -> None:
        check_samples(self.times, self.values)


class PoseObjectiveSpec(_TimedSpec):
    """Mean squared distance of a body's nodes from a target pose [m^2]; give `time` or `window`.

    The target is a file of node positions, or the rest shape rotated by `orientation` about the origin of its frame and
    then moved by `translation`.

    Attributes
    ----------
    positions_file : file of target node positions [m], one row per node
    orientation : target rotation, unit quaternion w, x, y, z [-]; null = none
    """

    type: Literal["pose"] = Field("pose", description="kind of objective")
    body: kinds.BodyName = Field(description="name of a body")
    positions_file: kinds.FilePath | None = None
    translation: kinds.Vector3 | None = Field(None, description="target position of the origin of the rest frame [m]")
    orientation: kinds.Quaternion | None = None

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        exactly_one(self, "positions_file", "translation")
        if self.orientation is not None and self.translation is None:
            raise problem("'orientation' goes with 'translation', not with 'positions_file'", key="orientation")


class OneStepObjectiveSpec(_ObjectiveSpec):
    """Mean squared error of one step, over all steps, each from the recorded state before it.

    The terms are q |dq|^2 + v |dv|^2 + a |dv/dt|^2, with rotations in radians: lengths and radians count alike. It goes
    with no other objective but `prior`, `smoothness` and `proximity`. Noise of the recording biases what it finds.

    Attributes
    ----------
    file : recorded states: `trajectory.h5` of a run, or an .npz file with t (k,) [s], q (k, n) and perhaps v (k, n), in
        the order of the bodies; a state at each step is needed; without v, differences of q
    a : weight of the accelerations, differences of the velocities [s^4/m^2]
    """

    unit: ClassVar[str] = "-"

    type: Literal["one-step"] = Field("one-step", description="kind of objective")
    file: kinds.FilePath
    q: kinds.NonNegative = Field(1.0, description="weight of the coordinates [1/m^2]")
    v: kinds.NonNegative = Field(1.0, description="weight of the velocities [s^2/m^2]")
    a: kinds.NonNegative = 0.0
    bodies: tuple[kinds.Name, ...] | None = Field(None, description="bodies that count; null = all")


class PriorObjectiveSpec(_ObjectiveSpec):
    """((value - mean) / sigma)^2 of a parameter, summed over its components [-].

    Attributes
    ----------
    parameter : path of one of `parameters`; where experiments have their own, of all of them, or `path@experiment` for
        that of one
    """

    unit: ClassVar[str] = "-"

    type: Literal["prior"] = Field("prior", description="kind of objective")
    parameter: kinds.NonEmpty
    mean: kinds.Number = Field(description="expected value, in the parameter's unit")
    sigma: kinds.Positive = Field(description="standard deviation, in the parameter's unit")


class SmoothnessObjectiveSpec(_ObjectiveSpec):
    """Squared differences of a signal's neighbouring rows, summed, in the square of its unit; in every experiment.

    Attributes
    ----------
    signal : name of a signal of type `control`, `table` or `spline` that drives something
    """

    unit: ClassVar[str] = "squared unit of the signal"

    type: Literal["smoothness"] = Field("smoothness", description="kind of objective")
    signal: kinds.SignalName


class ProximityObjectiveSpec(_ObjectiveSpec):
    """Squared distance of a signal's rows from given ones, summed, in the square of its unit; in every experiment.

    Attributes
    ----------
    signal : name of a signal of type `control`, `table` or `spline` that drives something
    value : row that all are compared with, in the unit of the signal
    rows : rows that they are compared with, one for each; null, and no `value` = the signal's rows in the scene
    """

    unit: ClassVar[str] = "squared unit of the signal"

    type: Literal["proximity"] = Field("proximity", description="kind of objective")
    signal: kinds.SignalName
    value: kinds.NumberOrVectorSpec | None = None
    rows: Values | None = None

    def model_post_init(self, context: Any) -> None:
        if self.value is not None and self.rows is not None:
            raise problem("'value' and 'rows' exclude each other", key="rows")


class RoughnessObjectiveSpec(_ObjectiveSpec):
    """Roughness of a field of positive numbers over a body, u its logarithm: squares of gradients or total variation.

    `squares`: the integral of |grad u|^2 over the volume V, divided by V^(1/3); a field is smooth then. `variation`:
    that of |grad u|, divided by V^(2/3), with jumps of u below `softness` rounded; a field may jump then [-].

    Attributes
    ----------
    field : path of a modulus that is a field, such as `bodies.block.material.young`
    """

    unit: ClassVar[str] = "-"

    type: Literal["roughness"] = Field("roughness", description="kind of objective")
    field: kinds.NonEmpty
    norm: Literal["squares", "variation"] = Field("squares", description="what is summed")
    softness: kinds.Positive = Field(0.05, description="jump of u that is rounded, of `variation` [-]")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return {"softness": "it is of 'variation'"} if self.norm == "squares" else {}


class ObjectiveExtension(Extension, _ObjectiveSpec):
    """Base of objectives that extensions bring; ``unit`` is that of its value, as commands write it."""

    unit: ClassVar[str] = ""

    def objective(self, built: Any, place: str) -> Any:
        """Return the `add.objectives.Objective` of a built scene; ``place`` is the path of the entry."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is built")


ObjectiveSpec = Annotated[
    MarkersObjectiveSpec
    | CloudObjectiveSpec
    | PointObjectiveSpec
    | NearestObjectiveSpec
    | ContactObjectiveSpec
    | LineObjectiveSpec
    | TrackObjectiveSpec
    | PoseObjectiveSpec
    | OneStepObjectiveSpec
    | PriorObjectiveSpec
    | SmoothnessObjectiveSpec
    | ProximityObjectiveSpec
    | RoughnessObjectiveSpec
    | ObjectiveExtension,
    kinds.by_value("type", further=ObjectiveExtension),
]

# --- parameters ------------------------------------------------------------------------------------------------------


class ParameterSpec(Spec):
    """A number of the scene, or several that share one value, that the optimizer may change.

    Attributes
    ----------
    path : path into the scene, such as "bodies.ball.material.young"; an `orientation` stands for its rotation vector
        [rad], a direction (`axis`, `direction`, `normal`) for two tilts from that of the scene [rad]; * stands for any
        name: bodies.robot.joints.*.damping is a parameter for each joint
    paths : several paths that share one value
    transform : what the optimizer changes: the value, its logarithm, or the inverse softplus of it
    bounds : lowest and highest value, in the parameter's unit; null = as far as the format allows the number
    start : starting value, in the parameter's unit; null = the scene's value
    scale : typical change, in the transformed parameter's unit; null = chosen from the start
    components : which entries of a vector (of the flattened rows of a table) are free, from 0; null = all
    """

    path: kinds.NonEmpty | None = None
    paths: Annotated[tuple[kinds.NonEmpty, ...], Field(min_length=1), AfterValidator(unique)] | None = None
    transform: Literal["linear", "log", "softplus"] = "linear"
    bounds: tuple[kinds.Number | None, kinds.Number | None] | None = None
    start: kinds.NumberOrListSpec | None = None
    scale: kinds.Positive | None = None
    components: Annotated[tuple[kinds.Index, ...], Field(min_length=1), AfterValidator(unique)] | None = None
    experiment: kinds.Name | None = Field(None, description="only in that experiment; null = shared by all")

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "path", "paths")
        if self.bounds is not None:
            low, high = self.bounds
            if low is not None and high is not None and not low < high:
                found = f"[{low:g}, {high:g}]"
                raise problem("the lower bound must be below the upper one", key="bounds", found=found)
            if self.transform == "log" and low is not None and low <= 0.0:
                found = f"{low:g}"
                raise problem("a log transform needs positive bounds", key="bounds.0", found=found, expected="above 0")
            if self.transform != "linear" and high is not None and high <= 0.0:
                raise problem(
                    f"a {self.transform} transform needs a positive upper bound",
                    key="bounds.1",
                    found=f"{high:g}",
                    expected="above 0",
                )

    def all_paths(self) -> tuple[str, ...]:
        """The path, or the paths that share one value."""
        return self.paths if self.paths is not None else (self.path or "",)


class GradientSpec(Spec):
    """How derivatives are taken; steps are not changed by it.

    Attributes
    ----------
    contact : `impulse`: `exact`: the derivatives of the steps; `relaxed`: those of a central path through the cones
        (relaxed complementarity), which see the way out of a contact that rests; `explore`: where the objective wants
        contacts to open or to close, those of these modes, if they are larger (the complementarity-aware choice;
        reverse mode only). Neither is ever checked by `add check`
    relaxation : `relaxed`: kappa, relative to the square of the largest impulse of a step [-]
    schedule : what the adjoint keeps of a run: `all`, every step; `states`, two numbers a coordinate and step and what
        contacts decided, from which steps are made again without solving; `checkpoints`, few states, for one more run.
        The gradient is the same to the last bit
    """

    contact: Literal["exact", "relaxed", "explore"] = "exact"
    relaxation: kinds.Positive = 1e-3
    schedule: Literal["all", "states", "checkpoints"] = "all"

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return {} if self.contact == "relaxed" else {"relaxation": "it is of 'relaxed'"}
