"""The ``cyxla`` command as ``python -m cyxla``."""

import sys

from cyxla.tools.main import main

if __name__ == "__main__":
    sys.exit(main())
