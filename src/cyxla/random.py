"""Public alias of `cyxla.numpy.random`."""

import sys

from cyxla.numpy import random

sys.modules[__name__] = random
