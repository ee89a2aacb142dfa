"""`python -m headwise` is the command line."""

import sys

from headwise.cli.main import main

sys.exit(main())
