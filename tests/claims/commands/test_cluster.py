"""Work on a Dask cluster of two processes: the same bits, the same errors, the same way on after an interrupt."""

import importlib
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import test_experiments as experiments
from commands.test_sweep import SCENE, TWO, Square, lines
from support.processes import signals_as_usual

from add.commands.cli import main
from add.commands.optimize import optimize_scene
from add.commands.parallel import cluster
from add.commands.parallel.workers import LocalProcesses
from add.commands.sweep import sweep_scene
from add.errors import InputError, SolverError
from add.io.hdf5 import read_sweep
from add.io.runfolder import RunFolder
from add.scene import scene_from_dict


@pytest.fixture(scope="module")
def address():
    """Of a cluster of two processes, each with two threads, of which one is to stay idle."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'add-sim[dask]'")
    forked = {"distributed.worker.multiprocessing-method": "forkserver"}  # each that is started imports a second or two
    with (
        importlib.import_module("dask").config.set(forked),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=True
        ) as found,
    ):
        yield found.scheduler_address


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code


def sweep(folder, *texts):
    return ["sweep", "throw.json", "-o", folder, "-q", *(part for text in texts for part in ("--parameter", text))]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "throw.json").write_text(json.dumps(SCENE))
    return tmp_path


def test_same_bits_as_here(address, place):
    assert run(*sweep("far", *TWO), "--cluster", address) == 0
    sweep_scene(scene_from_dict(SCENE), RunFolder("near"), TWO, workers=LocalProcesses(1))
    far, near = RunFolder("far", create=False), RunFolder("near", create=False)
    assert len(lines(far)) == 12 and lines(far) == lines(near)
    a, b = read_sweep(far.sweep), read_sweep(near.sweep)
    assert np.array_equal(a.values, b.values) and np.array_equal(a.gradients, b.gradients)


def test_experiments_of_a_fit(address, tmp_path):
    folders = [RunFolder(tmp_path / name) for name in ("near", "far")]
    optimize_scene(scene_from_dict(experiments.TWO), folders[0])
    with cluster(address) as workers:
        optimize_scene(scene_from_dict(experiments.TWO), folders[1], workers=workers)
    near, far = map(experiments.evaluations, folders)
    assert len(far) > 4 and far == near


def test_interrupted(address, place):
    texts = ("bodies.ball.velocity.0=0.5:1.5:15", "bodies.ball.velocity.2=-1:1:8")
    command = [sys.executable, "-m", "add", *sweep("cut", *texts), "--cluster", address]
    process = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True, preexec_fn=signals_as_usual)
    log, end = place / "cut" / "samples.jsonl", time.monotonic() + 120
    while not (log.is_file() and log.read_bytes().count(b"\n") >= 5):
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in err and "Traceback" not in err
    cut = RunFolder("cut", create=False)
    made = len(lines(cut))
    result = cut.read_json("result.json")
    assert 5 <= made < 120 and (result["status"], result["sampled"]) == ("interrupted", made)
    assert run(*sweep("cut", *texts), "--cluster", address) == 0
    assert len(lines(cut)) == 120 and read_sweep(cut.sweep).sampled.all()


def test_errors_of_a_task(address):
    tasks = list(range(7))
    with cluster(address) as workers:
        with workers.session(Square()) as session:
            assert list(session.spread([])) == []
            for _ in range(2):
                assert dict(session.spread(tasks)) == {n: n * n for n in tasks}
        with workers.session(Square()) as session, pytest.raises(SolverError, match="unlucky"):
            list(session.spread([*tasks, 13]))
        with workers.session(Square()) as session, pytest.raises(RuntimeError, match="Traceback"):
            list(session.spread(["text"]))


def test_workers_of_another_version(address, monkeypatch):
    cluster_module = pytest.importorskip("add.commands.parallel.dask")
    monkeypatch.setattr(cluster_module, "__version__", "9.9")
    with pytest.raises(InputError, match=r"has another version.*expected 9.9"), cluster(address):
        pass


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tcp://127.0.0.1:9", "no scheduler of a Dask cluster answers"),
        ("127.0.0.1", "no scheduler of a Dask cluster answers"),
        ("post://127.0.0.1:9", "no scheduler of a Dask cluster answers"),
    ],
)
def test_impossible_addresses(place, given, message, capsys, monkeypatch):
    pytest.importorskip("distributed", reason="distributed is not installed: pip install 'add-sim[dask]'")
    monkeypatch.setattr("add.commands.parallel.dask.PATIENCE", 0.5)
    assert run(*sweep("none", *TWO), "--cluster", given) == 2
    err = capsys.readouterr().err
    assert message in err and given in err and err.count("\n") == 1
    assert [path.name for path in place.iterdir()] == ["throw.json"]


def test_without_distributed(place, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "add.commands.parallel.dask", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match="add-sim\\[dask\\]"), cluster("tcp://127.0.0.1:8786"):
        pass
    assert run(*sweep("none", *TWO), "--cluster", "tcp://127.0.0.1:8786") == 2
    assert "pip install 'add-sim[dask]'" in capsys.readouterr().err
    assert run(*sweep("none", *TWO), "--cluster", "tcp://127.0.0.1:8786", "--jobs", 2) == 2
    assert [path.name for path in place.iterdir()] == ["throw.json"]
