"""Seeded faults: each line of `MUTATIONS` breaks the program in one place, and the quick tests must notice.

    python -m scripts.mutations [--only NAME ...] [--workers 2] [--whole]

Each fault is written into a copy of the repository that shares the compiled functions of this one, so that only what
the changed line reaches is compiled anew (`add/kernels/stamps.py`). The tests that stand nearest run first, and stop at
the first failure; with ``--whole`` survivors meet all quick tests, which takes a quarter of an hour each. The exit code
is 1 if a fault survives.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


#: Seconds that tests may take until one fails: faults that send a solver astray would take forever.
LIMIT = 600.0
#: It asks that what a fault changes stands where the list says.
PLACES = "tests/unit/test_architecture.py::test_places_of_seeded_faults_are_there"
UNDECIDED = f"UNDECIDED after {LIMIT:.0f} s"


class Mutation(NamedTuple):
    """One fault.

    Attributes
    ----------
    file : below add/, without its ending; the fault's name
    old, new : part of one line, and what stands there instead
    tests : words that the paths of the nearest tests contain
    """

    file: str
    old: str
    new: str
    tests: str


MUTATIONS = tuple(
    Mutation(*(cell.strip() for cell in line.split("|")))
    for line in (ROOT / "scripts" / "mutations.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
)


def copied(folder: Path) -> None:
    """Link the repository into a folder: compiled functions and files are replaced there, never written into."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    kept = [str(path.relative_to(ROOT)) for path in (ROOT / "add").rglob("*.nb[ic]")]
    for name in filter(None, names + kept):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(ROOT / name, folder / name)
    (folder.parent / "shared").symlink_to(ROOT.parent / "shared")


def with_fault(mutation: Mutation, folder: Path) -> None:
    """Write the fault."""
    path = folder / "add" / f"{mutation.file}.py"
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.file}: {text.count(mutation.old)} times {mutation.old!r}, expected once")
    path.unlink()
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")


def failed(folder: Path, paths: list[str]) -> str:
    """Run tests until one fails; return its name, or nothing."""
    environment = os.environ | {
        "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'tests'}", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    command += ["--deselect", PLACES, *paths]
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return UNDECIDED
    if run.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return found[1] if found else f"pytest: {run.returncode} {run.stderr[-200:]}"


def tried(mutation: Mutation, whole: bool) -> tuple[Mutation, str, float]:
    """Return what caught a fault, or nothing, and the seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=ROOT.parent, prefix=".mutation-") as place:
        folder = Path(place) / "checkout"
        folder.mkdir()
        copied(folder)
        with_fault(mutation, folder)
        everywhere = [str(path.relative_to(folder)) for path in sorted((folder / "tests").rglob("test_*.py"))]
        near = [path for word in mutation.tests.split() for path in everywhere if word in path]
        if not near:
            raise SystemExit(f"{mutation.file}: no tests at {mutation.tests!r}")
        caught = failed(folder, list(dict.fromkeys(near))) or (failed(folder, ["tests"]) if whole else "")
    return mutation, caught, time.monotonic() - began


def main() -> None:
    """Try the faults and say what caught each."""
    parser = argparse.ArgumentParser(description="Break the program in one place at a time; the tests must notice.")
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--whole", action="store_true", help="let survivors meet all quick tests")
    chosen = parser.parse_args()
    wanted = [one for one in MUTATIONS if not chosen.only or any(name in one.file for name in chosen.only)]
    survivors = 0
    with ThreadPoolExecutor(chosen.workers) as pool:
        for mutation, caught, seconds in pool.map(lambda one: tried(one, chosen.whole), wanted):
            survivors += caught in ("", UNDECIDED)
            print(f"{mutation.file:36} {seconds:5.0f} s  {caught or 'SURVIVES: ' + mutation.old}", flush=True)
    print(f"{len(wanted) - survivors} of {len(wanted)} caught")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()
