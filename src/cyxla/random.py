"""`cyxla.numpy.random` under the name that users import."""

import sys

from cyxla.numpy import random

sys.modules[__name__] = random
