"""Families of forces on lengths, each by itself: r = g r_l(l, l') with the slopes g of the length."""

from itertools import pairwise
from typing import Any

import numpy as np

from add.equations.family import Kind, by_signal, dense_blocks
from add.kernels.arena import FAMILY, FIELD, add_entry, unpacker, window
from add.kernels.caching import njit
from add.kernels.muscles import NUMBERS
from add.terms.pressure import signal_value
from add.typing import IntArray

#: Most columns of the slopes of a law.
_COLUMNS = 4 + max(NUMBERS)


def length_kind(name: str, arrays: type, measure: Any, law: Any, *, driven: bool, curved: bool = True) -> Kind:
    """Return the compiled functions of laws over what is measured, each by itself.

    Parameters
    ----------
    name, arrays : of the families, which have `begin` (m + 1,), where the rows `dof` of each length begin
    measure : (arrays, number, instant, g, h, bent, wanted) -> a length and its rate
        Fills its slopes g (n,), and where ``curved`` those of the rate h and of g, bent (n n,), if ``wanted``.
    law : (arrays, number, instant, asked, length, rate, room, out) -> a weight of the force
        Fills the force, its slopes by length and rate, if ``driven`` by what the signal asks for, and by its numbers.
    driven : whether one signal drives them, which have their numbers in common
    curved : whether g changes; else it is of factors, that may be numbers
    """
    unpacked = unpacker(arrays)

    @njit(**FAMILY)
    def opened(arena, k, at):
        """Return the arrays, what the signal asks for, and room for g, h, bent, numbers and slopes of any length."""
        own, most, asked = unpacked(arena, arena.families[k, FIELD]), 0, 0.0
        for l in range(own.begin.size - 1):
            most = max(most, own.begin[l + 1] - own.begin[l])
        if driven:
            asked = signal_value(arena, k, at, own.rows)
        room = np.empty(most), np.empty(most), np.empty(most * most), np.zeros(_COLUMNS), np.empty(_COLUMNS)
        return own, asked, room

    @njit(**FAMILY)
    def fill(own, l, at, asked, room, wanted):
        g, h, bent, p, slopes = room
        length, rate = measure(own, l, at, g, h, bent, wanted)
        return law(own, l, at, asked, length, rate, p, slopes)

    @njit(**FAMILY)
    def forces(arena, k, at, replay, rows, out):
        own, asked, room = opened(arena, k, at)
        g, _, _, _, slopes = room
        for l in range(own.begin.size - 1):
            force = fill(own, l, at, asked, room, False) * slopes[0]
            for e in range(own.begin[l], own.begin[l + 1]):
                out[own.dof[e]] += force * g[e - own.begin[l]]
        return rows

    @njit(**FAMILY)
    def jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
        if weight_q != 0.0 or weight_v != 0.0:
            own, asked, room = opened(arena, k, at)
            g, h, bent, _, slopes = room
            place = 0
            for l in range(own.begin.size - 1):
                n, weight = own.begin[l + 1] - own.begin[l], fill(own, l, at, asked, room, True)
                along = weight * (weight_q * slopes[1] + weight_v * slopes[2])
                turned, across = weight * weight_q * slopes[2], weight * weight_q * slopes[0]
                for r in range(n):
                    for c in range(n):
                        if curved:
                            data[slots[place]] += g[r] * (along * g[c] + turned * h[c]) + across * bent[r * n + c]
                        else:
                            data[slots[place]] += g[r] * along * g[c]
                        place += 1

    @njit(**FAMILY)
    def parameters(arena, k, at, rows, forward, along, out):
        own, asked, room = opened(arena, k, at)
        g, _, _, _, slopes = room
        for l in range(own.begin.size - 1):
            weight, first, stop = fill(own, l, at, asked, room, False), own.begin[l], own.begin[l + 1]
            for e in range(first, stop):
                i, c = own.dof[e], weight * g[e - first]
                if not curved and own.factor[e] >= 0:
                    add_entry(forward, i, own.factor[e], slopes[0], along, out)
                    slope = slopes[1] * at.q[i] + slopes[2] * at.v[i]
                    for b in range(first, stop):
                        add_entry(forward, own.dof[b], own.factor[e], g[b - first] * slope, along, out)
                if driven:
                    row, weights = window(arena, k, at)
                    for j in range(weights.size):
                        add_entry(forward, i, own.rows[row + j], c * slopes[3] * weights[j], along, out)
                    for j in range(own.numbers.size):
                        add_entry(forward, i, own.numbers[j], c * slopes[4 + j], along, out)
                else:
                    for j in range(own.numbers.shape[1]):
                        add_entry(forward, i, own.numbers[l, j], c * slopes[3 + j], along, out)

    return Kind(name, arrays, forces, parameters, jacobian, by_signal(arrays, parameters) if driven else None)


def length_blocks(begin: IntArray, dof: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pattern of a family of lengths: a dense block of each."""
    blocks = [dense_blocks(dof[None, a:b]) for a, b in pairwise(begin)]
    return np.concatenate([rows for rows, _ in blocks]), np.concatenate([cols for _, cols in blocks])
