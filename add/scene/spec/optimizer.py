"""The optimizer of the scene format: method, phases, starts; the intervals beside the standard errors of a fit."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from add.scene.spec import kinds
from add.scene.spec.common import Facts, Spec
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem, unique


class PhaseSpec(Spec):
    """One stage of a continuation; it starts where the stage before ended.

    Attributes
    ----------
    parameters : paths of the parameters that are free, `path@experiment` for that of one experiment alone; null = all
    window : simulation times that count [s], in every experiment as far as its run reaches; null = the whole run of
        each experiment
    end_time : simulate only up to this time [s]; null = each experiment to its own end
    """

    name: kinds.Name = Field(description="name of the phase")
    parameters: Annotated[tuple[kinds.NonEmpty, ...], Field(min_length=1)] | None = None
    window: kinds.Window | None = None
    end_time: kinds.Positive | None = None
    max_evaluations: kinds.Count | None = Field(None, description="limit for this phase; null = the optimizer's")
    overrides: dict[kinds.NonEmpty, Any] = Field(
        default_factory=dict,
        description="path into the scene -> number or list of numbers that replaces it during this phase, such as "
        '{"contact.friction": 0.1}: any number that could be one of `parameters` and is none; in all experiments. The '
        "result is that of the scene without overrides",
    )

    def model_post_init(self, context: Any) -> None:
        if self.window is not None and self.end_time is not None:
            raise problem("give 'window' or 'end_time', not both", key="end_time")


class StartsSpec(Spec):
    """Points from which the optimiser goes through its phases in turn; the one that ends lowest is the result.

    Attributes
    ----------
    spread : parameters without two bounds are drawn within this distance of the start, in the transformed unit over
        `scale`; others between their bounds [-]
    keep : each is simulated once, and the optimiser goes on from so many of them, those whose objective is lowest; null
        = from all
    """

    count: Annotated[kinds.Count, Field(le=100_000)] = Field(1, description="how many, with the scene's own start")
    seed: kinds.Index = Field(0, description="of the numbers that are drawn")
    spread: kinds.Positive = 1.0
    keep: kinds.Count | None = None

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return dict.fromkeys(("seed", "spread"), "'count' is 1: nothing is drawn") if self.count == 1 else {}

    def model_post_init(self, context: Any) -> None:
        if self.keep is not None and self.keep > self.count:
            raise problem(f"more than the {self.count} starts of 'count'", key="keep")


class OptimizerExtension(Extension):
    """Base of optimisers that extensions bring."""

    def optimizer(self, phases: Any, starts: Any) -> Any:
        """Return the `add.inverse.optimizers.phases.PhasedOptimizer` that goes through ``phases`` from ``starts``."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it minimises")


class OptimizerSpec(Spec):
    """How the objective is minimised.

    Attributes
    ----------
    method : algorithm: `l-bfgs-b` (adjoint gradients), `gauss-newton` (forward tangents or, of many controls, a
        solution along time; Levenberg-Marquardt damping), which needs fewer simulations and more work in each, or, for
        rough objectives, one step an adjoint gradient without a line search: `adam`, and `sgd`, descent with momentum
    damping : `gauss-newton`: damping at the start, relative to the largest diagonal entry of J^T J [-]
    rate : `adam`, `sgd`: length of a step, in the scaled parameters, of the objective over its value at the start of
        the phase [-]
    decay_every : `adam`, `sgd`: evaluations of a phase after which the rate decays again
    max_evaluations : largest number of simulations; `l-bfgs-b` finishes the line search that it is in
    gradient_tolerance : stop when no entry of the projected gradient in the scaled parameters is above this
    objective_tolerance : stop when the decrease falls below this share of the objective at the start of the phase [-]
    """

    method: Annotated[
        Literal["l-bfgs-b", "gauss-newton", "adam", "sgd"] | OptimizerExtension,
        kinds.by_type("a name, or an object of an extension", text=str, extension=(dict, Extension)),
    ] = "l-bfgs-b"
    history: Annotated[kinds.Count, Field(le=1000)] = Field(10, description="`l-bfgs-b`: number of stored corrections")
    damping: kinds.Positive = 1e-3
    rate: kinds.Positive = 0.1
    decay: Annotated[kinds.Positive, Field(le=1)] = Field(1.0, description="`adam`, `sgd`: factor of the rate [-]")
    decay_every: kinds.Count = 1
    momentum: kinds.Share = Field(0.9, description="`sgd`: share of the last step that goes on [-]")
    beta1: kinds.Share = Field(0.9, description="`adam`: share of the past in the mean of gradients [-]")
    beta2: kinds.Share = Field(0.999, description="`adam`: share of the past in the mean of their squares [-]")
    starts: StartsSpec = Field(default_factory=lambda: StartsSpec(), description="points to begin from")
    max_evaluations: kinds.Count = 100
    gradient_tolerance: kinds.NonNegative = 1e-8
    objective_tolerance: kinds.NonNegative = 1e-12
    phases: tuple[PhaseSpec, ...] = Field((), description="stages of a continuation; empty = one stage with everything")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        read = {
            "l-bfgs-b": ("history", "gradient_tolerance", "objective_tolerance"),
            "gauss-newton": ("damping", "gradient_tolerance", "objective_tolerance"),
            "adam": ("rate", "decay", "decay_every", "beta1", "beta2", "gradient_tolerance"),
            "sgd": ("rate", "decay", "decay_every", "momentum", "gradient_tolerance"),
        }
        others = {key for keys in read.values() for key in keys} - set(read.get(str(self.method), ()))
        steady = {"decay_every": "'decay' is 1"} if self.decay == 1.0 else {}
        return steady | dict.fromkeys(sorted(others), f"'{self.method}' has none")


class UncertaintySpec(Spec):
    """Error bars beyond noise, correlated residuals and the spread of takes, which are always counted.

    Attributes
    ----------
    convergence : file that `add converge` wrote for this scene: its discretisation errors enter the error bars; null =
        those of the run folder, if `add converge` filled it
    profile : paths of `parameters` whose 95 % interval is found by profile likelihood: some tens of simulations with
        derivatives for each number
    bootstrap : draws of the bootstrap over takes, or over stretches of time where there are fewer than four
    candidates : whether takes that are only predicted and markers that were not recorded are tried, one simulation with
        derivatives each, where the data hardly see a combination of parameters
    """

    convergence: kinds.FilePath | None = None
    profile: Annotated[tuple[kinds.NonEmpty, ...], AfterValidator(unique)] = ()
    bootstrap: Annotated[kinds.Count, Field(ge=20, le=100000)] | None = None
    candidates: kinds.Flag = True
