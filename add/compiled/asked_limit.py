"""How far trials of compiled steps may go: Python's answer, asked for by address."""

from __future__ import annotations

import ctypes
from typing import Any, final

import numpy as np

from add.equations.step_limit import StepLimit
from add.typing import FloatArray

#: Without a result: three addresses.
_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@final
class AskedLimit:
    """A `StepLimit` that compiled functions ask, of one run: it says nothing of a step that they have not begun.

    What it raises waits until the call is over, for nothing passes through compiled functions.
    """

    def __init__(self, limit: StepLimit, n: int) -> None:
        self._limit, self._theta = limit, np.zeros(0)
        self._way = ctypes.c_double * n
        self._raised: BaseException | None = None
        self._call = _CALL(self._share)
        self._address = ctypes.cast(self._call, ctypes.c_void_p).value or 0

    def asked_at(self, theta: FloatArray) -> int:
        """Return the address at which ways with these numbers are asked for; see `add.compiled.routines.Routines`."""
        self._theta = theta
        return self._address

    def check(self) -> None:
        """Raise what asking has raised."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _share(self, begin: int, end: int, out: int) -> None:
        share = np.nan
        try:
            share = self._limit.share(self._at(begin), self._at(end), self._theta)
        except BaseException as error:  # also a signal of the user's
            self._raised = error
        ctypes.c_double.from_address(out).value = share

    def _at(self, address: int) -> FloatArray:
        """Return a copy of the coordinates at an address."""
        found: Any = self._way.from_address(address)
        return np.array(found)
