"""`python -m add`."""

from add.cli import main

main()
