"""Motion-capture recordings: one `Recording` type, its readers, and the registration onto a model frame."""

from add.mocap.csv import read_csv, write_csv
from add.mocap.recording import Recording
from add.mocap.registration import RigidTransform, register, rigid_fit

__all__ = ["Recording", "RigidTransform", "read_csv", "register", "rigid_fit", "write_csv"]
