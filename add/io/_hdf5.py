"""HDF5 files that come to the disk in one piece."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import h5py

from add.io._atomic import CannotWrite, replacing


@contextlib.contextmanager
def new_hdf5(path: Path) -> Iterator[h5py.File]:
    """Give an empty HDF5 file in memory; on success its bytes replace ``path``.

    A file that the library could not write to a full disk it cannot close either: it tries again when Python ends, and
    falls. Plain bytes fail once, with an error. The price is memory of the file's size, which is compressed.

    Raises
    ------
    CannotWrite
        naming the file.
    """
    content = io.BytesIO()
    with h5py.File(content, "w", track_order=True) as file:
        yield file
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content.getbuffer())
    except OSError as error:
        raise CannotWrite.because(error, path) from error
