"""What numba answers from memory: the intermediate code stays the same, to the letter."""

import resource
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import ir
from numba.core.compiler import Flags
from support.interpreters import Interpreters

import add
from add.kernels.caching import njit
from add.kernels.linking import Linked, quicken, roomy

#: Operators of numbers and arrays, views, tuples, array expressions, constants, names of fields; functions of numba's.
_KERNELS = """
import re
import numpy as np
from add.kernels import linking
if {alone}:
    linking.quicken, linking._Rewriting = (lambda: None), linking.NopythonRewrites
from add.kernels.caching import njit

@njit()
def inner(a, k):
    return a[k, -1] * k + a[0, 0] // 2.0

@njit()
def outer(a, b, n):
    total, both = 0.0, (a, b)
    for i in range(n):
        for j in range(a.shape[1]):
            if a[i, j] > 0.5 and not (i == j or b[i] <= 1):
                total += a[i, j] ** 2 - b[i] % 3 + inner(a, i)
            both[0][i, j] -= total / (1 + i)
    return total, np.zeros((n, 3)), both[0][:, 1]

@njit()
def added(a):
    return a + 2.0 * a

@njit()
def changed(a):
    return -a

@njit()
def rooted(a):
    return np.sqrt(a)

@njit()
def listed(a):
    return np.array([1.0, 2.0, a[0]])

@njit()
def named(a):
    a[0]["x"] += 1.0

named(np.zeros(3, dtype=[("x", "f8")]))
outer(np.ones((3, 3)), np.arange(3.0), 3)
for function in (added, changed, rooted, listed):
    function(np.ones(2))
for function in (named, outer, added, changed, rooted, listed):
    text = str(next(iter(function.overloads.values())).library._get_module_for_linking())
    print(re.sub("_[0-9a-f]{{16}}|0x[0-9a-f]+", "", text).replace(" ", ""))
"""


def test_intermediate_code_is_that_of_numba_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    interpreters = Interpreters()
    place = Path(add.__file__).parents[1]
    quick, alone = (interpreters.printed(place, _KERNELS.format(alone=alone)) for alone in (False, True))
    interpreters.end()
    assert len(quick) > 500 and any("__numba_array_expr" in line for line in quick)
    assert quick == alone


def test_flags_are_equal_where_their_values_are():
    quicken()
    one, other = Flags(), Flags()
    assert one == other and hash(one) == hash(other)
    one.nrt = True
    assert one != other
    other.nrt = False
    assert one != other
    other.nrt = True
    assert one == other
    one.error_model = "numpy"
    assert one != other and one.copy() == one
    other.fastmath, one.fastmath = False, False  # set to what it is by default
    other.error_model = "numpy"
    assert one == other and hash(one) == hash(other) and one != 1


def test_variables_are_listed_wherever_they_stand():
    quicken()
    loc = ir.Loc("file", 1)
    a, b, c, d = (ir.Var(None, name, loc) for name in "abcd")
    call = ir.Expr.call(a, [b, (c, "text")], {"named": d}, loc)
    assert call.list_vars() == [a, b, c, d]
    assert sorted(one.name for one in ir.Assign(call, d, loc).list_vars()) == ["a", "b", "c", "d", "d"]
    assert ir.Assign(ir.Const(1.0, loc), a, loc).list_vars() == [a]


def _calls_at_each_depth(depth):
    """Call a function a hundred times at each of so many depths."""
    for _ in range(100):
        _nothing(None, None, None, None)
    if depth:
        _calls_at_each_depth(depth - 1)


def _nothing(a, b, c, d):
    return None


@pytest.mark.parametrize("room", [False, True])
def test_calls_in_a_roomy_frame_ask_the_system_for_no_memory(room):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    (roomy(_calls_at_each_depth) if room else _calls_at_each_depth)(600)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert (faults < 90) == room, faults


def test_functions_in_a_roomy_frame_return_and_raise():
    @roomy
    def shared(a, *, b):
        """Divide."""
        return a / b

    assert shared(3.0, b=2.0) == 1.5 and shared.__doc__ == "Divide."
    with pytest.raises(ZeroDivisionError):
        shared(1.0, b=0)


def test_numbas_own_functions_are_linked_and_those_of_others_called_by_python_too():
    @numba.njit
    def others(x):
        return np.full(2, x).sum()

    @njit()
    def own(x):
        return others(x) + np.full(3, x)[1]

    assert own(2.0) == 6.0 and others(3.0) == 6.0
    library = next(iter(own.overloads.values())).library
    assert isinstance(library, Linked)
    assert any(isinstance(one, Linked) and one.name != "own" for one in library._linking_libraries)
