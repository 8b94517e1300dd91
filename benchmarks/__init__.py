"""Benchmarks: `python -m benchmarks`. Ratios taken in one run; nothing here is a test."""
