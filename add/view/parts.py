"""The common base of the parts of a picture: the moment they show and the canvas they are drawn on."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from add.io.trajectory import RunData
from add.typing import FloatArray
from add.view.quantities import Quantity

if TYPE_CHECKING:
    import pyvista

OBSTACLE_COLOUR, GIVEN_COLOUR, NEUTRAL_COLOUR = "#c9ced6", "#9aa4b2", "#d7dbe0"
PLANE_COLOUR, GRID_COLOUR, SHADOW_COLOUR = "#f4f5f7", "#c3c9d2", "#c4c7cd"
MARKER_COLOUR, TARGET_COLOUR, ARROW_COLOUR, LOAD_COLOUR = "#0b57d0", "#d93025", "#202124", "#8430ce"
EDGE_COLOUR, JOINT_COLOUR, SLACK_COLOUR = "#3c4043", "#b06000", "#9aa0a6"
SHINE: dict[str, Any] = {"specular": 0.15, "specular_power": 12, "ambient": 0.12}


@final
@dataclass(frozen=True)
class Moment:
    """A time between two states.

    Attributes
    ----------
    time : float [s]
    before, after : states
    share : of the later one
    """

    time: float
    before: int
    after: int
    share: float

    @classmethod
    def of(cls, t: FloatArray, time: float) -> "Moment":
        """Return the moment of a run with states at ``t``."""
        k = int(np.clip(np.searchsorted(t, time, side="right") - 1, 0, len(t) - 1))
        if k == len(t) - 1:
            return cls(time, k, k, 0.0)
        share = float((time - t[k]) / (t[k + 1] - t[k]))
        return cls(time, k, k + 1, 0.0 if share < 1e-9 else share)

    @property
    def nearest(self) -> int:
        """The nearer state."""
        return self.before if self.share < 0.5 else self.after

    def between(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Interpolate linearly."""
        return (1.0 - self.share) * before + self.share * after

    def of_states(self, values: FloatArray) -> FloatArray:
        """Interpolate an array over all states."""
        return self.between(values[self.before], values[self.after])


@final
@dataclass(frozen=True)
class Canvas:
    """The canvas of the parts, and the sizes they go by.

    Attributes
    ----------
    data : RunData
    plotter : pyvista.Plotter
    pixel : pixels of the plotter per pixel of the picture
    span : diagonal of the box round the whole motion [m]
    body_span : diagonal of the largest body [m]
    font : size of text
    meshes : name -> what was added; mappers hold copies, which follow when a picture is drawn
    """

    data: RunData
    plotter: "pyvista.Plotter"
    pixel: float
    span: float
    body_span: float
    font: int
    meshes: dict[str, Any] = field(default_factory=dict)

    def add(self, mesh: Any, name: str, **style: Any) -> Any:
        """Add a mesh; the camera stays."""
        self.meshes[name] = mesh
        return self.plotter.add_mesh(mesh, reset_camera=False, name=name, show_scalar_bar=False, **style)


class Part(ABC):
    """Something in the picture that follows the time."""

    @property
    def coloured(self) -> tuple[Any, ...]:
        """Actors that show the chosen quantity."""
        return ()

    @property
    def casting(self) -> tuple[tuple[Any, Any], ...]:
        """Surfaces that cast shadows, and their actors."""
        return ()

    @abstractmethod
    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Show a moment, coloured by a quantity."""


def in_front(actor: Any, offset: float) -> None:
    """Draw before what lies at the same place (a polygon offset, in units of depth)."""
    mapper = actor.mapper
    mapper.SetResolveCoincidentTopologyToPolygonOffset()
    mapper.SetRelativeCoincidentTopologyPolygonOffsetParameters(0.0, offset)
    mapper.SetRelativeCoincidentTopologyLineOffsetParameters(0.0, offset)
    mapper.SetRelativeCoincidentTopologyPointOffsetParameter(offset)


def not_in_front(actor: Any) -> None:
    """Draw lines at their true depth, so that edges at the back of a body stay hidden: VTK moves lines forward."""
    actor.mapper.SetRelativeCoincidentTopologyLineOffsetParameters(1.0, 4.0)
