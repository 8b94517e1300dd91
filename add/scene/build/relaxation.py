"""Bodies whose stress relaxes: the numbers of their branches, and steps that remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from add.bodies import Layouts, SoftBody
from add.equations.memory import Memory
from add.errors import InputError
from add.model import Model
from add.scene.build.numbers import SceneParameter
from add.scene.build.ties import Derived, OfScene
from add.scene.spec.materials import AnyMaterialSpec
from add.scene.spec.relaxation import BranchSpec
from add.scene.spec.scene import SceneSpec
from add.simulation import BDF, Stepper
from add.simulation.remembering import Remembering
from add.ties import FlatLoss, WeightedSum
from add.typing import FloatArray


def relaxation(place: str, material: AnyMaterialSpec) -> tuple[list[SceneParameter], list[Derived]]:
    """Return the numbers of a material's branches; what has relaxed is the sum of shares where nothing else says so."""
    numbers, derived, shares = [], [], []
    for key, item, _ in material.branches:
        path, own = f"{place}.material.relaxation.{key}", f"{place}.relaxation.{key}"
        shares.append(f"{own}.shares")
        times = ((f"{own}.times", 1.0),)
        if isinstance(item, BranchSpec):
            numbers.append(SceneParameter(f"{path}.share", np.array(item.share), "-", ((shares[-1], 1.0),)))
            numbers.append(SceneParameter(f"{path}.time", np.array(item.time), "s", times))
            continue
        numbers.append(SceneParameter(f"{path}.loss", np.array(item.loss), "-", ()))
        numbers.append(SceneParameter(f"{path}.frequencies", np.array(item.times), "s", times, fixed=True))
        derived.append(Derived((shares[-1],), FlatLoss(item.times), (OfScene(f"{path}.loss"),)))
    if shares:
        total = WeightedSum((1.0,) * sum(n for _, _, n in material.branches))
        derived.append(Derived((f"{place}.relaxed",), total, tuple(shares)))
    return numbers, derived


def remembering(
    spec: SceneSpec,
    model: Model,
    stepper: Stepper,
    theta: FloatArray,
    further: Mapping[str, Callable[[Layouts], Memory]],
) -> Stepper:
    """Return steps with the memories of the bodies, and those of ``further`` places; the stepper itself without any.

    Raises
    ------
    InputError
        If the steps are others than whole ones of BDF, or shares leave nothing of the stress at rest.
    """
    bodies = [body for body in model.bodies if isinstance(body, SoftBody)]
    relaxing = [region.place(body.name) for body in bodies for region in body.materials if region.branches]
    places = [*(f"{own}.material.relaxation" for own in relaxing), *further]
    if places and (not isinstance(stepper, BDF) or spec.time.substeps == "auto"):
        raise InputError(
            "stress that relaxes and activations that follow need whole steps of bdf1 or bdf2, penalties in contact",
            place=places[0],
            found=f"time.integrator '{spec.time.integrator}', time.substeps '{spec.time.substeps or 'off'}', "
            f"contact.friction_law '{spec.contact.friction_law}'",
            expected="'bdf1' or 'bdf2', 'off', and 'none', 'linear', 'tanh' or 'hybrid'",
        )  # fmt: skip
    for own in relaxing:
        relaxed = float(model.system.parameters.view(theta, f"{own}.relaxed")[0])
        if relaxed >= 1.0:
            raise InputError(
                "nothing is left of the stress at rest: the shares of the branches are too large",
                place=f"{own}.material.relaxation", found=f"{relaxed:.4g} together", expected="below 1",
            )  # fmt: skip
    found = [memory for body in model.bodies for memory in body.memories(model.layouts)]
    found += [make(model.layouts) for make in further.values()]
    return Remembering(stepper, tuple(found)) if found and isinstance(stepper, BDF) else stepper
