"""Public alias of `cyxla.numpy.functions.scipy_special`."""

import sys

from cyxla.numpy.functions import scipy_special as special

sys.modules[__name__] = special
