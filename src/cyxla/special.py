"""`cyxla.numpy.special` under the name that users import."""

import sys

from cyxla.numpy import special

sys.modules[__name__] = special
