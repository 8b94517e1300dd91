"""From a scene file to a valid `SceneSpec`: read, resolve paths, validate, check across sections.

Whatever is wrong ends in one `InputError` that names the file and the JSON path of (at most) the first few problems.
"""

import copy
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from add.errors import InputError, naming
from add.machine.files import is_text, nodes, read_text, require_plain_json, require_regular
from add.scene.read.checks import check_world, repeated
from add.scene.read.parameter_checks import OWN_OF_CLOUDS, check_design, check_phase_overrides, expanded, of_cloud
from add.scene.read.paths import entries, explain_missing, nearest, path_slots, plain, set_value
from add.scene.read.problems import Problem, from_pydantic, one_of, raise_problems, shown
from add.scene.read.recorded_starts import fill_in_starts
from add.scene.spec.links import NONE_READ, Robots, add_static_shapes, hand_over
from add.scene.spec.scene import SCHEMA, SceneSpec
from add.typing import SCENE, require_kind

#: A scene: the spec itself, or a subclass of it.
S = TypeVar("S", bound=SceneSpec)
Settings = Mapping[str, float | str | None]

KNOWN_SCHEMAS = (SCHEMA,)
#: Size and number of entries from which on a file is no scene; and entries that experiments and phases may make of it.
MOST_BYTES, MOST_ENTRIES, MOST_REPEATED = 2**26, 1_000_000, 1_000_000
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


def read_scene(path: str | os.PathLike[str], kind: type[S]) -> S:
    """Read and check a scene file (UTF-8 JSON); the scene is a `kind`."""
    require_kind(path, (str, os.PathLike), "scene", "the path of a file; of a dictionary: add.scene_from_dict(raw)")
    source = Path(path)
    return _scene(_parse(_read(source), source), source, source.absolute().parent, kind)


def check_scene(
    raw: Mapping[str, Any], folder: str | os.PathLike[str] | None, kind: type[S], robots: Robots = NONE_READ
) -> S:
    """Check a scene given as a dictionary; relative paths count from `folder` (default: the working directory)."""
    require_kind(raw, Mapping, "scene", "a dictionary; of a file: add.load_scene(path)")
    require_plain_json(raw, "scene", most=MOST_ENTRIES)
    return _scene(plain(raw), None, Path(folder if folder is not None else ".").absolute(), kind, robots)


def from_source(scene: S, source: Path | None) -> S:
    """Return a scene as if it had been read from a file."""
    return _of_kind(type(scene), scene, scene.raw, source)


def apply_overrides(scene: S, overrides: Mapping[str, Any]) -> S:
    """The scene with the values at some paths replaced, checked again; a path has to exist in `scene.full()`."""
    require_kind(scene, SceneSpec, "scene", SCENE)
    require_kind(overrides, Mapping, "overrides", "a dictionary: path -> value")
    raw = copy.deepcopy(scene.raw)
    for path, value in overrides.items():
        require_plain_json(value, scene.source or "scene", path, most=MOST_ENTRIES)
    raise_problems(_override(raw, scene.full(), plain(overrides), "overrides"), scene.source)
    return _scene(raw, scene.source, _folder(scene.source), type(scene))


def with_settings(scene: S, numbers: Settings, further: Mapping[int, Settings] = MappingProxyType({})) -> S:
    """Return the scene with numbers at open paths, unchecked; ``further``: of experiments, overrides beside theirs."""
    raw, out = copy.deepcopy(scene.raw), scene
    for path, value in numbers.items():
        set_value(raw, path, value)
        out = _replaced(out, path.split("."), value)
    items = list(scene.experiments)
    for k, overrides in further.items():
        raw["experiments"][k].setdefault("overrides", {}).update(overrides)
        items[k] = items[k].model_copy(update={"overrides": {**items[k].overrides, **overrides}})
    out = out.model_copy(update={"experiments": tuple(items)})
    out._raw = raw
    return out


def _replaced(spec: Any, keys: list[str], value: float | str | None) -> Any:
    key, *rest = keys
    return spec.model_copy(update={key: _replaced(getattr(spec, key), rest, value) if rest else value})


def experiment_scenes(scene: S) -> dict[str, S]:
    """Experiment name -> the scene it runs; {"scene": scene} for a scene without experiments.

    The scenes have the experiment's overrides and recording. Parameters, priors and phases stay with `scene`.
    """
    if not scene.experiments:
        return {"scene": scene}
    full = scene.full()
    names = [item.name for item in scene.experiments]
    raws = [_experiment_raw(scene.raw, full, k)[0] for k in range(len(names))]
    folder = _folder(scene.source)
    return {name: _scene(raw, scene.source, folder, type(scene)) for name, raw in zip(names, raws, strict=True)}


def _folder(source: Path | None) -> Path:
    return source.absolute().parent if source is not None else Path.cwd()


# --- file -> JSON ------------------------------------------------------------------------------------------------


def _read(source: Path) -> str:
    if not is_text(str(source.absolute())):
        raise InputError("the name of the file is no text", file=ascii(str(source)))
    return read_text(source, most=MOST_BYTES, expected="a scene file (JSON)")


class _Duplicates(dict[str, Any]):
    """An object of the file in which keys appear twice."""

    twice: tuple[str, ...] = ()


@dataclass(frozen=True)
class _NotJson:
    """A literal that Python's parser takes and JSON does not have."""

    literal: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) == len(keys):
        return dict(pairs)
    marked = _Duplicates(pairs)
    marked.twice = tuple(sorted(key for key, count in Counter(keys).items() if count > 1))
    return marked


def _parse(text: str, source: Path) -> dict[str, Any]:
    if not text.strip():
        raise InputError("the file is empty", file=source, expected="a scene: an object {...}")
    if text.lstrip().startswith("<"):
        raise InputError(
            "an XML file is no scene", file=source,
            expected='a scene; a robot\'s file stands in one as {"type": "articulated", "model": FILE}, and '
            "`add info FILE` shows it",
        )  # fmt: skip
    try:
        raw = json.loads(text, object_pairs_hook=_object, parse_constant=_NotJson)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON: {error.msg}", file=source, place=f"line {error.lineno} column {error.colno}"
        ) from None
    except RecursionError:
        raise InputError("not a scene: nested too deeply", file=source) from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"not JSON: {error}", file=source) from None
    require_plain_json(raw, source, most=MOST_ENTRIES)
    raise_problems(list(_marked(raw, "")), source)
    if not isinstance(raw, dict):
        raise InputError("not a scene", file=source, found=shown(raw), expected="an object {...} at the top level")
    return raw


def _marked(node: Any, place: str) -> Iterator[Problem]:
    if isinstance(node, _NotJson):
        yield Problem(place or "scene", "not a finite number", node.literal, "JSON has no such number")
    if isinstance(node, _Duplicates):
        for key in node.twice:
            yield Problem(f"{place}.{key}".lstrip("."), "this key appears twice in its object", None, "one of them")
    for key, item in entries(node):
        yield from _marked(item, f"{place}.{key}".lstrip("."))


# --- JSON -> Scene -----------------------------------------------------------------------------------------------


def _scene(raw: dict[str, Any], source: Path | None, folder: Path, kind: type[S], robots: Robots = NONE_READ) -> S:
    """Resolve, validate and check; `raw` is changed in place (paths become absolute)."""
    _check_version(raw, source)
    written: dict[str, str] = {}
    problems = list(_resolve(raw, folder, written))
    raise_problems(problems, source)
    try:
        spec = SceneSpec.model_validate(raw)
    except ValidationError as error:
        raise_problems(from_pydantic(error), source)
        raise  # not reached
    raise_problems(list(_missing_files(raw, written)), source)
    with naming(file=source):
        hand_over(spec, robots)
        add_static_shapes(spec)
        raise_problems(check_world(spec), source)
        spec = expanded(raw, fill_in_starts(raw, spec))
    scene = _of_kind(kind, spec, raw, source)
    _require_few_repeats(scene)
    raise_problems(_check_experiments(scene), source)
    return scene


def _of_kind(kind: type[S], spec: SceneSpec, raw: dict[str, Any], source: Path | None) -> S:
    """Return a valid spec as a `kind`, which may be a subclass with methods; nothing is validated again."""
    scene = kind.__new__(kind)
    state = spec.__getstate__()
    scene.__setstate__({**state, "__pydantic_private__": {"_raw": raw, "_source": source}})
    return scene


def _check_version(raw: dict[str, Any], source: Path | None) -> None:
    known = one_of(KNOWN_SCHEMAS)
    if "schema" not in raw:
        close = next((key for key in raw if nearest(key, ["schema"]) and key != "$schema"), None)
        near = f"; did you mean 'schema' where it says '{close}'?" if close else ""
        raise InputError(f"the version of the format is missing{near}", file=source, place="schema", expected=known)
    if raw["schema"] not in KNOWN_SCHEMAS:
        raise InputError(
            "this version of the format is not known here; known are " + ", ".join(KNOWN_SCHEMAS),
            file=source,
            place="schema",
            found=shown(raw["schema"]),
            expected=known,
        )


def _resolve(raw: dict[str, Any], folder: Path, written: dict[str, str]) -> Iterator[Problem]:
    """Fill in environment variables and make paths absolute, in place; keep how a path with a variable was written.

    A path that begins with a variable counts from the working directory if its value does not say from where: that is
    where the variable was set, as the user thinks of it; every other relative path counts from the scene's folder.
    """
    for node, key, at in path_slots(raw):
        unset = [name for name in _VARIABLE.findall(node[key]) if not os.environ.get(name)]
        for name in unset:
            yield Problem(at, f"the environment variable {name} is not set", shown(node[key]), "a folder or file in it")
        if not unset and node[key]:
            text = _VARIABLE.sub(lambda match: os.environ[match.group(1)], node[key])
            base = Path.cwd() if _VARIABLE.match(node[key]) else folder
            path = str(Path(os.path.normpath(base / text)))
            if "${" in path:  # it would be filled in once more, when the scene is read as it was run
                yield Problem(at, "the path to this file has '${' in it, which stands for a variable", shown(node[key]))
            elif not is_text(path):
                yield Problem(at, "the path to this file is no text", shown(node[key]))
            elif text != node[key]:
                written[at] = node[key]
            node[key] = path


def _missing_files(raw: dict[str, Any], written: Mapping[str, str]) -> Iterator[Problem]:
    """Files that are not there, as they are written in the scene: what is in a variable may be nobody's business."""
    for node, key, at in path_slots({k: v for k, v in raw.items() if k != "experiments"}):
        path = node[key]
        found = shown(written[at]) if at in written else shown(path) if len(path) < 50 else f'"{path}"'
        try:
            require_regular(path)
        except IsADirectoryError:
            if node.get("type") == "cloud" or ".packages." in at:  # a sequence of files; the folder of a package
                continue
            yield Problem(at, "this is a folder, not a file", found)
        except InputError as error:
            yield Problem(at, f"this is {error.found}, not a file", found)
        except (OSError, ValueError):
            near = None if at in written else nearest(Path(path).name, _beside(Path(path)))
            yield Problem(at, "there is no such file", found, None, near)


def _beside(path: Path) -> list[str]:
    """Return the files of a folder, as far as it can be read."""
    try:
        with os.scandir(path.parent) as entries:
            return [entry.name for entry, _ in zip(entries, range(1000), strict=False) if entry.is_file()]
    except (OSError, ValueError):
        return []


# --- experiments -------------------------------------------------------------------------------------------------


def _require_few_repeats(scene: SceneSpec) -> None:
    """Refuse experiments and phases, each a scene of its own to be checked, that would take hours to look at."""
    repeats = len(scene.experiments) + sum(bool(phase.overrides) for phase in scene.optimizer.phases)
    if repeats < 2:
        return
    entries = sum(1 for _ in nodes({key: value for key, value in scene.raw.items() if key != "experiments"}))
    if repeats * entries > MOST_REPEATED:
        raise InputError(
            "too many experiments for a scene of this size", file=scene.source, place="experiments",
            found=f"{repeats} experiments and phases of {entries} entries",
            expected=f"at most {MOST_REPEATED:.0e} entries together",
        )  # fmt: skip


def _override(raw: dict[str, Any], full: dict[str, Any], overrides: Mapping[str, Any], place: str) -> list[Problem]:
    """Write the overrides into `raw`; the problems are paths that do not exist."""
    problems = []
    for path, value in overrides.items():
        message, close = explain_missing(full, path)
        if message == "is there":
            set_value(raw, path, value, full)
        else:
            problems.append(Problem(f"{place}.{path}", f"no such path: {message}", f"'{path}'", None, close))
    return problems


def _changed(scene: SceneSpec, raw: dict[str, Any], at: str, how: str) -> tuple[SceneSpec | None, list[Problem]]:
    """Return the scene that a changed one is, or what is wrong with it."""
    try:
        return _scene(raw, scene.source, _folder(scene.source), SceneSpec), []
    except InputError as error:
        return None, [Problem(at, f"{how}, {error.place}: {error.message.splitlines()[0]}")]


def _check_phases(scene: SceneSpec) -> list[Problem]:
    """The scene is a valid one with the overrides of each phase."""
    spec, full = scene, scene.full()
    problems: list[Problem] = []
    for k, phase in enumerate(spec.optimizer.phases):
        wrong = list(check_phase_overrides(spec, full, k))
        if phase.overrides and not wrong:
            raw = _shared_raw(scene.raw)
            _override(raw, full, phase.overrides, "")
            _, wrong = _changed(scene, raw, f"optimizer.phases.{k}.overrides", "with these")
        problems += wrong
    return problems


def _shared_raw(raw: dict[str, Any]) -> dict[str, Any]:
    """The part of the scene that a run needs: no experiments, no parameters, no checks."""
    left_out = ("experiments", "parameters", "check", "expect")
    result = {key: copy.deepcopy(value) for key, value in raw.items() if key not in left_out}
    if "optimizer" in result:
        result["optimizer"].pop("phases", None)
    return result


def _experiment_raw(raw: dict[str, Any], full: dict[str, Any], k: int) -> tuple[dict[str, Any], list[Problem]]:
    item = raw["experiments"][k]
    result = _shared_raw(raw)
    problems = []
    for path in item.get("overrides", {}):
        section = path.split(".")[0]
        shared = ("schema", "experiments", "parameters", "optimizer", "uncertainty", "objective", "expect")
        if section in shared and not of_cloud(full, path, OWN_OF_CLOUDS):
            at = f"experiments.{k}.overrides.{path}"
            problems.append(Problem(at, f"an experiment cannot override '{section}': all share it", f"'{path}'"))
        if section == "recording" and item.get("recording") is not None:
            said = "the experiment has a recording of its own, to which this does not apply"
            problems.append(Problem(f"experiments.{k}.overrides.{path}", said, f"'{path}'", f"experiments.{k}.{path}"))
    if not problems:
        problems = _override(result, full, item.get("overrides", {}), f"experiments.{k}.overrides")
    if item.get("recording") is not None:
        result["recording"] = copy.deepcopy(item["recording"])
    return result, problems


def _check_experiments(scene: SceneSpec) -> list[Problem]:
    """Every experiment is a valid scene of its own, and the parameters exist in those they belong to."""
    spec, full = scene, scene.full()
    names = [item.name for item in spec.experiments]
    problems = [
        Problem(f"experiments.{k}.name", f"the name '{names[k]}' appears twice", None, "different names")
        for k in repeated(names)
    ]
    if problems:
        return problems
    wholes: dict[str, dict[str, Any]] = {}
    for k, name in enumerate(names):
        raw, wrong = _experiment_raw(scene.raw, full, k)
        if not wrong:
            changed, wrong = _changed(scene, raw, f"experiments.{k}", "with its overrides")
            wholes |= {name: changed.full()} if changed is not None else {}
        problems += wrong
    return problems or check_design(spec, full, wholes) or _check_phases(scene)
