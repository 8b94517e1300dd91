"""The parts that measure, and the files that the command writes."""

import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks.backends import DefaultLU, Timed
from benchmarks.factorization import body
from benchmarks.kernels import clocked_kernels
from benchmarks.sizes import block
from benchmarks.targets import Target, targets


def test_default_back_end_solves():
    pattern, data = body((3, 3, 2))
    matrix = pattern.matrix(data).toarray()
    b = np.random.default_rng(0).normal(size=(pattern.n, 2))
    clock = Timed(DefaultLU())
    clock.factor(pattern, data)
    data[:] = 0.0  # the caller's values may change before the solves
    np.testing.assert_allclose(clock.solve(b), np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-12)
    transposed = clock.solve_transposed(b[:, 0])
    np.testing.assert_allclose(transposed, np.linalg.solve(matrix.T, b[:, 0]), rtol=1e-9, atol=1e-12)
    assert len(clock.factoring) == 1


def test_kernels_are_counted_and_put_back():
    simulation = block(6)
    before = simulation.run(n_steps=3)
    with clocked_kernels() as clock:
        during = simulation.run(n_steps=3)
    assert clock.calls > 0
    assert clock.seconds > 0.0
    np.testing.assert_array_equal(before.q, during.q)
    calls = clock.calls
    simulation.run(n_steps=1)
    assert clock.calls == calls


@pytest.fixture
def warm(monkeypatch):
    monkeypatch.setattr(command, "available", lambda: True)


def test_nothing_is_measured_before_the_steps_are_compiled(monkeypatch, tmp_path, capsys):
    """A whole run ended at its eighth section, and sections before it took the steps of the terms."""
    begun = []
    monkeypatch.setitem(command.SECTIONS, "exactness", begun.append)
    monkeypatch.setattr(command, "available", lambda: False)
    monkeypatch.setattr("sys.argv", ["python", "--only", "exactness", "--output", str(tmp_path / "latest.json")])
    with pytest.raises(SystemExit):
        command.main()
    assert "run `add warm`" in capsys.readouterr().err and not begun


def test_targets_say_what_is_missed():
    assert Target("a", 1.0, 2.0).met
    assert not Target("a", 1.0, 2.0, at_least=True).met
    row = {"tets": 3072, "linear_share": 0.5, "iterations_per_step": 2.0}
    found = targets({"sizes": {"rows": [row], "exponents": {"ms_per_step": 1.7}}})
    assert [target.met for target in found] == [False, False]


@pytest.mark.usefixtures("warm")
def test_every_run_adds_a_line_to_the_history(monkeypatch, tmp_path, capsys):
    row = {"scene": "nothing", "step": 1e-12, "reactions": 0.0, "cotangents": 1e-9}
    monkeypatch.setitem(command.SECTIONS, "exactness", lambda small: [row])
    output, history = tmp_path / "latest.json", tmp_path / "more" / "history.jsonl"
    arguments = ["python", "--small", "--only", "exactness", "--output", str(output), "--history", str(history)]
    monkeypatch.setattr("sys.argv", arguments)
    command.main()
    command.main()
    assert "exactness" in capsys.readouterr().out
    assert json.loads(output.read_text())["exactness"] == [row]
    lines = [json.loads(line) for line in history.read_text().splitlines()]
    assert [line["figures"] for line in lines] == [{"nothing: difference of the back ends": 1e-9}] * 2


@pytest.mark.usefixtures("warm")
def test_parts_and_small_runs_stay_out_of_the_history(monkeypatch, tmp_path):
    row = {"scene": "nothing", "step": 1e-12, "reactions": 0.0, "cotangents": 1e-9}
    monkeypatch.setattr(command, "SECTIONS", {"exactness": lambda small: [row], "sizes": lambda small: {}})
    monkeypatch.setattr(command, "targets", lambda result: [])
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    history = tmp_path / "history.jsonl"
    for arguments in (["--small"], ["--only", "exactness"]):
        monkeypatch.setattr("sys.argv", ["python", *arguments])
        command.main()
        assert not history.exists()
    for arguments in ([], ["--only", "exactness", "sizes"]):
        monkeypatch.setattr("sys.argv", ["python", *arguments])
        command.main()
    assert len(history.read_text().splitlines()) == 2
