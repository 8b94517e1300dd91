"""The numbers of a fit with their errors, as another motion takes them: covariance, bootstrap, profile, starts."""

import csv
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from add.errors import InputError
from add.inverse.maps import Linear
from add.inverse.sampling import Discrepancy, Uncertain, discrepancy, scale_for
from add.io.runfolder import RESULT, SCENE, RunFolder
from add.scene.build.built import BuiltScene
from add.scene.build.inverse_problem import TRANSFORMS, bounds_of
from add.scene.spec.common import Role
from add.scene.spec.material_laws import MaterialSpec
from add.scene.spec.objective import PriorObjectiveSpec
from add.scene.spec.roles import paths_of_label, roles_of_label
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray

#: Objects with a law, and that of those that do not name it.
_MODELS = {"material": MaterialSpec.model_fields["model"].default, "membrane": "neo-hookean", "bending": "hinge"}


def carried(result: dict[str, Any], paths: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Return the numbers of a fit that hold for another motion: label -> value and errors.

    Parameters
    ----------
    result : of a fit
    paths : labels that are wanted, or paths of vectors, for all their components, or one of the paths that share a
        value; default: all that no take has for itself and that the format calls properties (`add.scene.spec.roles`)

    Raises
    ------
    InputError
        If a label is not among the fit's, or nothing is carried.
    """
    known: dict[str, dict[str, Any]] = result.get("parameters") or {}
    names = {
        label: {label, label.partition("[")[0], *(paths_of_label(label) if "@" not in label else ())} for label in known
    }
    asked = {path: [label for label in known if path in names[label]] for path in paths}
    missing = [path for path, labels in asked.items() if not labels]
    if missing:
        raise InputError("the fit has no such number", found=missing[0], expected=", ".join(known))
    if paths:
        return {label: known[label] for labels in asked.values() for label in labels}
    of_motion = of_one_motion(known)
    chosen = {label: entry for label, entry in known.items() if label not in of_motion}
    if not chosen:
        reasons = ", ".join(f"{label}: {why}" for label, why in of_motion.items())
        raise InputError("no number of the fit holds for another motion", found=reasons, expected="--parameter PATH")
    return chosen


def of_one_motion(labels: Iterable[str]) -> dict[str, str]:
    """Return the numbers that belong to one motion or recording, with the reason in words."""
    out = {}
    for label in labels:
        roles = roles_of_label(label) - {Role.PROPERTY}
        if "@" in label:
            out[label] = "of one take"
        elif roles:
            out[label] = min(role.value for role in roles)
    return out


def fit_of(run: RunFolder) -> dict[str, Any]:
    """Return the result of the fit in a folder.

    Raises
    ------
    InputError
        If there is none.
    """
    result = run.known(RESULT)
    if not result or run.command != "optimize":
        raise InputError("there is no fit in this folder", file=run.path, expected="a run of `add optimize`")
    return result


def require_same_laws(run: RunFolder, scene: SceneSpec, labels: Iterable[str]) -> None:
    """Refuse numbers of a fit that stand in another law in the scene that takes them: c10 of Yeoh's is not Mooney's.

    Raises
    ------
    InputError
        If the kind of a body with a material, the model of a material, or a formula, on the way to a number differs.
    """
    raw = run.known(SCENE)
    other = scene.model_dump(by_alias=True)
    for path in (path for label in labels for path in paths_of_label(label)):
        fitted, taking, place = raw, other, []
        for key in path.split(".")[:-1]:
            fitted, taking = (_below(node, key) for node in (fitted, taking))
            place.append(key)
            # The model of an articulated body is a file; the density of a cloth is no other body's.
            default = _MODELS.get(key) if len(place) > 2 else None
            kinds = ("type",) if len(place) == 2 and path.startswith(f"bodies.{key}.material.") else ()
            given = {"model": default} | fitted if default else fitted
            for word in (*kinds, *(("model", "energy") if default else ("energy",))):
                said = given.get(word)
                if word in taking and said is not None and said != taking[word]:
                    raise InputError(
                        f"'{path}' of the fit is a number of another law", file=run.path,
                        place=".".join([*place, word]), found=repr(taking[word]), expected=repr(said),
                    )  # fmt: skip


def _below(node: dict[str, Any], key: str) -> dict[str, Any]:
    """Return what stands under a key, nothing where it is no object."""
    value = node.get(key)
    return value if isinstance(value, dict) else {}


#: Share of a number up to which its variation between takes is believed.
BELIEVED = 0.25
#: Part of a positive number below which it is not drawn: a mass may not be zero.
LEAST = 1e-3


class Numbers(NamedTuple):
    """Numbers that another motion takes, with what is known of their errors.

    Attributes
    ----------
    labels : (n,) names, as results have them
    parts : what is known, a part for each fit; in the order of the labels
    sources : label -> where its error comes from
    held : label -> why it has none
    left : label of the fit -> why it stays behind
    """

    labels: tuple[str, ...]
    parts: tuple[Uncertain, ...]
    sources: dict[str, str]
    held: dict[str, str]
    left: dict[str, str]

    @property
    def values(self) -> FloatArray:
        """The physical values (n,)."""
        return np.concatenate([part.values for part in self.parts])

    @property
    def covariance(self) -> FloatArray:
        """Covariance (n, n) of the physical values, discretisation included; fits know nothing of each other."""
        return np.asarray(block_diag(*(part.linear for part in self.parts)))

    def moved(self, by: FloatArray) -> FloatArray:
        """Return the values (n,) moved by ``by`` (n,) along the scales of the fits, within their bounds."""
        out, ends = [], np.cumsum([part.values.size for part in self.parts])
        for part, move in zip(self.parts, np.split(by, ends[:-1]), strict=True):
            slopes = part.slopes
            y = part.scale(part.values) + np.divide(move, slopes, out=np.zeros(move.size), where=slopes != 0.0)
            out.append(np.clip(part.physical(y), part.lower, part.upper))
        return np.concatenate(out)


def discrepancies_of(run: RunFolder) -> dict[bool, Discrepancy]:
    """Return what a fit left over as a correlated misfit, of places (False) and of directions (True).

    Where the fit predicted takes (`"use": "validate"`), it is what these left over, by the time since what their starts
    have seen: in takes that are fitted the numbers of each, such as starts, take up a part of the misfit.

    Raises
    ------
    InputError
        If the folder keeps no residuals.
    """
    if not run.residuals.is_file():
        raise InputError("the fit left no residuals to estimate a discrepancy from", file=run.residuals)
    experiments = run.read_json(SCENE).get("experiments") or []
    seen = {item["name"]: float((item.get("fit_window") or (0.0, 0.0))[1]) for item in experiments}
    takes: dict[tuple[str, bool, str], dict[str, list[list[float]]]] = {}
    for row in _residuals(run):
        series = takes.setdefault((row["use"], bool(row["angle_rad"]), row["experiment"]), {})
        values = [float(row[key]) for key in ("time_s", "dx_m", "dy_m", "dz_m")]
        values[0] -= seen.get(row["experiment"], 0.0)
        series.setdefault(row["marker"], []).append(values)
    out = {}
    for kind in sorted({of_directions for _, of_directions, _ in takes}):
        uses = {use for use, own, _ in takes if own == kind}
        use = "validate" if "validate" in uses else "fit"
        chosen = [_together(series) for (other, own, _), series in takes.items() if (other, own) == (use, kind)]
        out[kind] = discrepancy(chosen, predicted=use == "validate")
    return out


def seen_by(start: RunFolder) -> float:
    """Return until when the fit of a start has seen the motion [s]; 0 where it keeps no residuals."""
    rows = _residuals(start) if start.residuals.is_file() else []
    return max((float(row["time_s"]) for row in rows), default=0.0)


def _residuals(run: RunFolder) -> list[dict[str, str]]:
    with run.residuals.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _together(series: dict[str, list[list[float]]]) -> tuple[FloatArray, FloatArray]:
    """Return times (nf,) and residuals (nf, 3 nm) of a take, NaN where a marker was not seen."""
    times = np.unique([row[0] for rows in series.values() for row in rows])
    out = np.full((times.size, 3 * len(series)), np.nan)
    for j, rows in enumerate(series.values()):
        table = np.array(rows)
        out[np.searchsorted(times, table[:, 0]), 3 * j : 3 * j + 3] = table[:, 1:]
    return times, out


def numbers_for(
    built: BuiltScene, run: RunFolder, paths: tuple[str, ...] = (), start: RunFolder | None = None
) -> Numbers:
    """Return the numbers that a scene takes of a fit, of another fit of its own start, and of its own priors.

    Parameters
    ----------
    built : scene of the other motion. A `prior` of its objective says what is known of a number that no fit gives
    run : folder of the fit
    paths : numbers that are wanted, see `carried`
    start : folder of a fit of where this motion starts, such as of its first moments

    Raises
    ------
    InputError
        If a folder has no fit, or a number is not among it; if the second has no start, or those of several takes.
    """
    result = fit_of(run)
    chosen = carried(result, paths)
    require_same_laws(run, built.scene, chosen)
    sources = [_of_fit(result, run, chosen)]
    if start is not None:
        begun = fit_of(start)
        why = of_one_motion(begun["parameters"])
        taken = {
            label: entry for label, entry in begun["parameters"].items()
            if label not in chosen and label in why and roles_of_label(label) & {Role.STATE, Role.RECORDING}
        }  # fmt: skip
        if not taken or len({label.partition("[")[0].partition("@")[2] for label in taken}) > 1:
            raise InputError(
                "no start of one motion in this fit", file=start.path, found=", ".join(begun["parameters"]),
                expected="a fit of one take with a pose, a velocity, values of joints, or the clock of its recording",
            )  # fmt: skip
        sources.append(_of_fit(begun, start, taken))
    sources.append(_of_priors(built, [label for part in sources for label in part.labels]))
    left = of_one_motion(label for label in result["parameters"] if label not in chosen)
    return Numbers(
        tuple(label for item in sources for label in item.labels),
        tuple(part for item in sources for part in item.parts),
        {label: text for item in sources for label, text in item.sources.items()},
        {label: text for item in sources for label, text in item.held.items()},
        left,
    )


def _of_priors(built: BuiltScene, known: list[str]) -> Numbers:
    """Return what the scene's own priors say of numbers that no fit gives: how far off the scene's value may be."""
    labels: list[str] = []
    rows: list[tuple[float, float, float, float]] = []
    priors = [item for item in built.scene.objective if isinstance(item, PriorObjectiveSpec)]
    for item in built.scene.parameters if priors else ():
        name, index = "+".join(item.all_paths()), built.numbers.resolve(item.all_paths()[0])[0]
        limits = [built.numbers.limits(path) for path in item.all_paths()]
        item = item.model_copy(update={"transform": "linear"})  # as it is drawn
        for prior in priors:
            if prior.parameter.partition("@")[0] not in (name, *item.all_paths()):
                continue
            for k in item.components or range(index.size):
                label = f"{name}[{k}]" if index.size > 1 else name
                if label not in known and label not in labels:
                    value = built.numbers.values[[index[k]]]
                    labels.append(label)
                    rows.append((float(value[0]), prior.sigma, *bounds_of(item, limits, value)))
    n = len(labels)
    values, sigmas, lower, upper = np.array(rows).reshape(n, 4).T
    lower = np.where(lower >= 0.0, np.maximum(lower, LEAST * values), lower)
    part = Uncertain(
        values, (Linear(),) * n, lower, upper, np.diag(sigmas**2),
        np.zeros((0, n)), np.full((n, 2), np.nan), np.zeros((0, n)),
    )  # fmt: skip
    return Numbers(tuple(labels), (part,), dict.fromkeys(labels, "a prior of the scene"), {}, {})


def _of_fit(result: dict[str, Any], run: RunFolder, chosen: dict[str, dict[str, Any]]) -> Numbers:
    """Return some numbers of a fit with their errors as the folder keeps them, in this order of preference.

    A bootstrap's replicates; intervals of profiles; the covariance.
    """
    labels = list(chosen)
    covariance, shifts, blank = _covariance(result, labels)
    between = _between(chosen)
    shifts = np.concatenate([shifts, np.diag(between)[between > 0.0]])
    ends = np.full((len(labels), 2), np.nan)
    known = result.get("uncertainty") or {}
    replicates = _columns(known.get("bootstrap") or {}, "replicates", labels, np.nan)
    sources: dict[str, str] = {}
    held: dict[str, str] = {}
    for k, (label, entry) in enumerate(chosen.items()):
        given = entry.get("interval_lower"), entry.get("interval_upper")
        if replicates.size and np.isfinite(replicates[:, k]).all():
            sources[label] = f"the bootstrap over {known['bootstrap'].get('over', 'blocks')}"
        elif entry.get("interval_by") == "profile likelihood" and None not in given:
            sources[label], ends[k] = "the profile likelihood", given
        elif label not in blank:
            sources[label] = "the covariance"
        else:
            held[label] = "on a bound of the fit" if entry.get("at_bound") else "without an error in the fit"
        if between[k] > 0.0 and label in sources:
            sources[label] += " and from how takes differ"
    scales, errors = _scales(run), np.sqrt(np.diag(covariance))
    values = np.array([entry["value"] for entry in chosen.values()], dtype=float)
    transforms = [scales.get(label.partition("[")[0], Linear()) for label in labels]
    lower = _bounds(chosen, "lower", -np.inf)
    for k, label in enumerate(labels):
        scale = transforms[k]
        if label in sources and np.isnan(ends[k]).all() and scale_for(scale, values[k], errors[k]) != scale:
            # One step of Gauss-Newton, which a replicate is, is taken in the number itself then.
            at = scale.inverse(values[[k]])
            replicates[:, k] = values[k] + scale.slope(at) * (scale.inverse(replicates[:, k]) - at)
            transforms[k], lower[k] = Linear(), max(lower[k], LEAST * values[k])
            sources[label] += ", in own units and above zero as the error exceeds the value"
    part = Uncertain(
        values, tuple(transforms), lower, _bounds(chosen, "upper", np.inf),
        covariance, shifts, ends, replicates,
        np.array([entry.get("freedom") or np.inf for entry in chosen.values()]),
    )  # fmt: skip
    return Numbers(tuple(labels), (part,), sources, held, {})


def _between(chosen: dict[str, dict[str, Any]]) -> FloatArray:
    """Return by how much each number differs in another take (n,), one standard deviation; 0 where takes do not tell.

    What a take asks for is one step of Gauss-Newton away, which is believed where it is small beside the number.
    """
    known = [(entry.get("between_takes") or 0.0, abs(entry["value"])) for entry in chosen.values()]
    return np.array([size if size <= BELIEVED * value else 0.0 for size, value in known])


def _bounds(chosen: dict[str, dict[str, Any]], key: str, none: float) -> FloatArray:
    return np.array([none if entry.get(key) is None else entry[key] for entry in chosen.values()], dtype=float)


def _scales(run: RunFolder) -> dict[str, Any]:
    """Return the transforms of the parameters of a fit, by their names in its result."""
    out = {}
    for item in run.known(SCENE).get("parameters") or []:
        name = "+".join(item.get("paths") or [item.get("path") or ""])
        suffix = f"@{item['experiment']}" if item.get("experiment") else ""
        out[name + suffix] = TRANSFORMS[item.get("transform", "linear")]
    return out


def _columns(kept: dict[str, Any], key: str, labels: list[str], missing: float) -> FloatArray:
    """Return a table that a result keeps (m, n), its columns by these labels."""
    names, rows = kept.get("labels") or [], kept.get(key) or []
    values = np.array(rows, dtype=float).reshape(len(rows), len(names))
    out = np.full((len(rows), len(labels)), missing)
    for k, label in enumerate(labels):
        if label in names:
            out[:, k] = values[:, names.index(label)]
    return out


def _covariance(result: dict[str, Any], labels: list[str]) -> tuple[FloatArray, FloatArray, list[str]]:
    """Return the covariance of numbers of a fit (n, n), what moves them together (k, n), and which have none."""
    known = result.get("uncertainty") or {}
    kept = known.get("correlation") or {}
    by_label = _columns(kept, "matrix", labels, 0.0).T.tolist()
    together = np.nan_to_num(_columns(kept | {"matrix": by_label}, "matrix", labels, 0.0))
    blank = []
    sizes, steps = np.zeros(len(labels)), np.zeros(len(labels))
    for k, label in enumerate(labels):
        entry = result["parameters"][label]
        errors = entry.get("errors") or {}
        scatter = [value for key in ("noise", "correlated", "takes") if (value := errors.get(key)) is not None]
        if not scatter:
            blank.append(label)
            continue
        sizes[k], steps[k] = max(scatter), errors.get("discretisation") or 0.0
    np.fill_diagonal(together, 1.0)
    covariance = together * sizes[:, None] * sizes
    shifts = _columns(known.get("shifts") or {}, "vectors", labels, 0.0)
    shifts = np.where([label in blank for label in labels], 0.0, shifts)
    # A folder of an older version has no shifts: there each number is off for itself.
    alone = np.zeros(len(labels)) if len(shifts) else steps**2
    return covariance + np.diag(alone), shifts, blank
