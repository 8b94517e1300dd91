"""Folders that tests read from, wherever the test stands."""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SCENES = ROOT / "scenes"
#: Beside the repository; tests that need it skip where it is absent.
SHARED = ROOT.parent / "shared"
SPECS = SHARED / "specs"
DATA = Path(os.environ.get("ADD_DATA") or SHARED / "data")
