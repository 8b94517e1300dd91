"""`python -m add`."""

from add.commands.cli import main

main()
