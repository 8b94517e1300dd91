"""The command line of add as a process of its own that says when its first step is done: `FILE ARGUMENTS...`.

A test that stops a run must know that there is something to keep. Seconds are no measure of that: a slow machine
loads kernels for longer than a fast one runs.
"""

import sys
from pathlib import Path

from add.commands.cli import main
from add.commands.simulate import Keeper

_note = Keeper.__call__


def _say(self, state, record):
    _note(self, state, record)
    Path(sys.argv[1]).touch()
    Keeper.__call__ = _note


if __name__ == "__main__":
    Keeper.__call__ = _say
    main(sys.argv[2:])
