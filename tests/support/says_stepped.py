"""A process of add that says when its first step is done.

A test that stops a run must know that there is something to keep. Seconds are no measure of that: a slow machine
loads kernels for longer than a fast one runs.
"""

from pathlib import Path

from add.commands.simulate import Keeper


def say_stepped(path):
    """Let this process make a file once a step is done."""
    note = Keeper.__call__

    def say(self, state, record):
        note(self, state, record)
        Path(path).touch()
        Keeper.__call__ = note

    Keeper.__call__ = say
