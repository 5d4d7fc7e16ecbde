"""Public alias of `cyxla.xla.hlo`."""

import sys

from cyxla.xla import hlo

sys.modules[__name__] = hlo
