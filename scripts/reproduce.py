"""Reproduce the figures and tables of the ADD paper: python -m scripts.reproduce (`make reproduce`).

    python -m scripts.reproduce [--only KEY ...] [--long] [--short] [--list] [--page]

Each entry runs, draws, and leaves a file in scripts/reproduction/results; docs/studies/reproduction.md is written from
these files after every entry, so that a later run of one entry keeps the others. ``--short`` runs coarse versions in
seconds and writes into runs/reproduction-short. ``--long`` runs the entries that take hours (`make reproduce-long`),
which keep what they have in runs/reproduction-long: one that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

from scripts.reproduction.entries import ENTRIES
from scripts.reproduction.entry import ROOT, Context, Entry, Skipped
from scripts.reproduction.page import Pack


def run_entry(entry: Entry, pack: Pack, *, short: bool, partial: bool = False) -> str:
    """Run one entry and keep what it found; return how it went."""
    context = Context(short, pack.images, pack.values(), partial)
    begin = time.perf_counter()
    try:
        outcome = entry.run(context)
    except Skipped as reason:
        pack.keep_skipped(entry, str(reason))
        return f"skipped: {reason}"
    pack.keep(entry, outcome, time.perf_counter() - begin, short=short)
    return f"{time.perf_counter() - begin:.0f} s"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="KEY", choices=sorted(ENTRIES), help="run these entries")
    parser.add_argument("--long", action="store_true", help="run the entries that take hours, and no others")
    parser.add_argument("--partial", action="store_true", help="say what entries that take hours have so far")
    parser.add_argument("--short", action="store_true", help="coarse, in seconds: to see that everything works")
    parser.add_argument("--list", action="store_true", help="say what there is and run nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the results and run nothing")
    parser.add_argument("--output", type=Path, help="folder to write into instead")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Run what the command line asks for."""
    wanted = arguments(given)
    if wanted.list:
        for entry in ENTRIES.values():
            print(f"{entry.key:14} {entry.title}{' (hours)' if entry.long else ''}")
        return 0
    output = wanted.output or (ROOT / "runs" / "reproduction-short" if wanted.short else None)
    pack = Pack.in_folder(output) if output else Pack.committed()
    failed = []
    every = [key for key, entry in ENTRIES.items() if entry.long == wanted.long]
    for key in [] if wanted.page else wanted.only or every:
        print(f"{key}: {ENTRIES[key].title} ...", flush=True)
        try:
            print(f"{key}: {run_entry(ENTRIES[key], pack, short=wanted.short, partial=wanted.partial)}", flush=True)
        except Exception:  # the others are still wanted
            traceback.print_exc()
            failed.append(key)
        pack.write_page()
    pack.write_page()
    print(pack.page)
    if failed:
        print(f"failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
