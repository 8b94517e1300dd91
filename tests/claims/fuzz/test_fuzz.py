"""Damaged inputs of all kinds, by seed: one error or a sound result, in time, and never a traceback."""

import json

import pytest
from fuzz.cases import Fuzz

from add.scene import load_scene

#: Cases of `make test`, and of `make test-all`, which also runs what is accepted; in parts, for workers to share.
FEW, FEW_PARTS = 240, 3
MANY, MANY_PARTS = 20_000, 20


def failures(fuzz, seeds):
    """Run cases; return those that failed, each with the command that shows it again."""
    outcomes = [fuzz.run(seed) for seed in seeds]
    kinds = {outcome.kind for outcome in outcomes}
    assert len(kinds) == 7, f"not all kinds of damage are there: {kinds}"
    share = sum(outcome.verdict in ("accepted", "ran") for outcome in outcomes) / len(outcomes)
    assert share > 0.1, f"hardly anything is accepted ({share:.2f}): the seeds are damaged before they are changed"
    return [str(outcome) for outcome in outcomes if outcome.failure]


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory, roughly_drawn):
    """Diagrams are drawn roughly: the rest takes most of the time of a resumed fit."""
    return Fuzz(tmp_path_factory.mktemp("fuzz"))


def test_seeds_are_sound(fuzz):
    for name, raw in fuzz.scenes.items():
        path = fuzz.good / f"{name}.json"
        path.write_text(json.dumps(raw))
        built = load_scene(path).build()
        assert built.run(n_steps=2).n_steps == 2


def test_the_same_seed_is_the_same_case(fuzz):
    for seed in range(10):
        first, again = fuzz.run(seed), fuzz.run(seed)
        assert (first.kind, first.said, first.verdict) == (again.kind, again.said, again.verdict)


def test_a_case_that_hangs_or_breaks_is_told(fuzz, monkeypatch):
    """The judge sees what it should: an endless loop, a traceback, and an error without words."""
    monkeypatch.setattr("fuzz.cases.LIMIT", 0.2)

    def hang(rng, work):
        while True:
            pass

    def broken(rng, work):
        raise KeyError("x")

    for kind, word in ((hang, "longer than 0.2 s"), (broken, "a traceback"), (lambda rng, work: "FAILED: x", "FAILED")):
        for name in ("_scene", "_scene_bytes", "_path", "_mesh", "_surface", "_csv", "_run"):
            monkeypatch.setattr(fuzz, name, kind, raising=True)
        outcome = fuzz.run(0)
        assert word in outcome.verdict and outcome.failure and "python -m fuzz 0" in str(outcome)


@pytest.mark.parametrize("part", range(FEW_PARTS))
def test_few(fuzz, part):
    n = FEW // FEW_PARTS
    failed = failures(fuzz, range(part * n, (part + 1) * n))
    assert not failed, "\n".join(failed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(MANY_PARTS))
def test_many(tmp_path, part):
    n = MANY // MANY_PARTS
    failed = failures(Fuzz(tmp_path, runs=True), range(100_000 + part * n, 100_000 + (part + 1) * n))
    assert not failed, "\n".join(failed)
