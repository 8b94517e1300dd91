"""Imported last by the process that those of `--jobs` are forked from: it was started deaf, and hears from here on.

What users fork from the same process would be deaf, too, and not end where it is told to.
"""

import signal

signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
