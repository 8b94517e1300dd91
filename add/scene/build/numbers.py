"""Every differentiable number of a scene, by its path, and how theta follows from them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from add.equations.layout import ParameterLayout
from add.errors import InputError
from add.inverse.maps import Composed
from add.scene.build.ties import Copy, Derived, OfScene, SceneParameter, compose
from add.scene.read.paths import meant
from add.scene.spec.contact import ContactSpec
from add.scene.spec.contact_classes import ContactClasses, met_shapes
from add.scene.spec.friction import SPIN_RATE
from add.scene.spec.roles import Limits, limits
from add.scene.spec.scene import SceneSpec
from add.scene.spec.signals import ConstantSignalSpec, SineSignalSpec
from add.ties import DampingFromRestitution
from add.typing import FloatArray, IntArray

#: Path, and name in theta, of the recording's time at which the simulation starts.
CLOCK = "recording.time_offset"


#: Numbers of penalty contact alone.
_OF_PENALTIES = ("stiffness", "damping", "stick_stiffness")
#: What null stands for; only the law `exact`, which does not read it, leaves the stiffness open here.
_WHERE_NONE = {"spin_rate": SPIN_RATE, "damping": 0.0, "stiffness": 1.0}
#: Further numbers of contact -> their names in theta, behind that of a pair, which has them or not.
_OF_PAIRS = {
    "friction": "c_f",
    "thickness": "thickness",
    "torsional_friction": "c_t",
    "rolling_friction": "c_r",
    "spin_rate": "w_0",
}

#: Numbers of adjustable obstacles.
_OF_ADJUSTABLE = ("point", "normal", "center", "orientation", "velocity")


def _units(contact: ContactSpec) -> dict[str, str]:
    """Return the units of the numbers of contact that a motion depends on, those of curves by formula apart."""
    if contact.friction_law == "impulse":
        return {"friction": "-"}
    per = "/m^2" if contact.stiffness_per == "area" else ""
    couples = ("torsional_friction", "rolling_friction", "spin_rate")
    units = {key: contact.unit_of(key) for key in ("stiffness", "friction", "damping", "stick_stiffness", "thickness")}
    units |= {key: units[key] + per for key in _OF_PENALTIES}
    if not contact.has_layer:
        del units["thickness"]
    if contact.friction_curve is None:
        units |= {number.name: number.unit.replace("{per}", per) for number in contact.curve.numbers}
    return units | ({key: contact.unit_of(key) for key in couples} if contact.brakes_spin else {})


class SceneParameters:
    """The scene's numbers s under their paths: layout, values, and the tie of every entry of theta to them.

    Attributes
    ----------
    layout : ParameterLayout
        Of s; names are paths into the scene.
    values : (n_s,)
    ties : Composed
        s -> theta.
    """

    def __init__(
        self,
        spec: SceneSpec,
        theta: ParameterLayout,
        extra: Sequence[SceneParameter] = (),
        derived: Sequence[Derived] = (),
        mesh_areas: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._blocks: list[tuple[str, tuple[int, ...], str]] = []
        self._values: list[FloatArray] = []
        self._copies: list[tuple[str, str, float | FloatArray]] = []
        self._derived: list[Derived] = list(derived)
        self._adhesive_damping = spec.contact.adhesive_damping
        self._spec = spec
        self._by_impulses = spec.contact.friction_law == "impulse"
        self._restitutions: dict[tuple[str, str], tuple[str, int]] = {}
        self._add("gravity", np.array(spec.gravity), "m/s^2", "gravity")
        base = np.zeros(theta.n)
        for number in extra:
            if number.fixed:
                for target, factor in number.targets:
                    theta.view(base, target)[...] = factor * number.value
                continue
            self._add(number.path, number.value, number.unit)
            self._copies += [(number.path, target, factor) for target, factor in number.targets]
        for name, signal in spec.signals.items():
            self._signal(f"signals.{name}", signal, theta)
        self._contact(spec, theta, mesh_areas)
        if spec.recording is not None:
            self._add(CLOCK, spec.recording.time_offset, "s", CLOCK)
        self.layout = ParameterLayout(self._blocks)
        self.values = np.concatenate(self._values)
        self.ties = self._tie(theta, base)

    def _add(self, path: str, value: object, unit: str, *targets: str, factor: float = 1.0) -> None:
        array = np.asarray(value, dtype=float)
        self._blocks.append((path, array.shape, unit))
        self._values.append(array.ravel())
        self._copies += [(path, target, factor) for target in targets]

    def _signal(self, path: str, signal: object, theta: ParameterLayout) -> None:
        """A signal's rows may drive loads (N) and pins (m) at once: theta holds one block for each unit."""
        targets = [entry.name for entry in theta.entries if entry.name.startswith(f"{path}.")]
        unit = theta[targets[0]].unit if len(targets) == 1 else ""
        if isinstance(signal, ConstantSignalSpec):
            self._add(f"{path}.value", np.array(signal.value), unit, *targets)
        elif isinstance(signal, SineSignalSpec):
            self._add(f"{path}.offset", np.array(signal.offset), unit, *(f"{t}#0" for t in targets))
            self._add(f"{path}.amplitude", np.array(signal.amplitude), unit, *(f"{t}#1" for t in targets))
        else:
            rows = np.array(signal.values)  # type: ignore[attr-defined]
            self._add(f"{path}.values", rows.reshape(rows.shape[0], -1), unit, *targets)

    def _said(self, place: str, section: Any, units: Mapping[str, str], usual: Mapping[str, float]) -> dict[str, str]:
        """Add the numbers that a section of contact says, or that are usual; return their paths by their keys."""
        paths = {}
        for key, unit in units.items():
            value = getattr(section, key, None)
            if value is not None or key in usual:
                paths[key] = f"{place}.{key}"
                self._add(paths[key], usual[key] if value is None else value, unit)
        return paths

    def _contact(self, spec: SceneSpec, theta: ParameterLayout, mesh_areas: Mapping[str, float]) -> None:
        """Numbers of contact; ``mesh_areas``: names of the coefficients of meshes -> area of a vertex [m^2]."""
        contact = spec.contact
        if not met_shapes(spec) and not mesh_areas:
            return
        units, curve = _units(contact), contact.curve.numbers
        by_formula = {} if contact.friction_curve is None else contact.friction_curve.paths()
        for number, (below, value) in by_formula.items():
            unit = next(one.unit for one in curve if one.name == number)
            per = "/m^2" if contact.stiffness_per == "area" else ""
            self._add(f"contact.friction_curve.{below}", value, unit.replace("{per}", per))
        curve = () if by_formula else curve
        usual = _WHERE_NONE | {number.name: 1.0 for number in curve if not number.is_coefficient}
        given = self._said("contact", contact, units, usual)
        classes = ContactClasses.read(spec)
        known = {entry.name.removesuffix(".k_n"): None for entry in theta.entries if entry.name.endswith(".k_n")}
        if contact.thickness is not None and not any(name.startswith("contact.") for name in known):
            raise InputError(
                "no points meet shapes: skins of meshes have their own thickness",
                place="contact.thickness",
                found=f"{contact.thickness:g} m",
                expected="contact.mesh.thickness, or bodies.*.contact.thickness",
            )
        penalties = {key: units[key] for key in _OF_PENALTIES if key in units}
        per_area = {key: f"{unit.removesuffix('/m^2')}/m^2" for key, unit in penalties.items()}
        of_meshes = self._said("contact.mesh", contact.mesh, per_area, {}) if mesh_areas else {}
        of_nodes = self._said("contact.nodes", contact.nodes, penalties, {})
        special = self._rows(classes, known, units)
        for pair, k in classes.restitutions(spec).items():
            self._restitutions[pair] = f"contact.pairs.{k}.restitution", contact.pairs[k].touching or 1
        damped = {f"contact.{a}.{b}": path for (a, b), (path, _) in self._restitutions.items()}
        if contact.friction_law == "impulse":
            self._restitutions.clear()
        for name in known:
            nodal = of_nodes if name.startswith("contact.") and name.split(".")[1] in classes.nodal else {}
            own = special.get(name, {})
            source = {key: (path, 1.0) for key, path in (given | nodal | own).items()}
            if name in mesh_areas:
                share = 1.0 if contact.stiffness_per == "area" else 1.0 / mesh_areas[name]
                source |= {key: (source[key][0], share) for key in _OF_PENALTIES if key in source}
                if "stiffness" in of_meshes and "stick_stiffness" not in own:
                    source.pop("stick_stiffness", None)  # it follows from the stiffness
                source |= {key: (path, 1.0) for key, path in of_meshes.items() if key not in own}
            for number, (below, _) in by_formula.items():
                self._copies.append((f"contact.friction_curve.{below}", f"{name}.{number}", 1.0))
            for key in [number.name for number in curve if number.is_coefficient]:
                if key not in source or ("friction" in own and key not in own):
                    source[key] = source["friction"]  # one coefficient, whatever the curve follows
            if name in mesh_areas and contact.brakes_spin:
                self._refuse_couples(name, source)
            self._of_pair(name, source, [number.name for number in curve], theta, damped.get(name))

    def _rows(
        self, classes: ContactClasses, known: Mapping[str, None], units: Mapping[str, str]
    ) -> dict[str, dict[str, str]]:
        """Add the numbers of the rows of `contact.pairs`; return names of coefficients -> number -> path."""
        special: dict[str, dict[str, str]] = {}
        for k, row in enumerate(self._spec.contact.pairs):
            named = [f"{kind}.{a}.{b}" for a, b in classes.pairs(row) for kind in ("contact", "mesh_contact")]
            named += [f"mesh_contact.{b}.{a}" for a, b in classes.pairs(row)]
            met = [name for name in dict.fromkeys(named) if name in known]
            if met:  # else switched off, and without a shape to meet
                paths = self._said(f"contact.pairs.{k}", row, units, {})
                self._said(f"contact.pairs.{k}", row, {"restitution": "-"}, {})
                special |= {name: special.get(name, {}) | paths for name in met}
        return special

    def _of_pair(
        self,
        name: str,
        source: Mapping[str, tuple[str, float]],
        of_curve: Sequence[str],
        theta: ParameterLayout,
        restitution: str | None,
    ) -> None:
        """Tie the coefficients of a pair to their numbers; with a restitution the damping follows from it."""
        contact, time = self._spec.contact, self._spec.time
        for key, of_pair in (_OF_PAIRS | {key: key for key in of_curve}).items():
            path, _ = source.get(key, ("", 0.0))
            if f"{name}.{of_pair}" in theta and path:
                self._copies.append((path, f"{name}.{of_pair}", 1.0))
        if contact.friction_law == "impulse":  # the place of the damping has the restitution
            if restitution is not None:
                self._copies.append((restitution, f"{name}.k_d", 1.0))
            return
        stiffness, factor = source["stiffness"]
        self._copies.append((stiffness, f"{name}.k_n", factor))
        if restitution is None:
            self._copies.append((source["damping"][0], f"{name}.k_d", source["damping"][1]))
        effective = contact.stick_stiffness_rule == "effective-dt" and time.integrator == "bdf2"
        stick_factor = time.dt * (2.0 / 3.0 if effective else 1.0)
        stick, times = source.get("stick_stiffness", (stiffness, factor * stick_factor))
        self._copies.append((stick, f"{name}.k_t", times))

    def _refuse_couples(self, name: str, source: Mapping[str, tuple[str, float]]) -> None:
        """Refuse torsional and rolling friction where two bodies meet by their meshes."""
        for key in ("torsional_friction", "rolling_friction"):
            path = source.get(key, ("", 0.0))[0]
            if path:
                _, one, two = name.split(".", 2)
                raise InputError(
                    "meshes that meet have no torsional and no rolling friction",
                    place=path,
                    found=f"'{one}' and '{two}', which meet by their meshes",
                    expected="rows of contact.pairs between bodies whose points meet shapes",
                )

    def _tie(self, theta: ParameterLayout, base: FloatArray) -> Composed:
        copies = []
        for path, name, factor in self._copies:
            name, _, row = name.partition("#")
            target = theta[name].indices
            copies.append(Copy(path, target[int(row)] if row else target, np.asarray(factor)))
        restitutions = [self._restitution(pair, theta) for pair in self._restitutions]
        return compose(self.layout, theta, base, copies, [*self._derived, *restitutions])

    def _restitution(self, pair: tuple[str, str], theta: ParameterLayout) -> Derived:
        """Return the damping of a body and what it meets, by their restitution."""
        path, touching = self._restitutions[pair]
        masses = [f"bodies.{name}.mass" if f"bodies.{name}.mass" in theta else np.array(np.inf) for name in pair]
        if not isinstance(masses[0], str):
            raise InputError(
                "restitution is given for bodies with one mass, rigid and mass-spring ones; give 'damping' here",
                place=path,
                found=f"body '{pair[0]}'",
            )
        name = f"contact.{pair[0]}.{pair[1]}"
        rule = DampingFromRestitution(touching, self._adhesive_damping)
        return Derived((f"{name}.k_d",), rule, (OfScene(path), f"{name}.k_n", *masses))

    def targets(self, path: str) -> set[str]:
        """Return the names of the blocks of theta that a number of contact is copied to, or a damping's by it."""
        restituted = [f"contact.{a}.{b}.k_d" for (a, b), (own, _) in self._restitutions.items() if own == path]
        return {name for source, name, _ in self._copies if source == path} | {*restituted}

    def root(self, path: str) -> str:
        """Return the path of the whole number, vector or table that a parameter path names, or names an entry of.

        Raises
        ------
        InputError
            If the path names a number that cannot be differentiated.
        """
        keys = path.split(".")
        for cut in range(len(keys), 0, -1):
            name = ".".join(keys[:cut])
            if name in self.layout:
                return name
        if self._by_impulses and keys[0] == "contact" and keys[-1] in _OF_PENALTIES:
            raise InputError(
                f"contact by impulses has no {keys[-1].replace('_', ' ')}: no motion depends on it",
                place=path,
                found="the friction law 'impulse'",
                expected="friction or restitution, or another contact.friction_law",
            )
        if keys[0] == "obstacles" and len(keys) > 2 and keys[1] in self._spec.obstacles:
            item = self._spec.obstacles[keys[1]]
            if not item.adjustable and keys[2] in _OF_ADJUSTABLE and hasattr(item, keys[2]):
                raise InputError(
                    "this obstacle has its place and direction for good",
                    place=path,
                    found='"adjustable": false',
                    expected=f'"adjustable": true in obstacles.{keys[1]}',
                )
        raise InputError(
            "this number cannot be a parameter: the motion is not differentiated with respect to it"
            + meant(path, [entry.name for entry in self.layout.entries]),
            place=path,
            expected=", ".join(entry.name for entry in self.layout.entries[:12]) + " ...",
        )

    def resolve(self, path: str) -> tuple[IntArray, str]:
        """Return the flat indices in s that a parameter path names, and their unit.

        A path may end in entry numbers of a vector or table: ``gravity.2``, ``signals.push.values.3.0``.

        Raises
        ------
        InputError
            If the path names a number that cannot be differentiated.
        """
        return np.ravel(self.place(path)), self.layout[self.root(path)].unit

    def place(self, path: str) -> IntArray:
        """Return the indices in s of a path, in the shape that its numbers have in the scene.

        Raises
        ------
        InputError
            If the path names a number that cannot be differentiated, or an entry that is not there.
        """
        name = self.root(path)
        index = self.layout[name].indices
        if name.startswith("signals.") and name.endswith(".values") and index.shape[1:] == (1,):
            index = index[:, 0]  # rows that are numbers
        within = path[len(name) + 1 :].split(".") if path != name else []
        if len(within) > index.ndim or any(
            not key.isdecimal() or int(key) >= size for key, size in zip(within, index.shape, strict=False)
        ):
            raise InputError("there is no such entry", place=path, found=f"{name} of shape {index.shape}")
        return np.asarray(index[tuple(int(key) for key in within)])

    def limits(self, path: str) -> Limits:
        """Return what the scene's format demands of a number."""
        return limits(self._spec, path)

    def inward(self) -> FloatArray:
        """Return the ways (1 or -1) off the limits of the format of numbers that stand at one, 0 of all others."""
        out = np.zeros(self.values.size)
        for entry in self.layout.entries:
            here, known = self.values[entry.slice], self.limits(entry.name)
            out[entry.slice] = 1.0 * (here <= known.low) - (here >= known.high)
        return out
