"""Runs killed at random moments, without warning, go on and end as if nothing had been."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache

import pytest
from faults.runs import FIT, ran, same_run, scene, timeless
from support.places import TESTS
from support.processes import Forked
from support.tiers import long_case

from add.io.lock import replacing
from add.io.runfolder import RunFolder
from add.plot.files import figure

#: A run is killed in the quick tier; `test_resume.py` kills a fit there. The others are long.
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
    (folder / "scene.json").write_text(json.dumps(scene(200) | FIT))

    @cache
    def seconds(name):
        arguments, _ = COMMANDS[name]
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
        process = Forked(folder, *begin, "-o", run, "-q")
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


@pytest.mark.parametrize(
    ("name", "moments"), [case if case[0] == "simulate" else long_case(*case) for case in cuts(QUICK)]
)
def test_killed_runs_go_on(whole, name, moments):
    folder, seconds = whole
    kill(folder, moments, name, seconds(name))


@pytest.mark.slow
def test_fifty_kills(whole):
    folder, seconds = whole
    for name, moments in list(cuts(ALL))[QUICK:]:
        kill(folder, moments, name, seconds(name))


#: Draws a film until it is killed, and says when it has begun.
FILM = """
import sys, numpy as np
from add.io.lock import replacing
from add.view import render
from view.sample_run import sample_run
def frames(path, fps):
    writer = make(path, fps)
    print("begun", flush=True)
    return writer
make, render._writer = render._writer, frames
render.movie(sample_run(16, (3, 2, 2)), sys.argv[1], speed=0.0005, size=(64, 64))
"""


@pytest.mark.parametrize(
    ("name", "how"), [("film.gif", signal.SIGKILL), ("film.mp4", signal.SIGTERM),
                      long_case("film.gif", signal.SIGTERM), long_case("film.mp4", signal.SIGKILL)]
)  # fmt: skip
def test_films_of_killed_processes_are_not_there(tmp_path, name, how):
    """What was there stays whole, what was half written has no such name, and the next picture removes it."""
    (tmp_path / name).write_bytes(b"an older film")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS / "claims"), str(TESTS)])}
    process = subprocess.Popen([sys.executable, "-c", FILM, name], cwd=tmp_path, env=env, stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"begun"
    time.sleep(0.1)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert (tmp_path / name).read_bytes() == b"an older film"
    other = tmp_path / f".add-{'0' * 16}.{'0' * 12}.of another machine"
    other.touch()
    with replacing(tmp_path / "being written") as mine:
        assert [path for path in tmp_path.iterdir() if path not in (tmp_path / name, other, mine)], "killed too early"
        with figure(tmp_path / "picture.png", 1.0, 1.0) as (drawn, _):
            drawn.subplots()
        assert mine.exists()
    assert {path.name for path in tmp_path.iterdir()} == {name, other.name, "picture.png", "being written"}
