"""`cyxla.xla.hlo` under the name that users import."""

import sys

from cyxla.xla import hlo

sys.modules[__name__] = hlo
