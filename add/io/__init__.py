"""Files: meshes, shapes, trajectories, run folders."""
