"""`python -m benchmarks [--small] [--only NAME ...]`: every figure of docs/benchmarks.md, in one run."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from add.compiled.available import available
from add.linalg import one_blas_thread
from benchmarks.articulated import articulated
from benchmarks.beside_mujoco import beside_mujoco
from benchmarks.cones import cones
from benchmarks.exactness import exactness
from benchmarks.factorization import back_ends
from benchmarks.gradients import gradients
from benchmarks.machine import ROOT, where
from benchmarks.page import page
from benchmarks.profiles import profiles
from benchmarks.scenes import published, table2
from benchmarks.sizes import sizes
from benchmarks.small import small
from benchmarks.targets import targets

SECTIONS: dict[str, Callable[[bool], object]] = {
    "exactness": exactness,
    "scenes": published,
    "table2": table2,
    "gradients": gradients,
    "sizes": sizes,
    "back_ends": back_ends,
    "profiles": profiles,
    "small": small,
    "articulated": articulated,
    "mujoco": beside_mujoco,
    "cones": cones,
}

RESULTS = ROOT / "benchmarks" / "results"


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true", help="few steps and small meshes, about a minute")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="NAME", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--output", type=Path, default=RESULTS / "latest.json", help="where all figures go")
    parser.add_argument(
        "--history",
        type=Path,
        help="where a line is added [default: results/history.jsonl for a whole run, nowhere for --small or --only]",
    )
    parser.add_argument("--page", type=Path, help="where to write the page, such as docs/benchmarks.md; needs all")
    parser.add_argument("--from", type=Path, dest="stored", help="take the figures from this file and measure nothing")
    arguments = parser.parse_args()
    if arguments.page and (arguments.only or arguments.small) and not arguments.stored:
        parser.error("a page needs a full run")
    if not arguments.stored and not available():
        parser.error("compiled steps are not there, and figures would be those of other ones: run `add warm`")
    if arguments.stored:
        result = json.loads(arguments.stored.read_text(encoding="utf-8"))
    else:
        result = measure(arguments.only or list(SECTIONS), arguments.small)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written: {arguments.output}")
        partial = arguments.small or (arguments.only is not None and set(arguments.only) != set(SECTIONS))
        history = arguments.history or (None if partial else RESULTS / "history.jsonl")
        if history is not None:
            _add_line(history, result)
            print(f"written: {history}")
    if arguments.page:
        arguments.page.write_text(page(result), encoding="utf-8")
        print(f"written: {arguments.page}")


def _add_line(history: Path, result: dict[str, object]) -> None:
    """Append a run's figures to the history; it is kept under version control, to be compared over months."""
    line = {key: result[key] for key in ("date", "commit", "changed_files", "small", "seconds", "machine")}
    line["figures"] = {target.name: target.found for target in targets(result)}
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def measure(names: list[str], small: bool) -> dict[str, object]:
    """Run some sections."""
    result = where() | {"small": small}
    begin = time.perf_counter()
    with one_blas_thread():
        for name in names:
            print(f"\n{name}")
            result[name] = SECTIONS[name](small)
    return result | {"seconds": time.perf_counter() - begin}


if __name__ == "__main__":
    main()
