"""Angles on both sides of every switch in the formulas of rotations [rad]."""

ANGLES = (0.0, 1e-9, 5e-5, 2e-4, 9e-3, 1.1e-2, 1.0, 3.0, 7.0)
