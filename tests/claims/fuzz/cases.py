"""Cases by seed: one damaged input each, what the program does with it, and what it may never do.

A case is refused with one error (exit code 2 or 3), or accepted; never a traceback, never longer than the limit, and
what an accepted scene gives is finite. One case again, with all that it says:
`PYTHONPATH=.:tests:tests/claims python -m fuzz [--runs] SEED`.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import random
import shutil
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzz import seeds
from fuzz.mutate import mutated_bytes, mutated_hdf5, mutated_json, replaced

import add.io.hdf5
import add.machine.files
import add.machine.foreign
import add.scene.build.sizes
from add.commands.cli import main
from add.errors import AddError, InputError
from add.io.meshes import read_mesh
from add.io.surfaces import read_surface
from add.io.trajectory_file import read_run
from add.mocap import read_angle_csv, read_csv, read_pose_csv
from add.scene import load_scene

#: Seconds that a case may take; of one that also runs a scene or draws pictures.
LIMIT, RUN_LIMIT = 15.0, 60.0
#: Memory that there is, as the program is told: no case should take all that the machine has [bytes].
MEMORY = 4e8
#: Steps of an accepted scene.
STEPS = 4

_AT_ONCE = ("msh", "vtk", "vtu", "inp", "mesh", "node", "ele")
_APART = ("tec", "f3grid", "mdpa", "off", "su2", "vol", "avs", "bdf", "h5m", "xdmf", "ugrid", "post")


class TooLong(BaseException):
    """The time of a case is up."""


@dataclass
class Outcome:
    """What a case came to: what was done to it, and why it failed, if it did."""

    seed: int
    kind: str
    said: str
    verdict: str
    failure: str = ""
    runs: bool = False

    def __str__(self) -> str:
        again = f"PYTHONPATH=.:tests:tests/claims .venv/bin/python -m fuzz {'--runs ' if self.runs else ''}{self.seed}"
        return f"seed {self.seed} ({self.kind}: {self.said}): {self.verdict}\n{self.failure}\nagain: {again}"


class Fuzz:
    """Inputs that are not damaged yet, in a folder.

    Parameters
    ----------
    folder : an empty one
    runs : whether accepted scenes are run, pictures drawn, and formats read that need a process of their own
    """

    def __init__(self, folder: Path, *, runs: bool = False) -> None:
        self.folder, self.runs = folder, runs
        self.good = folder / "good"
        self.good.mkdir()
        seeds.write_files(self.good)
        seeds.write_runs(self.good)
        self.scenes = seeds.scenes()
        self._write_meshes()

    def _write_meshes(self) -> None:
        import meshio

        mesh = meshio.read(self.good / "box.msh")
        with _quiet():
            for suffix in (*_AT_ONCE, *_APART):
                with contextlib.suppress(Exception, SystemExit):
                    meshio.write(self.good / f"mesh.{suffix}", mesh)
            meshio.write(self.good / "mesh.msh", mesh, file_format="gmsh", binary=True)

    def run(self, seed: int) -> Outcome:
        """Run one case."""
        rng = random.Random(seed)
        kinds: dict[str, tuple[float, Callable[[random.Random, Path], str]]] = {
            "scene": (55, self._scene), "scene bytes": (8, self._scene_bytes), "path": (4, self._path),
            "mesh": (10, self._mesh), "surface": (6, self._surface), "csv": (7, self._csv),
            "run folder": (10, self._run),
        }  # fmt: skip
        kind = rng.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        self.said = ""
        limit = RUN_LIMIT if self.runs else LIMIT
        try:
            with _limited(limit), _little_memory(), _quiet():
                verdict = kinds[kind][1](rng, work)
        except TooLong:
            return Outcome(seed, kind, self.said, f"longer than {limit:g} s", traceback.format_exc(limit=-4), self.runs)
        except (Exception, SystemExit):
            return Outcome(seed, kind, self.said, "a traceback", traceback.format_exc(limit=-12), self.runs)
        failed = verdict.startswith("FAILED")
        return Outcome(seed, kind, self.said, verdict, verdict if failed else "", self.runs)

    # --- kinds -------------------------------------------------------------------------------------------------------

    def _scene(self, rng: random.Random, work: Path) -> str:
        raw, said = mutated_json(rng, self.scenes[rng.choice(list(self.scenes))])
        self.said = ", ".join(said)
        return self._checked(rng, work, json.dumps(raw).encode())

    def _scene_bytes(self, rng: random.Random, work: Path) -> str:
        text = json.dumps(self.scenes[rng.choice(list(self.scenes))], indent=1).encode()
        content, self.said = mutated_bytes(rng, text)
        return self._checked(rng, work, content)

    def _path(self, rng: random.Random, work: Path) -> str:
        name = rng.choice(("scene.json", "box.msh", "markers.csv", "cube.stl", "pipe"))
        raw = self.scenes[rng.choice(("soft", "rigid"))]
        self._beside(work)
        (work / "scene.json").write_text(json.dumps(raw))
        if name == "pipe":
            path = rng.choice(("/dev/zero", "/dev/stdin", str(work), "no such", "x" * 3000, "\udcff", "/proc/self/mem"))
            self.said = ascii(path[:40])
            return _command(["check", path, "-q"])
        self.said = f"{name}: {replaced(rng, str(work / name))}"
        return _command(["check", str(work / "scene.json"), "-q"])

    def _mesh(self, rng: random.Random, work: Path) -> str:
        suffix = rng.choice(_APART) if self.runs and rng.random() < 0.1 else rng.choice(_AT_ONCE)
        for other in ("node", "ele"):
            shutil.copy(self.good / f"mesh.{other}", work / f"mesh.{other}")
        return self._read(rng, work, f"mesh.{suffix}", read_mesh)

    def _surface(self, rng: random.Random, work: Path) -> str:
        return self._read(rng, work, f"cube.{rng.choice(('stl', 'obj', 'ply', 'off'))}", read_surface)

    def _csv(self, rng: random.Random, work: Path) -> str:
        name, reader = rng.choice((("markers", read_csv), ("pose", read_pose_csv), ("angle", read_angle_csv)))
        return self._read(rng, work, f"{name}.csv", reader)

    def _run(self, rng: random.Random, work: Path) -> str:
        name = rng.choice(("simulate", "optimize", "sweep", "sweep_cut"))
        run = work / name
        shutil.copytree(self.good / name, run)
        shutil.copy(self.good / "small.json", work / "small.json")
        outside = work / "outside"
        outside.mkdir()
        (outside / "a.msh").write_text("somebody else's")
        names = sorted(path.name for path in run.iterdir() if path.suffix in (".json", ".jsonl", ".h5"))
        target = run / rng.choice(names)
        kind = rng.choice(("json", "json", "bytes", "bytes", "replace", "hdf5", "hdf5", "link"))
        if kind == "link":
            (run / "meshes").symlink_to(outside)
            done = "meshes is a link"
        elif kind == "replace":
            done = replaced(rng, str(target))
        elif target.suffix == ".h5" and kind != "bytes":
            try:
                done = mutated_hdf5(rng, str(target))
            except (OSError, ValueError, RuntimeError, TypeError, KeyError):
                done = "as it was"
        elif kind == "bytes" or target.suffix == ".h5":
            content, done = mutated_bytes(rng, target.read_bytes())
            target.write_bytes(content)
        else:
            lines = target.read_text().splitlines() if target.suffix == ".jsonl" else [target.read_text()]
            i = rng.randrange(len(lines))
            raw, said = mutated_json(rng, json.loads(lines[i]))
            lines[i] = json.dumps(raw)
            target.write_text("\n".join([*lines, ""]))
            done = ", ".join(said)
        self.said = f"{name}/{target.name}: {done}"
        verdict = self._on_run(rng, work, run)
        if [path.name for path in outside.iterdir()] != ["a.msh"] or (
            outside / "a.msh"
        ).read_text() != "somebody else's":
            return "FAILED: a file outside of the run was touched"
        return verdict

    # --- what is done ------------------------------------------------------------------------------------------------

    def _on_run(self, rng: random.Random, work: Path, run: Path) -> str:
        verdicts = [_command(["info", str(run), "-q"]), _command(["info", str(run), "--json"])]
        with contextlib.suppress(AddError):
            read_run(run / "trajectory.h5")
        scene = str(work / "small.json")
        axis = ["--parameter", "bodies.box.velocity.0=-1:1:3", "--jobs", "1"]
        if run.name == "optimize":
            verdicts.append(_command(["optimize", scene, "-o", str(run), "--resume", "-q"]))
        elif run.name.startswith("sweep"):
            verdicts.append(_command(["sweep", scene, "-o", str(run), "-q", *axis]))
        else:
            verdicts.append(_command(["simulate", scene, "-o", str(run), "--force", "-q"]))
        if self.runs and rng.random() < 0.5:
            verdicts.append(_command(["plot", str(run), "-q"]))
        return next((verdict for verdict in verdicts if verdict.startswith("FAILED")), verdicts[-1])

    def _beside(self, work: Path) -> None:
        for name in ("box.msh", "markers.csv", "cube.stl"):
            shutil.copy(self.good / name, work / name)
        os.mkfifo(work / "pipe")

    def _checked(self, rng: random.Random, work: Path, content: bytes) -> str:
        self._beside(work)
        path = work / "scene.json"
        path.write_bytes(content)
        verdict = _command(["check", str(path), "-q"])
        if verdict != "accepted" or not self.runs:
            return verdict
        try:
            built = load_scene(path).build()
            trajectory = built.run(n_steps=min(STEPS, built.simulation.n_steps))
        except AddError as error:
            return _one_line(str(error), "ran into")
        finite = np.isfinite(trajectory.q).all() and np.isfinite(trajectory.v).all()
        return "ran" if finite else "FAILED: a run that is not finite"

    def _read(self, rng: random.Random, work: Path, name: str, reader: Callable[[Path], object]) -> str:
        content, done = mutated_bytes(rng, (self.good / name).read_bytes())
        (work / name).write_bytes(content)
        self.said = f"{name}: {done}"
        try:
            reader(work / name)
        except InputError as error:
            return _one_line(str(error), "refused")
        return "accepted"


def _command(arguments: list[str]) -> str:
    """Run a command of the program; say whether it did, or refused with one error."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
    except SystemExit as end:
        code = end.code
    errors = [line for line in err.getvalue().splitlines() if line.startswith("error: ")]
    if code in (0, None) and not errors:
        return "accepted"
    if code in (2, 3) and len(errors) == 1 and len(errors[0]) > 10:
        return _one_line(errors[0], "refused")
    return f"FAILED: exit code {code}, {len(errors)} errors: {err.getvalue()[:500]}"


def _one_line(text: str, verdict: str) -> str:
    if len(text) > 5000:
        return f"FAILED: an error of {len(text)} letters: {text[:300]}"
    home = os.environ.get("HOME", "")
    if len(home) > 1 and f'"{home}"' in text:
        return f"FAILED: an environment variable in an error: {text[:300]}"
    return verdict


# --- the surroundings ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def up(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    known = [(module, module.available_memory) for module in (add.machine.files, add.io.hdf5, add.scene.build.sizes)]
    patience, add.machine.foreign.PATIENCE = add.machine.foreign.PATIENCE, 2.0
    for module, _ in known:
        module.available_memory = lambda: MEMORY
    try:
        yield
    finally:
        add.machine.foreign.PATIENCE = patience
        for module, function in known:
            module.available_memory = function


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what libraries print, and warnings, which are no errors to a user."""
    handlers, level = logging.root.handlers[:], logging.root.level
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.root.handlers[:], logging.root.level = handlers, level
