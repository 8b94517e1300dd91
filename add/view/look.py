"""How a picture is drawn, where the camera stands, what is shown beside the bodies; whether pyvista is there at all."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import final

import numpy as np

from add.errors import InputError
from add.typing import FloatArray

#: From what is looked at to the camera, by name.
DIRECTIONS = {
    "fit": (0.55, -1.0, 0.42), "front": (0.0, -1.0, 0.0), "back": (0.0, 1.0, 0.0), "left": (-1.0, 0.0, 0.0),
    "right": (1.0, 0.0, 0.0), "top": (0.0, 0.0, 1.0),
}  # fmt: skip


@final
@dataclass(frozen=True)
class Look:
    """The contents and the style of a picture.

    Attributes
    ----------
    colour : str
        One of `add.view.COLOURS`.
    camera : str
        "fit", "front", "back", "left", "right", "top", or a direction "x,y,z" from what is looked at to the camera;
        each sees the whole motion. With "follow" before it, as "follow" or "follow front", the camera keeps to the
        bodies, and moves with their middle.
    arrows : bool, optional
        Contact forces as arrows; None: when coloured by "contact".
    edges : bool
        Edges of the surface triangles.
    plain : bool
        Without shadows and ambient occlusion, which take a while without a graphics card.
    """

    colour: str = "displacement"
    camera: str = "fit"
    arrows: bool | None = None
    edges: bool = False
    plain: bool = False

    @property
    def follows(self) -> bool:
        """Whether the camera moves with the bodies."""
        return self.camera.split(" ")[0] == "follow"

    @property
    def direction(self) -> FloatArray:
        """Unit vector from what is looked at to the camera.

        Raises
        ------
        InputError
            If the camera is no name and no direction.
        """
        text = self.camera.removeprefix("follow").strip() or "fit"
        try:
            away = np.array(DIRECTIONS.get(text) or [float(part) for part in text.split(",")])
        except ValueError:
            away = np.zeros(0)
        if away.shape != (3,) or not np.isfinite(away).all() or not (length := float(np.linalg.norm(away))) > 0.0:
            raise InputError(
                "unknown camera",
                found=repr(self.camera),
                expected=f"{', '.join(DIRECTIONS)}, x,y,z, or follow before it",
            )
        return away / length


def require_pyvista() -> None:
    """Refuse to draw where pyvista is not installed.

    Raises
    ------
    InputError
        With the command that installs it.
    """
    if find_spec("pyvista") is None:
        raise InputError("pictures of bodies need pyvista and VTK: pip install 'add-sim[view]'")
