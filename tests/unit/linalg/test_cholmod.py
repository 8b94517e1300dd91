"""CHOLMOD: which matrices it takes, that indefinite ones never pass, and whole runs by it."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support.linalg_cases import error, pattern_of, soft_body

from add.adjoint import value_and_gradient
from add.commands.cli import main
from add.linalg import Cholmod, MultifrontalLU
from add.linalg.cholmod import is_installed
from add.scene import scene_from_dict

installed = pytest.mark.skipif(
    not is_installed(), reason="scikit-sparse is not installed (extra `cholmod`, built against SuiteSparse's headers)"
)


def symmetric(shape, rng, shift):
    body = soft_body(shape, rng)
    return sp.csc_array(0.5 * (body + body.T) + shift * sp.eye_array(body.shape[0]))


@installed
@pytest.mark.parametrize("columns", [None, 1, 5])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3, 2), (6, 5, 4), (9, 8, 7)])
def test_symmetric_definite_matrices_are_its_own(shape, columns, rng):
    matrix = symmetric(shape, rng, 60.0)
    back_end = Cholmod()
    back_end.factor(*pattern_of(matrix))
    n = matrix.shape[0]
    for transposed in (False, True):
        b = rng.normal(size=n if columns is None else (n, columns))
        assert error(back_end, matrix, b, transposed) < 1e-11
    assert (back_end.symmetric, back_end.others) == (1, 0)


@installed
@pytest.mark.parametrize("shape", [(3, 2, 2), (6, 5, 4)], ids=["simplicial", "supernodal"])
def test_indefinite_matrices_are_left(shape, rng):
    """Small matrices are factored in the simplicial mode, which accepts them: D > 0 is what refuses."""
    matrix = symmetric(shape, rng, 60.0).tolil()
    matrix[0, 3] = matrix[3, 0] = 2.0 * np.sqrt(matrix[0, 0] * matrix[3, 3])
    matrix = sp.csc_array(matrix)
    assert np.linalg.eigvalsh(matrix.toarray()).min() < 0.0 < matrix.diagonal().min()
    back_end = Cholmod()
    back_end.factor(*pattern_of(matrix))
    assert (back_end.symmetric, back_end.others) == (0, 1)
    assert error(back_end, matrix, rng.normal(size=matrix.shape[0]), False) < 1e-10


@installed
def test_library_accepts_an_indefinite_matrix(rng):
    """Why D is looked at: the library's own answer to a small indefinite matrix is a factor, not an error."""
    from sksparse.cholmod import cholesky

    factor = cholesky(sp.csc_matrix(np.array([[1.0, 2.0], [2.0, 1.0]])))
    assert factor.D().min() < 0.0


@installed
@pytest.mark.parametrize("change", [1e-9, 1e-16])
def test_symmetry_is_judged_as_by_default(change, rng):
    matrix = symmetric((5, 4, 4), rng, 60.0).tolil()
    matrix[4, 1] *= 1.0 + change
    matrix = sp.csc_array(matrix)
    ours, other = Cholmod(), MultifrontalLU()
    for back_end in (ours, other):
        back_end.factor(*pattern_of(matrix))
        assert error(back_end, matrix, rng.normal(size=matrix.shape[0]), False) < 1e-11
    assert ours.symmetric == other.statistics.symmetric == (change < 1e-12)


@installed
def test_analyses_are_bounded(rng):
    from add.linalg.cholmod import MOST_ANALYSES

    back_end = Cholmod()
    matrix = symmetric((2, 2, 2), rng, 60.0)
    for _ in range(3 * MOST_ANALYSES):
        back_end.factor(*pattern_of(matrix))
    assert len(back_end._analyses) == MOST_ANALYSES


SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.005, "steps": 24, "linear_solver": "cholmod", "newton": {"atol": 1e-11, "rtol": 0}},
    "bodies": {"block": {
        "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [3, 3, 2]},
        "position": [0, 0, 0.06],
        "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 500}, "velocity": [0.4, 0, -0.3],
    }},
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "contact": {"stiffness": 1e3, "friction": 0.3},
    "markers": {"top": {"body": "block", "point": [0, 0, 0.05]}},
    "objective": [{"type": "point", "marker": "top", "target": [0.1, 0, 0.1], "time": "end"}],
    "parameters": [{"path": "bodies.block.velocity"}],
}  # fmt: skip


@installed
@pytest.mark.parametrize("law", ["linear", "hybrid"])
def test_a_run_by_it_is_the_run_by_default(law):
    """In flight its matrices are CHOLMOD's, where the body slides they are not: the numbers are the same."""
    raw = copy.deepcopy(SCENE)
    raw["contact"]["friction_law"] = law
    ours = scene_from_dict(raw)
    raw["time"]["linear_solver"] = "auto"
    made = []

    def solver(n):
        made.append(Cholmod())
        return made[-1]

    simulation, default = replace(ours.build().simulation, solver=solver), scene_from_dict(raw).build().simulation
    assert isinstance(ours.build().simulation.assembler().factorization, Cholmod)
    run, other = simulation.run(), default.run()
    assert made[0].symmetric and made[0].others
    assert any(term.describe(decision)["slipping"] for record in run.records
               for term, decision in zip(simulation.system.deciding, record.decisions, strict=True))  # fmt: skip
    np.testing.assert_allclose(run.q, other.q, atol=1e-12)
    # Its own sweep: two solves of the same matrices, transposed.
    problem = ours.inverse_problem()
    objective = problem.experiments[0].objective
    a, b = (value_and_gradient(s, objective).gradient for s in (simulation, default))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.abs(b).max())


def test_where_it_is_not_installed_it_is_refused_with_advice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("add.scene.build.scene.is_installed", lambda: False)
    (tmp_path / "block.json").write_text(json.dumps(SCENE))
    for command in (["simulate", "block.json"], ["check", "block.json"]):
        with pytest.raises(SystemExit) as stop:
            main(command)
        said = capsys.readouterr().err
        assert stop.value.code == 2
        assert "block.json: time.linear_solver: CHOLMOD is not installed" in said
        assert "pip install 'add-sim[cholmod]'" in said and "libsuitesparse-dev" in said
