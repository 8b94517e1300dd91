"""Decisions of contact as tables, for tests that look at single pairs."""

import numpy as np

from add.kernels.contact_pairs import BITS, FEATURE, PAIR

#: Where the feature begins in an entry of a table.
FEATURE_SHIFT = 9


def table(rows, n_points, n_shapes):
    """Return bits | feature << FEATURE_SHIFT of every pair (n_points, n_shapes), 0 for those without a row."""
    assert rows.dtype == np.int64 and (np.diff(rows[:, PAIR]) > 0).all()
    out = np.zeros(n_points * n_shapes, dtype=np.int64)
    out[rows[:, PAIR]] = rows[:, BITS] | rows[:, FEATURE] << FEATURE_SHIFT
    return out.reshape(n_points, n_shapes)


def table_of(contact, rows):
    """Return the table of a decision of a contact term."""
    n_points = contact.carrier.size if hasattr(contact, "carrier") else contact.points.n_points
    return table(rows, n_points, contact.n_shapes)


def rows_of(codes):
    """Return the rows of a table."""
    pairs = np.flatnonzero(codes)
    values = np.asarray(codes, dtype=np.int64).ravel()[pairs]
    return np.stack([pairs, values >> FEATURE_SHIFT, values & (1 << FEATURE_SHIFT) - 1], axis=1).astype(np.int64)
