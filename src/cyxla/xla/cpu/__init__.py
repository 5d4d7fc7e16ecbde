"""The platform cpu: HLO to C, to machine code, to a call.

`compiler` is the front door, `lowering` runs the passes and calls the planner, `emitters` is the table of emitters,
`dump` writes for people. The folders, each of which imports only from those below it:

* `autotune`: choice among variants of heavy kernels by measurement, on request;
* `prebuilt`: functions that come compiled with the package, and programs of them alone;
* `run`: executables, bound arguments, calls of Python, profiles;
* `entry`: the entry of a program, as C or as a recipe;
* `native`: compiler, compilation, disk cache, shared objects; `memory`: buffer assignment;
* `plan`: fusion, schedule;
* `convolution`, `scatter`, `calls`; `dot`, `reduce`, `fft`, `linalg`, `sort`, `rng`: one family of opcodes each;
* `loops`: index maps, loop IR, element-wise loops, epilogues, while loops in one kernel;
* `kernel`: kernels, arrays, groups, costs, calls of prebuilt functions;
* `c`: scalar expressions, prelude, kernel headers, instruction-set levels.
"""
