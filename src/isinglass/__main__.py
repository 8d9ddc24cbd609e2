"""Run the command line as ``python -m isinglass``."""

import sys

from isinglass.cli.main import main

sys.exit(main())
