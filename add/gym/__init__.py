"""Scenes as environments of Gymnasium: controls are actions, named quantities are observed.

from add.gym import Env, VectorEnv

env = Env(load_scene("cart.json"), actions={"push": (-5.0, 5.0)}, observations=["markers.tip", "couplings.pole.angle"])
many = VectorEnv(env, 64)
"""

try:
    import gymnasium as _gymnasium  # noqa: F401
except ImportError as error:
    raise ImportError("Gymnasium is not installed: pip install 'add-sim[gym]'") from error

from add.gym.env import Env
from add.gym.vector import VectorEnv

__all__ = ["Env", "VectorEnv"]
