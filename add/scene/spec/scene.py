"""The scene format `add-scene/1`: what a scene file may say, with units and defaults.

The objects here are plain frozen data; `reader` makes them from files and `builder` turns them into a system.
`docs/scene-reference.md` and the published JSON Schema are generated from the descriptions.
"""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from add.scene.spec import kinds
from add.scene.spec.articulated import ArticulatedBodySpec, numbers_of
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import Facts, Role, Spec, exactly_one
from add.scene.spec.contact import ContactSpec
from add.scene.spec.couplings import CouplingSpec
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem
from add.scene.spec.markers import DirectionMarkerSpec, ExperimentSpec, MarkerSpec, RecordingSpec
from add.scene.spec.nets import ClothBodySpec, MassSpringBodySpec, RodBodySpec
from add.scene.spec.objective import GradientSpec, ObjectiveSpec, ParameterSpec
from add.scene.spec.optimizer import OptimizerSpec, UncertaintySpec
from add.scene.spec.rigid import BodyExtension, KinematicBodySpec, ObstacleSpec, RigidBodySpec
from add.scene.spec.signals import SignalSpec
from add.summary import few

SCHEMA = "add-scene/1"

BodySpec = Annotated[
    SoftBodySpec
    | RigidBodySpec
    | MassSpringBodySpec
    | ClothBodySpec
    | RodBodySpec
    | KinematicBodySpec
    | ArticulatedBodySpec
    | BodyExtension,
    kinds.by_value("type", further=BodyExtension, also={"particles": "mass-spring"}),
]


class IntegratorExtension(Extension):
    """Base of time integrators that extensions bring."""

    def stepper(self, dt: float, newton: Any) -> Any:
        """Return the `add.simulation.Stepper` of steps ``dt`` [s]; ``newton``: the options of `time.newton`."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it steps")


class SolverExtension(Extension):
    """Base of linear solvers that extensions bring."""

    def factorization(self, n: int) -> Any:
        """Return the `add.linalg.Factorization` for matrices of ``n`` unknowns."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it factors")


_BY_WORD = kinds.by_type("a name, or an object of an extension", text=str, extension=(dict, Extension))
IntegratorSpec = Annotated[
    Literal["bdf1", "bdf2", "sdirk3", "rk4"] | IntegratorExtension,
    _BY_WORD,
]
LinearSolverSpec = Annotated[Literal["auto", "cholmod"] | SolverExtension, _BY_WORD]


class NewtonSpec(Spec):
    """When a step counts as solved: |r| <= atol + rtol * (scale of the forces).

    Attributes
    ----------
    atol : absolute tolerance of the residual [N]; null = 1e-9, or what turns the lightest rigid body or link by 0.001
        rad/s^2, or moves the lightest node by 0.001 m/s^2, if that is less
    rtol : tolerance relative to the forces of the step [-]; null = 1e-10, or what the weight of all bodies turns the
        lightest rigid one by 0.1 rad/s^2 at, if that is less
    reuse : the factors of an iteration serve the next one, too, where it left less than this share of the residual:
        0.03 to 0.1 makes steps of many iterations a fifth to a quarter faster; 0 is Newton's method
    """

    atol: kinds.NonNegative | None = None
    rtol: kinds.NonNegative | None = None
    norm: Literal["l2", "l1"] = Field("l2", description="norm of the residual")
    max_iterations: kinds.Count = Field(50, description="largest number of iterations in a step")
    reuse: kinds.Share = 0.0

    def model_post_init(self, context: Any) -> None:
        if self.atol == 0.0 and self.rtol == 0.0:
            raise problem("one of 'atol' and 'rtol' must be above 0", found="both 0")


class TimeSpec(Spec):
    """Time stepping; give `duration` or `steps`.

    Attributes
    ----------
    duration : simulated time [s]; rounded up to whole steps unless it is a multiple of dt within 1e-9
    integrator : backward differentiation of order 1 or 2, `bdf1` or `bdf2`; `sdirk3`, three implicit stages of order
        3, for smooth motion, as of soft bodies that swing; or `rk4`, the explicit Runge-Kutta method of order 4, for
        smooth motion of small systems without contact, as trees of joints
    start : how bdf2 starts: with one BDF1 step (order 2), or from the straight-line history q(-dt) = q - dt v (order 1)
    initial : initial state: as given by the bodies, or the static solution from there
    substeps : `auto`: a step that finds no solution, in which contact stops a body or a link that would move by 0.4 of
        its thinnest part, or in which links swing far, is divided into 4, 16 or 64 steps of BDF1; sudden impacts are
        steps of BDF1 (docs/contact.md); null, under bdf1 and bdf2 where nothing has a memory: `auto` where contact has
        its numbers by weight and size, else steps for which no fallback finds a solution, in which links swing far, or
        which a damped contact does not resolve are divided, and steps in which contact stops a body suddenly are steps
        of BDF1; `off`: none is divided, and such steps of bdf2 are of BDF1 where nothing has a memory
    linear_solver : what factors the matrices of a step: `auto`, dense LAPACK or fronts by size; `cholmod`, CHOLMOD
        where they are symmetric and positive definite, else as `auto` (pip install add-sim[cholmod])
    """

    dt: kinds.Extent = Field(description="time step [s]")
    duration: kinds.Positive | None = None
    steps: kinds.Count | None = Field(None, description="number of steps")
    integrator: IntegratorSpec = "bdf2"
    start: Literal["bdf1", "straight-line"] = "bdf1"
    initial: Literal["given", "equilibrium"] = "given"
    substeps: Literal["off", "auto"] | None = None
    newton: NewtonSpec = Field(default_factory=NewtonSpec, description="solution of each step")
    linear_solver: LinearSolverSpec = "auto"

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        out = {} if self.integrator == "bdf2" else {"start": "it is how bdf2 starts"}
        if self.integrator == "rk4" and self.initial == "given":
            out["newton"] = "explicit steps solve nothing by Newton's method"
        if facts.without_penalties:
            out["substeps"] = "hard contact has no stiffness"
            if self.initial == "given":
                out["newton.reuse"] = "steps of hard contact factor anew"
        return out

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "duration", "steps")
        if self.duration is not None and self.dt > self.duration * (1.0 + 1e-9):
            raise problem(
                "one step is longer than the duration", key="dt", found=f"{self.dt:g} s",
                expected=f"at most {self.duration:g} s",
            )  # fmt: skip
        if self.duration is not None and self.duration / self.dt > 1e9:
            raise problem("more than 1e9 steps", found=f"duration / dt = {self.duration / self.dt:.3g}")

    @property
    def n_steps(self) -> int:
        """Number of steps: `steps`, or duration / dt rounded up unless within 1e-9 (relative) of a whole number."""
        if self.steps is not None:
            return self.steps
        assert self.duration is not None
        ratio = self.duration / self.dt
        nearest = round(ratio)
        return nearest if nearest >= 1 and abs(ratio - nearest) <= 1e-9 * nearest else math.ceil(ratio)

    @property
    def end(self) -> float:
        """Time at the end of the last step [s]."""
        return self.n_steps * self.dt


class CheckSpec(Spec):
    """The window of `add check --gradient`.

    Attributes
    ----------
    steps : length of the window from t = 0, in steps: long enough for contact, short enough for differences
    """

    steps: kinds.Count


class OutputSpec(Spec):
    """The states that a run keeps."""

    every: kinds.Count = Field(1, description="keep every n-th step in the trajectory file")


class ExpectationSpec(Spec):
    """The expected value of one number of a run; `value` agrees if |x - value| <= abs_tol + rel_tol |value|."""

    value: kinds.NumberOrListSpec | None = Field(None, description="expected value, in the result's unit")
    abs_tol: kinds.NonNegative | None = Field(None, description="absolute tolerance, in the result's unit; null = 0")
    rel_tol: kinds.NonNegative | None = Field(None, description="relative tolerance [-]; null = 0")
    min: kinds.Number | None = Field(None, description="lowest value, in the result's unit")
    max: kinds.Number | None = Field(None, description="highest value, in the result's unit")

    def model_post_init(self, context: Any) -> None:
        if self.value is None and self.min is None and self.max is None:
            raise problem("nothing is expected", expected="at least one of 'value', 'min', 'max'")


def _fill(said: dict[str, Any], usual: dict[str, Any]) -> None:
    """Write what is usual where nothing is said."""
    for key, value in usual.items():
        if isinstance(value, dict) and isinstance(said.setdefault(key, {}), dict):
            _fill(said[key], value)
        elif said.get(key) is None:
            said[key] = value


class SceneSpec(Spec):
    """A scene: what is simulated, what is measured, what is fitted.

    Attributes
    ----------
    json_schema : where editors find the JSON Schema; ignored
    gravity : acceleration of gravity [m/s^2]
    experiments : runs that share the parameters; empty = the scene is one experiment
    """

    json_schema: Annotated[kinds.Text | None, Field(alias="$schema")] = None
    schema_: Literal["add-scene/1"] = Field(alias="schema", description="version of the format")
    name: kinds.Text | None = Field(None, description="title of the scene")
    description: kinds.Text | None = Field(None, description="what the scene shows")
    time: TimeSpec = Field(description="time stepping")
    gravity: Annotated[kinds.Vector3, Role.PROPERTY] = (0.0, 0.0, -9.81)
    bodies: dict[kinds.Name, BodySpec] = Field(min_length=1, description="name -> body")
    signals: dict[kinds.Name, SignalSpec] = Field(default_factory=dict, description="name -> value over time")
    obstacles: dict[kinds.Name, ObstacleSpec] = Field(default_factory=dict, description="name -> obstacle")
    couplings: dict[kinds.Name, CouplingSpec] = Field(
        default_factory=dict, description="name -> spring, joint, motor, attachment or force"
    )
    contact: ContactSpec = Field(
        default_factory=ContactSpec, description="contact of the bodies with the obstacles and with each other"
    )
    markers: dict[kinds.Name, MarkerSpec] = Field(default_factory=dict, description="name -> observed point")
    recording: RecordingSpec | None = Field(None, description="measured motion of the markers")
    experiments: tuple[ExperimentSpec, ...] = ()
    objective: tuple[ObjectiveSpec, ...] = Field((), description="terms whose weighted sum is minimised")
    parameters: tuple[ParameterSpec, ...] = Field((), description="numbers the optimizer may change")
    gradient: GradientSpec = Field(default_factory=GradientSpec, description="how derivatives are taken")
    optimizer: OptimizerSpec = Field(default_factory=OptimizerSpec, description="how the objective is minimised")
    uncertainty: UncertaintySpec = Field(
        default_factory=UncertaintySpec, description="what the error bars of a fit contain"
    )
    output: OutputSpec = Field(default_factory=OutputSpec, description="what a run keeps")
    check: CheckSpec | None = Field(None, description="gradient check; null = at most 40 steps")
    expect: dict[kinds.NonEmpty, dict[kinds.NonEmpty, ExpectationSpec]] = Field(
        default_factory=dict, description="name of a check -> path of a result -> what its regression test asserts"
    )
    _raw: dict[str, Any] = PrivateAttr(default_factory=dict)
    _source: Path | None = PrivateAttr(default=None)

    @property
    def raw(self) -> dict[str, Any]:
        """The scene as it is written, with absolute file paths; do not change it: use `add.apply_overrides`."""
        return self._raw

    @property
    def source(self) -> Path | None:
        """The file that the scene comes from; None for a scene made in Python."""
        return self._source

    @property
    def parameter_paths(self) -> list[str]:
        """The paths of all parameters."""
        return [path for item in self.parameters for path in item.all_paths()]

    @property
    def without_experiments(self) -> str:
        """Words for what a run of the scene itself leaves out; empty where experiments override nothing."""
        names = [f"'{item.name}'" for item in self.experiments if item.overrides]
        return f"the scene itself, without what experiments override: {few(names, 4)}" if names else ""

    def is_direction(self, marker: str | None) -> bool:
        """Return whether a marker is a direction, which has no place."""
        return isinstance(self.markers.get(marker or ""), DirectionMarkerSpec)

    def recordings(self) -> dict[str, RecordingSpec]:
        """Return the recordings of the scene and of its experiments, by their paths."""
        items = {"recording": self.recording}
        items |= {f"experiments.{k}.recording": item.recording for k, item in enumerate(self.experiments)}
        return {place: item for place, item in items.items() if item is not None}

    def full(self) -> dict[str, Any]:
        """Return the scene as a dictionary with every default written out, under the keys of the file.

        Articulated bodies have the numbers of the robots' files that they are read from.
        """
        out = self.model_dump(by_alias=True)
        for name, body in self.bodies.items():
            if isinstance(body, ArticulatedBodySpec) and body.model is not None and body._robot is not None:
                _fill(out["bodies"][name], numbers_of(body._robot, body.keyframe))
        return out

    def __eq__(self, other: object) -> bool:
        """Two scenes are equal that say the same, wherever they come from."""
        return isinstance(other, SceneSpec) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]
