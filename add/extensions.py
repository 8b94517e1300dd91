"""Base classes of objects that files and packages outside `add` bring into scenes.

A class with a name, ``type: Literal["air-spring"] = "air-spring"``, is known to scenes once its module is imported: by
Python, by `add --extension FILE ...`, by the environment variable ``ADD_EXTENSIONS``, or as an entry point of the
group ``add.extensions`` of an installed package. See docs/extensions.md for one file of each kind.
"""

from add.errors import InputError
from add.machine.foreign import load_file
from add.mocap.formats.base import Capture, Choices, Format
from add.scene.robots import Robot, RobotFormat
from add.scene.spec.common import Spec
from add.scene.spec.couplings import CouplingExtension, PairExtension
from add.scene.spec.extension import Extension
from add.scene.spec.friction import FrictionExtension, NormalExtension
from add.scene.spec.kinds import (
    BodyName,
    Count,
    Direction,
    FilePath,
    Flag,
    Name,
    NonNegative,
    Number,
    Positive,
    Share,
    Text,
    Vector3,
)
from add.scene.spec.material_laws import ViscosityExtension
from add.scene.spec.materials import MaterialExtension
from add.scene.spec.objective import ObjectiveExtension
from add.scene.spec.optimizer import OptimizerExtension
from add.scene.spec.rigid import BodyExtension
from add.scene.spec.scene import IntegratorExtension, SolverExtension

__all__ = [
    "BodyExtension",
    "BodyName",
    "Capture",
    "Choices",
    "Count",
    "CouplingExtension",
    "Direction",
    "Extension",
    "FilePath",
    "Flag",
    "Format",
    "FrictionExtension",
    "InputError",
    "IntegratorExtension",
    "MaterialExtension",
    "Name",
    "NonNegative",
    "NormalExtension",
    "Number",
    "ObjectiveExtension",
    "OptimizerExtension",
    "PairExtension",
    "Positive",
    "Robot",
    "RobotFormat",
    "Share",
    "SolverExtension",
    "Spec",
    "Text",
    "Vector3",
    "ViscosityExtension",
    "load_file",
]
