"""Scenes: read from a file or said in Python (`spec`, `read`), and built into what runs (`build`)."""

from add.scene.read.reader import apply_overrides, experiment_scenes
from add.scene.scene import Scene, load_scene, scene_from_dict

__all__ = ["Scene", "apply_overrides", "experiment_scenes", "load_scene", "scene_from_dict"]
