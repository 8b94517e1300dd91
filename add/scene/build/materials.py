"""Materials of soft bodies, relaxing ones too: regions of meshes, numbers and fields over elements, fibres."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from add.bodies import Layouts, Region, SoftBody
from add.bodies.nodal import MATERIAL_SCALARS
from add.errors import InputError
from add.geometry import SoftMesh, laplace_gradient
from add.materials import DIRECTIONS, Formula, called, linear_moduli
from add.model import Model
from add.scene.build.selections import select
from add.scene.build.ties import Derived, OfScene, SceneParts
from add.scene.read.paths import asked_for_by
from add.scene.spec import signals
from add.scene.spec.bodies import CellDataSelectorSpec, FileMeshSpec, SoftBodySpec
from add.scene.spec.common import BoxSelectorSpec, SphereSelectorSpec
from add.scene.spec.material_laws import BranchSpec, MaterialSpec
from add.scene.spec.materials import AnyMaterialSpec, FormulaMaterialSpec
from add.scene.spec.scene import SceneSpec
from add.simulation import BDF, Stepper
from add.simulation.composed import Remembering
from add.summary import counted
from add.terms.memories import Memory
from add.ties import FlatLoss, LameFromYoung, WeightedSum
from add.typing import BoolArray, FloatArray, IntArray

# --- Bodies whose stress relaxes: the numbers of their branches, and steps that remember ------------------------------


def relaxation(place: str, material: AnyMaterialSpec, parts: SceneParts) -> None:
    """Add the numbers of a material's branches; what has relaxed is the sum of shares where nothing else says so."""
    shares = []
    for key, item, _ in material.branches:
        path, block = f"{place}.material.relaxation.{key}", f"{place}.relaxation.{key}"
        shares.append(f"{block}.shares")
        times = ((f"{block}.times", 1.0),)
        if isinstance(item, BranchSpec):
            parts.add(f"{path}.share", item.share, "-", ((shares[-1], 1.0),))
            parts.add(f"{path}.time", item.time, "s", times)
            continue
        parts.add(f"{path}.loss", item.loss, "-", ())
        parts.add(f"{path}.frequencies", item.times, "s", times, fixed=True)
        parts.derived.append(Derived((shares[-1],), FlatLoss(item.times), (OfScene(f"{path}.loss"),)))
    if shares:
        total = WeightedSum((1.0,) * sum(n for _, _, n in material.branches))
        parts.derived.append(Derived((f"{place}.relaxed",), total, tuple(shares)))


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
    places = [*(f"{relaxed_body}.material.relaxation" for relaxed_body in relaxing), *further]
    if places and (not isinstance(stepper, BDF) or spec.time.substeps == "auto"):
        raise InputError(
            "stress that relaxes and activations that follow need whole steps of bdf1 or bdf2, penalties in contact",
            place=places[0],
            found=f"time.integrator '{spec.time.integrator}', time.substeps '{spec.time.substeps or 'off'}', "
            f"contact.friction_law '{spec.contact.friction_law}'",
            expected="'bdf1' or 'bdf2', 'off', and 'none', 'linear', 'tanh' or 'hybrid'",
        )  # fmt: skip
    for relaxed_body in relaxing:
        relaxed = float(model.system.parameters.view(theta, f"{relaxed_body}.relaxed")[0])
        if relaxed >= 1.0:
            raise InputError(
                "nothing is left of the stress at rest: the shares of the branches are too large",
                place=f"{relaxed_body}.material.relaxation", found=f"{relaxed:.4g} together", expected="below 1",
            )  # fmt: skip
    memories = [memory for body in model.bodies for memory in body.memories(model.layouts)]
    memories += [make(model.layouts) for make in further.values()]
    return Remembering(stepper, tuple(memories)) if memories and isinstance(stepper, BDF) else stepper


# ----------------------------------------------------------------------------------------------------------------------

#: Largest cosine between directions that are said to be across each other.
_ACROSS = 1e-6


def materials(name: str, body: SoftBodySpec, mesh: SoftMesh, parts: SceneParts) -> tuple[Region, ...]:
    """Return the regions of a body; their numbers go to ``parts``."""
    at = f"bodies.{name}"
    left = np.ones(mesh.n_elements, dtype=bool)
    chosen = {}
    for key, region in body.regions.items():
        place = f"{at}.regions.{key}"
        inside = _inside(region.where, body, mesh, f"{place}.where")
        if not inside.any():
            raise InputError("the selection holds no element", place=f"{place}.where",
                             expected="something that the middle of an element lies in")  # fmt: skip
        if (inside & ~left).any():
            raise InputError("regions overlap", place=f"{place}.where", found=f"{(inside & ~left).sum()} elements that "
                             "an earlier region holds, too", expected="each element in one of them")  # fmt: skip
        left &= ~inside
        chosen[key] = (place, region.material, np.flatnonzero(inside))
    if not left.any():
        raise InputError("the regions leave nothing of the body to its own material", place=f"{at}.regions",
                         expected="one region less")  # fmt: skip
    chosen = {"": (at, body.material, np.flatnonzero(left))} | chosen
    regions = []
    for key, (place, material, elements) in chosen.items():
        fields = _numbers(place, material, ElementSource(body, mesh, elements), parts)
        branches = tuple((name, n) for name, _, n in material.branches)
        viscosity = material.dissipation_law
        regions.append(Region(key, material.law, elements, frozenset(fields), branches, viscosity))
        relaxation(place, material, parts)
    return tuple(regions)


class ElementSource:
    """The place where values of elements are found: the mesh of a body, and which of its elements are meant."""

    def __init__(self, body: SoftBodySpec, mesh: SoftMesh, elements: IntArray) -> None:
        self.body, self.mesh, self.elements = body, mesh, elements

    def of_mesh(self, source: signals.CellDataSpec | signals.ElementFileSpec, width: int, place: str) -> FloatArray:
        """Return the rows (n, width) that the mesh file or a table has for the elements."""
        if isinstance(source, signals.CellDataSpec):
            values = cell_data(self.body, source.cell_data, f"{place}.cell_data")
        else:
            with asked_for_by(f"{place}.file"):
                values = number_table(source.file)
        values = values.reshape(len(values), -1)
        if values.shape != (self.mesh.n_elements, width):
            rows = f"{values.shape[0]} rows of {values.shape[1]} numbers"
            raise InputError("this does not fit the mesh", place=place, found=rows,
                             expected=f"{self.mesh.n_elements} rows of {width}, one for each element")  # fmt: skip
        return values[self.elements]

    def values(self, value: signals.FieldValue, place: str) -> FloatArray:
        """Return a number, or those of the elements (n,)."""
        n = self.elements.size
        if isinstance(value, signals.EachSpec):
            return np.full(n, value.each)
        if isinstance(value, signals.CellDataSpec | signals.ElementFileSpec):
            return self.of_mesh(value, 1, place)[:, 0]
        if isinstance(value, tuple) and len(value) != n:
            raise InputError("a field of the wrong length", place=place, found=counted(len(value), "number"),
                             expected=f"{n}, one for each element")  # fmt: skip
        return np.array(value, dtype=float)

    def directions(self, source: Any, place: str) -> FloatArray:
        """Return unit vectors, one (3,) or those of the elements (n, 3)."""
        if isinstance(source, signals.ConstantDirectionSpec):
            vectors = np.array(source.direction)
        elif isinstance(source, signals.HelixSpec):
            axis = np.array(source.around) / np.linalg.norm(source.around)
            arms = self.mesh.points[self.mesh.cells[self.elements]].mean(axis=1) - np.array(source.point)
            round_axis = np.cross(axis, arms)
            size = np.linalg.norm(round_axis, axis=1, keepdims=True)
            if (size <= 1e-9 * np.ptp(self.mesh.points)).any():
                raise InputError("the axis goes through the middle of an element, where nothing goes round it",
                                 place=place, found=f"element {self.elements[np.argmin(size)]}")  # fmt: skip
            vectors = np.cos(source.pitch) * round_axis / size + np.sin(source.pitch) * axis
        elif isinstance(source, signals.LaplaceSpec):
            low, high = (select(self.mesh, end, f"{place}.between.{k}") for k, end in enumerate(source.between))
            with asked_for_by(f"{place}.between"):
                vectors = laplace_gradient(self.mesh, low, high)[self.elements]
        else:
            vectors = self.of_mesh(source, 3, place)
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if not (length > 0.0).all():
            raise InputError("a fibre without a length has no direction", place=place,
                             found=f"zero for element {self.elements[np.argmin(length)]}",
                             expected="vectors of any other length")  # fmt: skip
        return vectors / length


def cell_data(body: SoftBodySpec, name: str, place: str) -> FloatArray:
    """Return what the mesh file of a body says of each element."""
    from add.io.meshes import read_cell_data

    if not isinstance(body.mesh, FileMeshSpec):
        raise InputError("only meshes from files have cell data", place=place, found="a shape", expected="mesh.file")
    with asked_for_by(place):
        return read_cell_data(body.mesh.file, name)


def number_table(file: str) -> FloatArray:
    """Return the rows of a table of numbers, .npy or text."""
    try:
        if file.endswith(".npy"):
            return np.asarray(np.load(file, allow_pickle=False), dtype=float)
        with open(file, encoding="utf-8") as text:
            return np.loadtxt((line.replace(",", " ") for line in text), ndmin=2)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=file) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"not a table of numbers: {error}", file=file) from None


def _inside(
    where: BoxSelectorSpec | SphereSelectorSpec | CellDataSelectorSpec, body: SoftBodySpec, mesh: SoftMesh, place: str
) -> BoolArray:
    """Return which elements a selection holds."""
    if isinstance(where, CellDataSelectorSpec):
        return np.asarray(np.ravel(cell_data(body, where.cell_data, f"{place}.cell_data")) == where.value)
    middles = mesh.points[mesh.cells].mean(axis=1)
    if isinstance(where, SphereSelectorSpec):
        return np.asarray(np.linalg.norm(middles - np.array(where.sphere.center), axis=1) <= where.sphere.radius)
    low, high = where.box.corners
    return np.asarray(((middles >= low) & (middles <= high)).all(axis=1))


def _numbers(at: str, material: AnyMaterialSpec, source: ElementSource, parts: SceneParts) -> list[str]:
    """Add the numbers of a material; return which parameters of the law are fields."""
    values: dict[str, FloatArray] = {}
    keys = [modulus for modulus in material.law.parameters if modulus not in DIRECTIONS]
    young = isinstance(material, MaterialSpec) and material.young is not None
    given = [("young", "Pa"), ("poisson", "-")] if young else [(modulus.key, modulus.unit) for modulus in keys]
    for key, unit in given:
        path = f"{at}.material.{key}"
        value = getattr(material, key) if young else material.modulus(key)
        assert value is not None
        values[key] = source.values(value, path)
        parts.add(path, values[key], unit, () if young else ((f"{at}.{key}", 1.0),))
    fields = [key for key, value in values.items() if value.ndim]
    if young:
        inputs = OfScene(f"{at}.material.young"), OfScene(f"{at}.material.poisson")
        parts.derived.append(Derived((f"{at}.mu", f"{at}.lambda"), LameFromYoung(), inputs, each=True))
        pair = np.stack(np.broadcast_arrays(values["young"], values["poisson"]), axis=-1)
        with np.errstate(all="ignore"):  # of nu = 0.5 in files, which is refused below
            moduli = LameFromYoung().value(pair.reshape(-1, 2))
        fields = ["mu", "lambda"] if fields else []
    else:
        moduli = np.stack(np.broadcast_arrays(*(values[modulus.key] for modulus in keys)), axis=-1)
    if fields:
        _require_stable(at, material, moduli.reshape(-1, len(keys)), source)
    for name in dict.fromkeys(modulus.key.partition(".")[0] for modulus in material.law.parameters[len(keys) :]):
        vectors = source.directions(getattr(material.directions, name), f"{at}.material.fibres.{name}")
        values[name] = vectors
        for k, axis in enumerate("xyz"):
            parts.add(f"{at}.{name}.{axis}", vectors[..., k], "-", fixed=True)
            fields += [f"{name}.{axis}"] if vectors.ndim > 1 else []
    if material.across:
        cosines = np.abs((values["fibre"] * values["sheet"]).sum(axis=-1))
        if cosines.max() > _ACROSS:
            raise InputError("sheets lie across fibres in a law with I8, which is zero at rest",
                             place=f"{at}.material.fibres.sheet", found=f"a cosine of {cosines.max():.3g}",
                             expected=f"at most {_ACROSS:g}")  # fmt: skip
    for key, unit in MATERIAL_SCALARS:
        parts.add(f"{at}.material.{key}", getattr(material, key), unit, ((f"{at}.{key}", 1.0),))
    for modulus in material.dissipation_law.parameters:
        targets = ((f"{at}.{modulus.key}", 1.0),)
        parts.add(f"{at}.material.{modulus.key}", material.rate_number(modulus.key), modulus.unit, targets)
    return fields


def _require_stable(at: str, material: AnyMaterialSpec, moduli: FloatArray, source: ElementSource) -> None:
    """Refuse fields with elements whose material is not stable at small strains: their signs are not in the format."""
    law = material.law
    padded = np.zeros((len(moduli), len(law.parameters)))
    padded[:, : moduli.shape[1]] = moduli
    mu, lame = linear_moduli(called(law), padded)[0].T
    bulk = lame + 2.0 / 3.0 * mu
    with np.errstate(invalid="ignore"):
        wrong = ~((mu > 0.0) & (bulk > 0.0) & np.isfinite(mu + bulk))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError("the material is not stable at small strains (Drucker)", place=f"{at}.material",
                         found=f"mu = {mu[k]:.6g} Pa and K = {bulk[k]:.6g} Pa in element {source.elements[k]}",
                         expected="both above 0 in every element")  # fmt: skip
    if isinstance(material, FormulaMaterialSpec):
        names = [modulus.key.removeprefix("numbers.") for modulus in law.parameters]
        with asked_for_by(f"{at}.material"):
            Formula.read(material.energy).require_sound(dict(zip(names, moduli[0].tolist(), strict=False)))
