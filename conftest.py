"""Modules for packages that may be absent are not collected where these are."""

from importlib.util import find_spec

collect_ignore = [f"add/{name}.py" for name in ("jax", "torch") if find_spec(name) is None]
