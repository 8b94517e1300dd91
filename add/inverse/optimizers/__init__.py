"""Optimisers: L-BFGS-B and Levenberg-Marquardt, in phases."""
