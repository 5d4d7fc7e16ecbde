"""`cyxla.numpy.functions.scipy_special` under the name that users import."""

import sys

from cyxla.numpy.functions import scipy_special as special

sys.modules[__name__] = special
