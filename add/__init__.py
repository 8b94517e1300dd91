"""Differentiable simulation of soft and rigid bodies with frictional contact."""

__version__ = "0.1.0"

__all__ = ["__version__"]
