"""Names of the ops with kernels of this package's own: other tests register more in their process."""

import json
import subprocess
import sys
from functools import cache

_PROGRAM = """
import json
from cyxla.core.framework.kernel_registry import KernelRegistry
kernels = KernelRegistry.global_().get_filtered_registered_kernels(lambda k: "XLA" not in k.device_type)
print(json.dumps(sorted({kernel.op for kernel in kernels if "Xla" not in kernel.op})))
"""


@cache
def ops_with_kernels() -> frozenset[str]:
    """Return the names, without ops that come with clusters."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout))
