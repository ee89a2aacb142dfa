"""Runs the command line of Headwise when Python is started with `python -m headwise`."""

import os
import sys

# `python -m` looks for modules in the current directory first: a `random.py` beside a corpus would
# be imported. It is left out, as the `headwise` command leaves it out, unless the package itself
# lies there.
if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()] != [
    os.path.dirname(os.path.dirname(__file__))
]:
    del sys.path[0]

from headwise.cli.main import main

sys.exit(main())
