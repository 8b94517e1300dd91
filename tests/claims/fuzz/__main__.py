"""Many cases, or some again: `PYTHONPATH=.:tests:tests/claims python -m fuzz [--runs] SEED [LAST]`."""

from __future__ import annotations

import collections
import faulthandler
import sys
import tempfile
import time
from pathlib import Path

from fuzz.cases import RUN_LIMIT, Fuzz

arguments = [word for word in sys.argv[1:] if word != "--runs"]
first, last = int(arguments[0]), int(arguments[-1])
with tempfile.TemporaryDirectory() as folder:
    fuzz = Fuzz(Path(folder), runs="--runs" in sys.argv)
    counts: collections.Counter[str] = collections.Counter()
    begin, failed = time.monotonic(), 0
    for seed in range(first, last + 1):
        faulthandler.dump_traceback_later(3 * RUN_LIMIT, exit=True)  # for what no signal reaches
        outcome = fuzz.run(seed)
        counts[f"{outcome.kind}: {outcome.verdict[:40]}"] += 1
        if outcome.failure or first == last:
            failed += bool(outcome.failure)
            print(outcome, flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{last - first + 1} cases, {failed} failed, {time.monotonic() - begin:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
sys.exit(bool(failed))
