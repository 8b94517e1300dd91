"""Runs killed at random moments, without warning, go on and end as if nothing had been."""

import json
import random
import signal
import time
from functools import cache

import pytest
from faults.runs import FIT, begun, ran, same_run, scene, timeless

from add.io.runfolder import RunFolder

#: Two in the quick tier, a run and a fit; the others are long.
QUICK, ALL = 2, 50
SWEEP = ("--parameter", "bodies.a.velocity.0=0:1:5", "--parameter", "contact.friction=0.1:0.5:4", "--jobs", "1")
COMMANDS = {
    "simulate": (("simulate", "scene.json"), ("--resume",)),
    "optimize": (("optimize", "scene.json"), ("--resume",)),
    "sweep": (("sweep", "scene.json", *SWEEP), ()),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of the scene, and what runs a command there once, never cut, and says how long it takes."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "scene.json").write_text(json.dumps(scene(400) | FIT))

    @cache
    def seconds(name):
        arguments, _ = COMMANDS[name]
        ran(folder, *arguments, "-o", f"{name}_warm", "-q")  # compiles
        begin = time.monotonic()
        code, _, err = ran(folder, *arguments, "-o", name, "-q")
        assert code == 0, err
        return time.monotonic() - begin

    return folder, seconds


def kill(folder, moments, name, seconds):
    """Kill a command, and what goes on with it, at these shares of its time; then let it end."""
    arguments, again = COMMANDS[name]
    run = f"{name}_{hash(moments) & 0xFFFFFF:x}"
    kept = False
    for moment in moments:
        begin = arguments if not kept else (*arguments, *again)
        process = begun(folder, *begin, "-o", run, "-q")
        time.sleep(moment * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kept = RunFolder(folder / run, overwrite=True).command is not None
    complete = (folder / run / "result.json").is_file() and timeless(folder / run).get("status") == "done"
    if not complete:
        begin = (*arguments, *again) if kept else (*arguments, "--force")
        code, _, err = ran(folder, *begin, "-o", run, "-q")
        assert code == 0, f"{name} {moments}: {err}"
    if name == "simulate":
        same_run(folder / name, folder / run)
    else:
        assert timeless(folder / name) == timeless(folder / run), f"{name} {moments}"


def cuts(n):
    """Moments by a seed; now and then the run that goes on is killed, too."""
    rng = random.Random(11)
    for k in range(n):
        yield list(COMMANDS)[k % 3], tuple(rng.uniform(0.05, 1.05) for _ in range(rng.choice((1, 1, 2))))


@pytest.mark.parametrize(("name", "moments"), list(cuts(QUICK)))
def test_killed_runs_go_on(whole, name, moments):
    folder, seconds = whole
    kill(folder, moments, name, seconds(name))


@pytest.mark.slow
def test_fifty_kills(whole):
    folder, seconds = whole
    for name, moments in list(cuts(ALL))[QUICK:]:
        kill(folder, moments, name, seconds(name))
