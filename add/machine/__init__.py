"""The machine that the program runs on: its memory, disks and plain files, other packages' readers, signals."""
