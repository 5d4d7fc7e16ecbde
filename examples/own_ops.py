"""An op in C++ (own_ops.cpp): built, loaded, called on arrays, and compiled as part of a graph."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import cyxla
from cyxla.core.framework import apply_op, load_op_library


def build(folder: str) -> Path:
    library = Path(folder, "libcyxlakernel_own_ops.so")
    source = Path(__file__).with_suffix(".cpp")
    command = ["c++", "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{cyxla.get_include()}", str(source)]
    subprocess.run([*command, "-o", str(library)], check=True)
    return library


def run(library: Path) -> None:
    print(", ".join(str(op_def) for op_def in load_op_library(library).ops))
    x = np.random.default_rng(0).normal(size=(3, 1000)).astype(np.float32)
    y = apply_op("MovingAverage", x, decay=0.95)
    print(f"standard deviations: {x.std():.3f}, of the averages {y.std():.3f}")

    graph = cyxla.Graph()
    with graph.as_default():
        fed = graph.placeholder("float", [None, 1000])
        average = apply_op("MovingAverage", fed * np.float32(2), decay=0.95)
        spread = cyxla.raw_ops.Sum(average * average, [1])
    for jit in ("off", "on"):
        with cyxla.Session(graph, jit=jit) as session:
            print(f'jit="{jit}": {np.round(session.run(spread, {fed: x}), 3)}')

    try:
        apply_op("MovingAverage", x[0])
    except cyxla.errors.InvalidArgumentError as error:
        print(error)


def main() -> None:
    if shutil.which("c++") is None:
        print("this example needs a compiler of C++")
        return
    with TemporaryDirectory() as folder:
        run(build(folder))


if __name__ == "__main__":
    main()
