"""Markers, recordings and experiments of the scene format, and point clouds as an objective."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from add.scene.spec import kinds
from add.scene.spec.common import Facts, Role, SelectorSpec, Spec, _CornersSpec, exactly_one
from add.scene.spec.kinds import problem
from add.summary import counted

# --- markers ---------------------------------------------------------------------------------------------------------


class PointMarkerSpec(Spec, numbers=Role.PROPERTY):
    """A material point of a body, given by its rest position."""

    body: kinds.BodyName = Field(description="name of a body")
    point: kinds.Vector3 = Field(description="rest position, in the rest frame of the mesh (after `scale`) [m]")
    max_distance: kinds.NonNegative = Field(0.01, description="how far outside the mesh the point may lie [m]")


class NodesMarkerSpec(Spec):
    """A weighted mean of nodes.

    Attributes
    ----------
    weights : weights [-], one per node, divided by their sum; null = equal
    """

    body: kinds.BodyName = Field(description="name of a body")
    nodes: kinds.NodeList = Field(description="node numbers, from 0")
    weights: tuple[kinds.Number, ...] | None = None

    def model_post_init(self, context: Any) -> None:
        if self.weights is None:
            return
        if len(self.weights) != len(self.nodes):
            raise problem(
                "as many weights as nodes are needed",
                key="weights",
                found=counted(len(self.weights), "weight"),
                expected=f"{len(self.nodes)}",
            )
        if abs(sum(self.weights)) < 1e-12:
            raise problem("the weights must not sum to zero", key="weights")


class SurfaceMarkerSpec(Spec):
    """The mean place of a part of the surface: of the faces all of whose nodes are selected.

    Of a selection without a whole face, the mean of its surface nodes, by the areas around them.
    """

    body: kinds.BodyName = Field(description="name of a body")
    surface: SelectorSpec = Field(description="selection, in the rest frame of the mesh")


class DirectionMarkerSpec(Spec, numbers=Role.PROPERTY):
    """A direction that turns with a rigid body, for objectives on orientation; it moves as a unit vector does [-]."""

    body: kinds.BodyName = Field(description="name of a rigid or kinematic body")
    direction: kinds.Direction = Field(description="direction in the body's frame; any length above 0 [-]")


class CenterMarkerSpec(Spec):
    """The centre of mass of a body."""

    body: kinds.BodyName = Field(description="name of a body")
    center_of_mass: kinds.Yes = Field(description="true: the centre of mass")


MarkerSpec = Annotated[
    PointMarkerSpec | NodesMarkerSpec | SurfaceMarkerSpec | DirectionMarkerSpec | CenterMarkerSpec,
    kinds.by_key("point", "nodes", "surface", "direction", "center_of_mass"),
]

# --- recordings ------------------------------------------------------------------------------------------------------


class RegisterSpec(Spec):
    """Rigid registration of the recording to the scene, from markers whose rest position is known.

    Attributes
    ----------
    markers : recording marker name -> its position in the scene's world at registration [m]
    window : recording times over which the markers are averaged [s]; null = the first frame
    """

    markers: Annotated[dict[kinds.NonEmpty, kinds.Vector3], Field(min_length=3)]
    window: kinds.Window | None = None


class PlacementSpec(Spec, numbers=Role.RECORDING):
    """Place of recorded points y in the scene: about + move + scale exp([turn]x) (y - about).

    Its numbers may be parameters, such as `recording.place.move`: an unknown registration, shared or of each take.
    Directions turn alone; displacements turn and scale alone.

    Attributes
    ----------
    about : the point that turn and scale leave where it is [m]; near the recorded points, translation and rotation
        hardly depend on each other
    """

    turn: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="rotation vector of the recording, world axes [rad]")
    move: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="translation of the recording, world axes [m]")
    scale: kinds.Positive = Field(1.0, description="factor on recorded lengths [-]")
    about: kinds.Vector3 = (0.0, 0.0, 0.0)


class MaskSpec(Spec):
    """A stretch of one marker that is left out."""

    marker: kinds.NonEmpty = Field(description="recording marker name")
    from_: kinds.Number = Field(alias="from", description="first simulation time left out [s]")
    to: kinds.Number = Field(description="last simulation time left out [s]")

    def model_post_init(self, context: Any) -> None:
        if not self.from_ < self.to:
            raise problem("a mask must start before it ends", found=f"from {self.from_:g} to {self.to:g}")


class JointAngleSpec(Spec):
    """A second body of a pose recording, joined to the first by a hinge whose angle was recorded.

    x_b = x_a + R_a (at_a - turn at_b),   R_b = R_a turn,   turn = exp(angle [axis]x)
    """

    body: kinds.BodyName = Field(description="name of the second body")
    angle: kinds.NonEmpty = Field(description="column of the file with the angle [rad]")
    at_a: kinds.Vector3 = Field(description="a point of the axis in the frame of the first body [m]")
    at_b: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="the same point in the frame of the second body [m]")
    axis: kinds.Direction = Field(description="axis in the frames of both; any length above 0 [-]")


class PoseSourceSpec(Spec):
    """The file holds the pose of a body: every scene marker on it counts as seen.

    Attributes
    ----------
    covariances : weight each frame by the covariance of its pose, where the file has them; false = all alike
    """

    body: kinds.BodyName = Field(description="name of the body")
    name: kinds.NonEmpty | None = Field(None, description="its name in the file; null = the only one there")
    covariances: kinds.Flag = True
    joint: JointAngleSpec | None = Field(None, description="a second body, by the angle of its hinge")


class AngleSourceSpec(Spec):
    """The file holds the angle of a direction: direction(angle) = exp(angle [axis]x) zero."""

    marker: kinds.Name = Field(description="scene marker of that direction")
    axis: kinds.Direction = Field(description="axis of the rotation, world axes; any length above 0 [-]")
    zero: kinds.Direction = Field(description="the direction at angle 0, world axes; any length above 0 [-]")


class RecordingSpec(Spec):
    """A motion capture recording and how it belongs to the scene; give one of `markers`, `pose` and `angles`.

    Attributes
    ----------
    file : recording, relative to the scene file; `${NAME}` is an environment variable. C3D, TRC, CSV of Motive and
        Vicon, TSV of Qualisys, plain CSV, JSON of poses, MCAP: known by what is in it
    unit : unit of the positions in a file of markers that does not say its own; null = the file's
    up : the file's axis that points up; it becomes z; null = z, or what the file says
    number_repeated : call tracks of the file that share a name `name#1`, `name#2` instead of refusing them
    scale : true over recorded length, for cameras that were not well calibrated [-]
    register_ : rigid registration; null = the recording is in the scene's frame
    place : where it lies then, in numbers that a fit may find; null = where it is
    markers : the file holds markers: recording marker name -> scene marker name
    angles : the file holds angles: name of the angle -> the direction that it turns
    time_offset : recording time at which the simulation time is 0 [s]
    start : `release`: where `time_offset` is not given, it is the time at which the markers, at rest before, begin to
        move; found from the file, to a fraction of a frame
    displacement : compare displacements from the first frame that counts instead of positions
    rest : recording times before the release between which all markers rest where the simulation starts them [s]:
        `displacement` counts from their mean places there, not from one frame with its noise
    """

    file: kinds.FilePath
    unit: Literal["m", "cm", "mm"] | None = None
    up: Literal["x", "y", "z"] | None = None
    number_repeated: kinds.Flag = False
    scale: kinds.Positive = 1.0
    register_: Annotated[RegisterSpec | None, Field(alias="register")] = None
    place: PlacementSpec | None = None
    markers: Annotated[dict[kinds.NonEmpty, kinds.Name], Field(min_length=1)] | None = None
    pose: PoseSourceSpec | None = Field(None, description="the file holds the pose of a rigid body")
    angles: Annotated[dict[kinds.NonEmpty, AngleSourceSpec], Field(min_length=1)] | None = None
    time_offset: Annotated[kinds.Number, Role.RECORDING] = 0.0
    start: Literal["release"] | None = None
    crop: kinds.Window | None = Field(None, description="simulation times that count [s]; null = all")
    mask: tuple[MaskSpec, ...] = Field((), description="stretches left out; of `pose` and `angles` by scene marker")
    displacement: kinds.Flag = False
    rest: kinds.Window | None = None

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        if self.angles is not None:
            return dict.fromkeys(("displacement", "rest"), "it is of places, and the file holds angles")
        if not self.displacement:
            return {"rest": "positions count, not displacements"}
        return dict.fromkeys(("place.move", "place.about") if self.place else (), "displacements count, not positions")

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "markers", "pose", "angles")
        if self.markers is None:
            if self.start is not None:
                raise problem("a release is found from markers", key="start")
            if self.register_ is not None:
                raise problem("only markers can be registered", key="register")
            if self.unit not in (None, "m"):
                raise problem("poses are read in metres", key="unit", found=f"'{self.unit}'", expected="'m'")
        if self.rest is not None and self.rest[1] > self.time_offset:
            raise problem(
                "markers rest before they are let go",
                key="rest",
                found=f"{list(self.rest)}",
                expected=f"times up to the time_offset of {self.time_offset:g} s",
            )


class ExperimentSpec(Spec):
    """One of several runs that share the parameters.

    Attributes
    ----------
    use : `fit`: the objective counts it; `validate`: it is predicted with what the others found
    fit_window : `validate`: simulation times over which the parameters of this experiment alone, such as the start of a
        throw, are fitted to its recording before it is predicted [s]; what others found is held
    """

    name: kinds.Name = Field(description="name of the experiment")
    overrides: dict[kinds.NonEmpty, Any] = Field(
        default_factory=dict, description="path into the scene -> JSON value that replaces it in this experiment"
    )
    recording: RecordingSpec | None = Field(None, description="recording; null = the scene's")
    use: Literal["fit", "validate"] = "fit"
    fit_window: kinds.Window | None = None


class CloudBoxSpec(_CornersSpec):
    """The box in which points count, world axes."""


class CloudPlaneSpec(Spec):
    """A plane below which points do not count, such as a table that the camera sees, too."""

    point: kinds.Vector3 = Field(description="a point of the plane [m]")
    normal: kinds.Direction = Field(description="to the side that counts; any length above 0 [-]")


class CloudColourSpec(_CornersSpec):
    """The box of colours that count, for clouds whose points have colours.

    Attributes
    ----------
    min : least red, green, blue, from 0 to 1 [-]; null = unbounded
    """

    min: kinds.Limit = (None, None, None)
    max: kinds.Limit = Field((None, None, None), description="most red, green, blue, from 0 to 1 [-]; null = unbounded")


class _ObjectiveSpec(Spec):
    unit: ClassVar[str] = "m^2"

    weight: kinds.NonNegative = Field(1.0, description="factor of this term [-]")


class _RobustSpec(_ObjectiveSpec):
    """Objectives of samples whose weight may fall with their distance.

    Attributes
    ----------
    loss : what a sample at the distance s counts: `squared` s^2; less for those that are far off, with k =
        `loss_scale`: `huber` 2 k s - k^2 beyond k, `soft-l1` 2 k^2 (sqrt(1 + s^2/k^2) - 1), `cauchy` k^2 ln(1 +
        s^2/k^2)
    loss_scale : distance from which on a sample counts less, such as three times the noise [m]; of poses with
        covariances, in standard deviations of a whole pose
    """

    loss: Literal["squared", "huber", "soft-l1", "cauchy"] = "squared"
    loss_scale: kinds.Positive | None = None

    def model_post_init(self, context: Any) -> None:
        if (self.loss == "squared") != (self.loss_scale is None):
            needs = "no 'loss_scale'" if self.loss == "squared" else "a 'loss_scale'"
            raise problem(f"the loss '{self.loss}' has {needs}", key="loss_scale")


class CloudObjectiveSpec(_RobustSpec):
    """Mean squared distance of recorded points from the surface of a soft body, or a robust loss of it [m^2].

    From each point to the closest one of the deformed surface, curved where elements are quadratic; what was not
    recorded does not count.

    Attributes
    ----------
    file : sequence of point clouds, world axes: .npz (`times`, `points`, `frame`), .csv (time_s,x_m,y_m,z_m), or a
        folder of .ply files
    time_offset : recording time at which the simulation's t = 0 [s]
    place : where it lies in the scene, in numbers that a fit may find; `box` and `plane` choose points where the
        scene's own numbers put them; null = where it is
    """

    type: Literal["cloud"] = Field("cloud", description="kind of objective")
    body: kinds.Name = Field(description="name of a soft body")
    file: kinds.FilePath
    rate: kinds.Positive | None = Field(None, description="frames a second of a folder of .ply files [Hz]")
    scale: kinds.Positive = Field(1.0, description="factor from the file's unit to metres [-]")
    time_offset: Annotated[kinds.Number, Role.RECORDING] = 0.0
    place: PlacementSpec | None = None
    crop: kinds.Window | None = Field(None, description="simulation times that count [s]; null = all")
    box: CloudBoxSpec | None = Field(None, description="where points count; null = everywhere")
    colour: CloudColourSpec | None = Field(None, description="colours that count; null = all")
    plane: CloudPlaneSpec | None = Field(None, description="points below it do not count; null = none")
    every: kinds.Count = Field(1, description="every n-th point of a frame counts")
