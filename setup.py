"""Build the compiled modules; everything else about the project stands in pyproject.toml."""

import compileall
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy
from Cython.Build import cythonize
from pybind11.setup_helpers import Pybind11Extension
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

# No -march here: a wheel runs on any x86-64. What must be fast on one machine is compiled on that machine.
FLAGS = ["-O2", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]
NO_UNWINDING = "-fno-asynchronous-unwind-tables"  # C++ exceptions never cross C of Cython; saves 12 KB of a wheel
INCLUDES = ["include", "src/native"]

# Module -> its C++ sources beside the .pyx file that stands at its import path under pyx/.
CYTHON: dict[str, list[str]] = {
    "cyxla._native.launch": [],
    "cyxla._native.dispatch": [],
    "cyxla._native.kernels": [],
}
KERNELS = "cyxla._native.kernels"  # the module that holds the prebuilt functions
# Module -> all its C++ sources under src/native.
PYBIND: dict[str, list[str]] = {
    "cyxla._native._rt": ["module.cpp", "blocks.cpp", "threads.cpp", "poll.cpp", "watched.cpp"],
}


def cython_extension(module: str, sources: list[str]) -> Extension:
    """Describe one Cython module."""
    return Extension(
        module,
        [f"pyx/{module.replace('.', '/')}.pyx", *(f"src/native/{name}" for name in sources)],
        include_dirs=[*INCLUDES, numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=[*FLAGS, NO_UNWINDING, "-Wno-unused-function", "-Wno-cast-function-type", "-g0"],
        extra_link_args=["-Wl,-s"],  # C made by a program: nobody steps through it
        depends=["include/cyxla/abi.h", "src/native/runtime.h", "src/native/recipe.h"],
    )


def pybind_extension(module: str, sources: list[str]) -> Extension:
    """Describe one pybind11 module."""
    headers = [f"src/native/{name}" for name in sorted(os.listdir("src/native")) if name.endswith((".h", ".hpp"))]
    return Pybind11Extension(
        module,
        [f"src/native/{name}" for name in sources],
        include_dirs=INCLUDES,
        cxx_std=17,
        extra_compile_args=[*FLAGS, "-pthread", "-g0"],
        extra_link_args=["-pthread", "-Wl,-s"],
        depends=["include/cyxla/abi.h", *headers],
    )


def library_writer() -> ModuleType:
    """The module that writes the prebuilt functions; the packages around the backend are not initialised."""
    sys.path.insert(0, "src")
    for name in ("cyxla", "cyxla.xla", "cyxla.xla.cpu"):
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [f"src/{name.replace('.', '/')}"]
    from cyxla.xla.cpu.prebuilt import library

    return library


class BuildKernels(build_ext):
    """Write and compile the prebuilt functions, each processor level with flags of its own.

    It also compiles the Python sources of an editable install, as pip does for any other: a new process starts sooner.
    """

    def finalize_options(self) -> None:
        """Build several modules at a time."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Build, then compile."""
        super().run()
        if self.inplace or self.editable_mode:
            compileall.compile_dir("src/cyxla", quiet=1)

    def build_extension(self, ext: Extension) -> None:
        """Build the functions in front of the module that holds them."""
        if ext.name == KERNELS:
            compiler = self.compiler.compiler_so[:1]
            said = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=True).stdout
            files = library_writer().write(Path("build/kernels"), "clang" if "clang" in said else "gcc")
            state = said.encode() + b"".join(header.read_bytes() for header in sorted(Path("include").rglob("*.h")))
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                ext.extra_objects = list(pool.map(lambda file: compiled(compiler, *file, state), files))
            ext.depends = [*ext.depends, *ext.extra_objects]
        super().build_extension(ext)


def compiled(compiler: list[str], source: Path, flags: tuple[str, ...], state: bytes) -> str:
    """Compile a file into the folder of objects, unless one of the same text, flags, headers and compiler is there.

    KERNEL_OBJECTS names the folder, which several checkouts may share.
    """
    command = [*compiler, *flags, "-c", str(source)]
    folder = Path(os.environ.get("KERNEL_OBJECTS", "build/objects"))
    digest = hashlib.sha256(b"\0".join([" ".join(command).encode(), source.read_bytes(), state])).hexdigest()
    kept, made = folder / f"{digest}.o", source.with_suffix(".o")
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([*command, "-o", str(made)], check=True)
        shutil.copyfile(made, unfinished := kept.with_suffix(f".{os.getpid()}"))
        unfinished.replace(kept)
    shutil.copyfile(kept, made)
    return str(made)


setup(
    cmdclass={"build_ext": BuildKernels},
    # The headers travel as a package, so that cyxla.get_include() works from a wheel too.
    package_dir={"": "src", "cyxla.include.cyxla": "include/cyxla"},
    packages=[*find_packages("src"), "cyxla.include.cyxla"],
    package_data={
        "": ["*.pyi"],
        "cyxla": ["py.typed", "testing/data/*.zip"],
        "cyxla.include.cyxla": ["*.h", "*.hpp", "kernels/*/*.h", "aot/*.[ch]", "aot/python/*.[ch]"],
    },
    ext_modules=[
        *cythonize(
            [cython_extension(module, sources) for module, sources in CYTHON.items()],
            include_path=["pyx"],
            build_dir="build",
            compiler_directives={"language_level": 3},
        ),
        *(pybind_extension(module, sources) for module, sources in PYBIND.items()),
    ],
)
