"""`make wheel`: a wheel with compiled kernels inside, so that a first run of an installed `add` compiles nothing.

Kernels are kept beside the source (`add/kernels/caching.py`) and valid for their content, the versions of Python and
numba, and the processor. Those of the wheel are compiled for `x86-64-v3`, which all of these have since about 2015
(AVX2, FMA): a marker in the wheel lets `add` compile for that, too, where the machine has it. Elsewhere, and with
another numba, they are compiled as ever.

The kernels are those that the scenes of this checkout load: `add warm`, then each scene is run, and its gradient taken,
twice; what the second round takes from the disk goes into the wheel.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
#: What `add.kernels.caching` looks for.
MARKER = Path("add/kernels/portable")


def exercise() -> None:
    """Run every scene by its command, and backwards and forwards along it; what fails here is not this script's."""
    import add
    from add.adjoint import Cotangents, pullback
    from add.commands.cli import main as command
    from add.compiled.available import make_available

    make_available()
    with tempfile.TemporaryDirectory() as folder:
        for scene in sorted((ROOT / "scenes").glob("*.json")):
            try:
                command(["simulate", "--quiet", "--force", "-o", f"{folder}/{scene.stem}", str(scene)])
            except SystemExit as end:
                if isinstance(end.code, int) and end.code > 100:  # stopped by a person
                    raise
            with suppress(add.AddError):
                simulation = add.load_scene(scene).build().simulation
                trajectory = simulation.run()
                ones = np.ones_like(trajectory.q)
                pullback(simulation, trajectory, simulation.theta, Cotangents(ones, ones))


def run(site: Path, *words: str, **variables: str) -> str:
    """Run Python on the unpacked wheel and return what it prints."""
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    environment = os.environ | one | {"PYTHONPATH": str(site), "MPLBACKEND": "Agg"} | variables
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def fill(site: Path) -> None:
    """Compile the kernels of an unpacked wheel, and leave those that runs load."""
    (site / MARKER).touch()
    itself = str(Path(__file__).resolve())
    run(site, "-m", "add", "warm")
    run(site, itself, "--exercise")
    said = run(site, itself, "--exercise", NUMBA_DEBUG_CACHE="1")
    data = {Path(path) for path in re.findall(r"\[cache\] data loaded from '(.*)'", said)}
    kept = data | {path.parent / re.sub(r"\.\d+\.nbc$", ".nbi", path.name) for path in data}
    for folder in site.rglob("__pycache__"):
        for path in folder.iterdir():
            if path not in kept:
                path.unlink()


def main() -> None:
    """Parse the arguments; build the wheel and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--exercise", action="store_true", help="run the scenes: what this script calls itself for")
    options = parser.parse_args()
    if options.exercise:
        exercise()
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source"  # building writes into it
        source.mkdir()
        for item in ("add", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
            whole = ROOT / item
            if whole.is_dir():
                shutil.copytree(whole, source / item, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(whole, source)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", name, str(source)]
        subprocess.run(pip, check=True)
        shutil.rmtree(source)
        (wheel,) = folder.glob("*.whl")
        wheels = [sys.executable, "-m", "wheel"]
        subprocess.run([*wheels, "unpack", "--dest", name, str(wheel)], check=True, stdout=subprocess.DEVNULL)
        wheel.unlink()
        (site,) = (path for path in folder.iterdir() if path.is_dir())
        fill(site)
        subprocess.run([*wheels, "pack", "--dest-dir", name, str(site)], check=True, stdout=subprocess.DEVNULL)
        (wheel,) = folder.glob("*.whl")
        version = f"cp{sys.version_info.major}{sys.version_info.minor}"
        platform = re.sub(r"\W", "_", sysconfig.get_platform())
        tags = ["--python-tag", version, "--abi-tag", version, "--platform-tag", platform, "--remove"]
        subprocess.run([*wheels, "tags", *tags, str(wheel)], check=True, stdout=subprocess.DEVNULL)
        (wheel,) = folder.glob("*.whl")
        options.output.mkdir(exist_ok=True)
        print(shutil.copy(wheel, options.output))


if __name__ == "__main__":
    main()
