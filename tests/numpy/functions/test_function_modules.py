"""Modules of functions are imported when needed: the table of modules, and imports in the middle of a trace."""

import subprocess
import sys

import numpy as np

import cyxla
from cyxla.numpy import functions
from cyxla.numpy.tracing import registry

NEEDED = """
import sys
import numpy as np
import cyxla
f = cyxla.jit(lambda x: np.tanh(x * 2) + x, platform="interpreter")
f(np.ones(3))
unneeded = ("cyxla.numpy.functions.", "cyxla.numpy.gradient", "cyxla.xla.stablehlo", "cyxla.aot", "cyxla.core")
print([name for name in sys.modules if name.startswith(unneeded)])
"""


def test_every_function_is_in_the_module_of_the_table():
    """A function that is missing from the table would cause the import of all modules."""
    named = {row.name for row in registry.rows().values()}
    assert named == {name for names in functions.FUNCTIONS.values() for name in names.split()}
    for row in registry.rows().values():
        module = row.implementation.__module__
        assert registry.module_of(row.name) == module or module == "cyxla.numpy.ufuncs.gufuncs", row.name


FIRST = """
import numpy as np
import cyxla
print(cyxla.jit(lambda x, y: 0.5 * np.sqrt(x) + y)(np.float64([4, 9]), 2))
"""


def test_modules_that_need_original_ufuncs_are_imported_before_tracing():
    result = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[3.  3.5]"


def test_only_used_modules_are_imported():
    result = subprocess.run([sys.executable, "-c", NEEDED], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_modules_imported_while_tracing_have_numpys_own_functions(tmp_path, monkeypatch):
    (tmp_path / "imported_inside.py").write_text(
        "from numpy import zeros, take\nimport numpy as np\nmade = np.ones(2)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def function(x):
        import imported_inside

        return x + imported_inside.zeros(3) + imported_inside.made[0]

    np.testing.assert_array_equal(cyxla.jit(function, platform="interpreter")(np.ones(3)), [2.0, 2.0, 2.0])
    module = sys.modules.pop("imported_inside")
    assert module.zeros is np.zeros
    assert module.take is np.take
