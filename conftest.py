"""Modules for packages that may be absent are not collected where these are."""

from importlib.util import find_spec

_PACKAGES = {"jax": "jax", "torch": "torch", "gym": "gymnasium"}
collect_ignore = [f"add/{name}.py" for name, package in _PACKAGES.items() if find_spec(package) is None]
