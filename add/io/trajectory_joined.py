"""A run that was gone on with: its parts as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from add.errors import InputError
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import ContactData, JointData, LineData
from add.typing import FloatArray


def joined(first: RunData, then: RunData, *, stays: bool) -> RunData:
    """Return one run of two parts, of which the second begins with the last state of the first.

    Parameters
    ----------
    first, then : RunData
    stays : bool
        Whether that state is one of those that a run which was never cut keeps. If not, the steps on its both sides
        belong to the next one.

    Raises
    ------
    InputError
        If the second part does not begin where the first ends.
    """
    if first.q.shape[1:] != then.q.shape[1:] or first.t[-1] != then.t[0] or not np.array_equal(first.q[-1], then.q[0]):
        raise InputError("what was kept of the run does not end where it goes on", place="t", found=float(first.t[-1]))
    n = first.n_states - (not stays)

    def both(a: FloatArray, b: FloatArray) -> FloatArray:
        return np.concatenate([a[:n], b[1:]])

    def each(a: Mapping[str, FloatArray], b: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: both(values, b[name]) for name, values in a.items()}

    lines = {}
    for name, line in first.lines.items():
        other = then.lines[name]
        lines[name] = LineData(line.kind, both(line.ends, other.ends), both(line.tension, other.tension))
    joints = {
        name: JointData(both(joint.place, then.joints[name].place), both(joint.axis, then.joints[name].axis))
        for name, joint in first.joints.items()
    }
    return replace(
        first,
        t=both(first.t, then.t),
        q=both(first.q, then.q),
        v=both(first.v, then.v),
        contact_force=both(first.contact_force, then.contact_force),
        energy=each(first.energy, then.energy),
        markers=each(first.markers, then.markers),
        lines=lines,
        joints=joints,
        contacts=_contacts(first, then, n),
        carry=then.carry,
        newton_iterations=_over_cut(first.newton_iterations, then.newton_iterations, stays, np.add),
        newton_residual=_over_cut(first.newton_residual, then.newton_residual, stays, np.maximum),
    )


def _over_cut(a: Any, b: Any, stays: bool, merge: Any) -> Any:
    """Return the numbers of the intervals between kept states; the one over the cut is merged where no state stays."""
    if stays or not a.size or not b.size:
        return np.concatenate([a, b])
    return np.concatenate([a[:-1], merge(a[-1:], b[:1]), b[1:]])


def _contacts(first: RunData, then: RunData, n: int) -> ContactData:
    """Return the contacts of the first n states of one part, and of all but the first of the other."""
    if not first.contacts.offsets.size and not then.contacts.offsets.size:
        return first.contacts
    states = [(first.contacts, k) for k in range(n)] + [(then.contacts, k) for k in range(1, then.n_states)]
    counts = [len(contacts.at(k)[0]) for contacts, k in states]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(contacts, name)[contacts.of_state(k)] for contacts, k in states])

    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ContactData(offsets, *(joined(name) for name in ("places", "forces", "modes", "margins")))
