"""Signals, and standard output that cannot be written: what was finished is kept, and the exit code is right."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from faults.runs import FIT, begun, command, ran, same_run, scene
from support.processes import Forked, wait_until
from support.tiers import long_case

import add
from add.io.lock import holder_of
from add.machine.interrupts import GRACE, Terminated, stops_are_interruptions, stops_wait


def long_run(tmp_path, steps=200_000):
    (tmp_path / "scene.json").write_text(json.dumps(scene(steps)))
    process = Forked(tmp_path, "simulate", "scene.json", "-o", "run", "-q", stepped="stepped")
    wait_until((tmp_path / "stepped").exists, process)
    return process


def ended(process):
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, err


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"),
                                 long_case(signal.SIGHUP, 143, "terminated")]
)  # fmt: skip
def test_a_stopped_run_is_kept(tmp_path, number, code, word):
    process = long_run(tmp_path)
    process.send_signal(number)
    found, err = ended(process)
    assert found == code and err.startswith(f"{word}; kept in run: ") and "--resume` goes on" in err
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["status"] == "interrupted" and result["steps"] > 0
    assert holder_of(tmp_path / "run") is None


def test_impatience_does_not_cut_the_writing(tmp_path):
    """Ctrl-C again and again within a second or two."""
    process = long_run(tmp_path)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        time.sleep(0.8 * GRACE / 20)
        if process.poll() is not None:
            break
    code, err = ended(process)
    assert code == 130 and "Traceback" not in err
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["status"] == "interrupted" and result["steps"] > 0
    assert (tmp_path / "run" / "trajectory.h5").is_file()


def test_nohup_is_respected(tmp_path):
    (tmp_path / "scene.json").write_text(json.dumps(scene(400)))
    ignoring = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    process = begun(tmp_path, "simulate", "scene.json", "-o", "run", "-q", preexec_fn=ignoring)
    wait_until((tmp_path / "run" / "versions.json").exists, process)
    process.send_signal(signal.SIGHUP)
    assert ended(process)[0] == 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run, a fit and what they print, of which the tests below spoil the printing."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "scene.json").write_text(json.dumps(scene(5) | FIT))
    assert ran(folder, "simulate", "scene.json", "-o", "whole", "-q")[0] == 0
    return folder


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("options", [long_case(()), ("--json",)])
def test_a_full_disk_behind_standard_output(finished, options):
    run = finished / f"full{len(options)}"
    with open("/dev/full", "w") as full:
        code, _, err = ran(finished, "simulate", "scene.json", "-o", run.name, *options, stdout=full)
    assert code == 2 and "standard output: No space left on device" in err and "Traceback" not in err
    same_run(finished / "whole", run)


@pytest.mark.parametrize("streams", [long_case(">&-"), long_case("2>&-"), ">&- 2>&-"])
def test_closed_streams(finished, streams):
    words = " ".join(f"'{word}'" for word in command("simulate", "scene.json", "-o", "closed", "--force"))
    done = subprocess.run(["bash", "-c", f"{words} {streams}"], cwd=finished, timeout=300, capture_output=True)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    same_run(finished / "whole", finished / "closed")


@pytest.mark.parametrize(("arguments", "code"), [
    (("optimize", "scene.json", "-o", "piped"), 0), long_case(("version",), 0), (("schema",), 0), (("simulat",), 2),
])  # fmt: skip
def test_a_reader_that_leaves(finished, arguments, code):
    """`| head -0`: the pipe is closed before anything is printed."""
    read, write = os.pipe()
    os.close(read)
    try:
        found, _, err = ran(finished, *arguments, stdout=write)
    finally:
        os.close(write)
    assert found == code and "Traceback" not in err and "BrokenPipe" not in err
    if arguments[0] == "optimize":
        assert json.loads((finished / "piped" / "result.json").read_text())["status"] == "done"
        assert (finished / "piped" / "report.md").is_file()


def test_standard_error_is_full(finished):
    with open("/dev/full", "w") as full:
        assert ran(finished, "info", "missing", stderr=full)[0] == 2


@pytest.fixture
def usual_stops():
    """The interpreter's own answers, and afterwards those of the tests: a program that was stopped ignores stops."""
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in usual.items():
        signal.signal(number, handler)


def test_a_stop_waits_until_compiled_code_has_converted_its_results(usual_stops):
    """It ignores an exception of the conversion, of which the first runs Python."""
    twice = numba.njit("UniTuple(float64[::1], 2)(float64[::1])")(lambda a: (a, a))
    sent, results = [], []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "_numba_unpickle" and not sent:
            sent.append(True)
            signal.raise_signal(signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt), stops_are_interruptions():
            sys.setprofile(watch)
            results.append(twice(np.ones(2)))
            sys.setprofile(None)
            time.sleep(10.0)
    finally:
        sys.setprofile(None)
    assert sent and len(results) == 1


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_stop_in_a_destructor_comes_again(usual_stops, number, error):
    """The interpreter ignores what a destructor raises."""
    ends = []

    class Brief:
        def __del__(self):
            signal.raise_signal(number)
            time.sleep(0.1)
            ends.append(self)

    with pytest.raises(KeyboardInterrupt) as found, stops_are_interruptions():
        Brief()
        time.sleep(10.0)
    assert found.type is error and not ends


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_stop_comes_again_if_the_machine_is_slow_to_send_it(usual_stops, monkeypatch, number, error):
    """The signal comes while the interpreter's hook still starts its timer: what the hook raises is ignored, too."""
    starts = []

    class Slow(threading.Timer):
        def start(self):
            super().start()
            starts.append(self)
            if len(starts) == 1:
                time.sleep(0.1)

    class Brief:
        def __del__(self):
            signal.raise_signal(number)

    monkeypatch.setattr(threading, "Timer", Slow)
    with pytest.raises(KeyboardInterrupt) as found, stops_are_interruptions():
        Brief()
        time.sleep(10.0)
    assert found.type is error and len(starts) > 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stops_wait(usual_stops, number):
    done = []
    with pytest.raises(KeyboardInterrupt), stops_are_interruptions(), stops_wait() as answer:
        signal.raise_signal(number)
        done.append(1)
        answer()
        done.append(2)
    assert done == [1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_further_stops_do_not_cut_what_follows_one_that_waited(usual_stops, number):
    written = []
    with pytest.raises(KeyboardInterrupt), stops_are_interruptions():
        try:
            with stops_wait() as answer:
                signal.raise_signal(number)
                signal.raise_signal(number)
                answer()
        except KeyboardInterrupt:
            signal.raise_signal(number)
            written.append(True)
            raise
    assert written


def test_the_end_of_waiting_answers(usual_stops):
    done = []
    usual = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        with stops_wait():
            signal.raise_signal(signal.SIGINT)
            done.append(2)
        done.append(3)
    signal.signal(signal.SIGINT, usual)
    assert done == [2]


#: A run that Python itself stops by Ctrl-C, as in a script or a notebook, at many moments.
NOTEBOOK = """
import json, signal
import add
sim = add.load_scene("scene.json").build()
sim.run()
said = []
def stop(*_):
    said.append(1)
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
for k in range(40):
    # Again after a second: Python itself ignores what is raised while it throws an object away.
    signal.setitimer(signal.ITIMER_REAL, 0.004 + 0.0017 * k, 1.0)
    try:
        while True:
            sim.run()
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        print("interrupted")
print(len(said))
"""


@pytest.mark.parametrize("named", ["shape", "mesh"])
def test_ctrl_c_of_a_script_is_an_exception(tmp_path, named):
    """Compiled code makes no value by Python on its way out: numba is not prepared for what is raised there."""
    ball = {"type": "soft", "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.05}, "velocity": [0, 0, -1.0],
            "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 150}}  # fmt: skip
    raw = {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": 40}}
    raw["bodies"] = {"a": ball | {"position": [0, 0, 0.06]}}
    if named == "shape":
        raw["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
        raw["contact"] = {"stiffness": 1e6, "stiffness_per": "area", "friction": 0.4}
    else:
        raw["bodies"]["b"] = ball | {"position": [0, 0.01, -0.06], "velocity": [0, 0, 1.0]}
        raw["contact"] = {"friction": 0.4, "mesh": {"thickness": 0.004, "stiffness": 1e8, "onset": 0.003}}
    (tmp_path / "scene.json").write_text(json.dumps(raw))
    env = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(add.__file__))}
    run = subprocess.run([sys.executable, "-c", NOTEBOOK], cwd=tmp_path, env=env, capture_output=True, text=True,
                         timeout=240)  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    *interrupted, said = run.stdout.split()
    assert interrupted == 40 * ["interrupted"] and int(said) < 44
