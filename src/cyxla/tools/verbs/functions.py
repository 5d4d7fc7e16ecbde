"""``cyxla functions``: the functions of NumPy and SciPy that `cyxla.jit` compiles."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

HEAD = """# What `cyxla.jit` compiles

Written by `cyxla functions --markdown`.

A function decorated with `@cyxla.jit` is traced once for each signature of its arguments: it is called with tracers
that stand for arrays of a shape and dtype. Its operations become a program, which later calls run. Until the native
code of the program is compiled, prebuilt functions run it where possible, with the same bits
([prebuilt.md](prebuilt.md)). These parts of NumPy are supported:

* operators, methods and attributes of arrays: arithmetic, comparisons, `@`, `x.sum(axis=0)`, `x.T`, `x.astype(...)`;
* indexing of every kind (integers, slices, `...`, `None`, integer arrays, masks), and assignment:
  `x[i] = v`, `x[1:-1] += v`. Views share memory as in NumPy, and arrays among the arguments are written as by NumPy: in
  place where possible, and not at all by a run that fails; `x.at[i].set(v)` returns a new array;
* NumPy 2's dtypes: Python numbers are weak (NEP 50), float64 is the default;
* nested tuples, lists, dicts, dataclasses and None as arguments and results; text, dtypes, functions and enums in
  them are passed through; results may also hold new objects of your classes;
* lists of Python's numbers of one class, of any length: those of more than 32 numbers or 8 integers, and those whose
  length changes from call to call, are arrays of the program, which one program serves for all lengths. `for`, `len`,
  `sum`, `sorted`, `in`, indices, slices, comprehensions and NumPy's functions take them as they are, and loops may
  write elements; a list that the function changes otherwise is passed number by number, up to 1,000 of them. So are
  lists of lists of one length, of which loops may write elements (`m[i][j] = x`); where rows are exchanged or
  replaced, or a row with two names is written, the plain function runs. `x.tolist()` of more than 64 elements makes
  such a list of a vector, also of run-time size, and a list of lists of a matrix;
* Python's `if`, `for`, `while`, `and`, `or`, `not`, `assert` and their jumps, also on traced values
  ([control-flow.md](control-flow.md)); numbers among the arguments become static where their values are needed;
* `cyxla.cond`, `switch`, `while_loop`, `fori_loop`, `scan` and `map`;
* `cyxla.grad` and `cyxla.value_and_grad` of all of these ([gradients.md](gradients.md));
* random numbers of NumPy's global state (`np.random.normal`, `shuffle`, `seed`, ..), which each run draws from NumPy as
  the plain function does, and those from an `np.random.Generator` argument or from `cyxla.random`, with streams that
  differ from NumPy's.

## Sizes known at run time

Dimension sizes of an array may depend on values: `x[mask]`, `np.nonzero`, `np.where(mask)`, `np.unique` and
the other functions of sets, `np.compress`, `np.extract`, `np.delete`, `np.trim_zeros`, `np.repeat` with traced counts,
`x[lo:hi]` with traced bounds, `x[:i, :j]`, `np.arange(n)`, `np.zeros((n, m))`, `np.tri(n)`. The program computes with
an array padded to the greatest possible sizes and with the sizes, and the caller gets an array of the true sizes.
Supported are

* element-wise functions of such arrays with numbers, arrays that broadcast, and each other: sizes that are not the same
  value are compared in the run, and raise NumPy's error if they do not broadcast;
* reductions, sorts, searches, sets, products (`@`, `np.dot`, `np.outer`, `np.einsum` ..), quantiles, histograms,
  differences, joins (`np.array([x[m], y[m]])`, `np.r_`, `np.c_` ..), splits, reshaping, permutations, diagonals,
  triangles, grids and padding by known widths;
* `np.linalg` (`solve`, `inv`, `det`, `cholesky`, `eigh`, `svd`, `qr`, `lstsq`, `pinv`, norms ..) and `np.polyfit`, of
  padded matrices; `np.fft`, windows and frequencies; polynomials, `np.cross`, `np.piecewise`, `np.gradient`,
  `np.unravel_index`, `ufunc.reduceat`, `sliding_window_view`, and functions that write, such as `np.put`, `np.copyto`,
  `np.fill_diagonal` and `np.add.at`;
* indexing, slicing and assignment (`y[1:] = v`, `x[mask] = y`, `x[np.ix_(a, b)]`), views included;
* loops over their elements or rows, or that carry such arrays, whose greatest size does not grow; branches that leave
  an array with different sizes, or of `cyxla.cond`; `cyxla.grad`, `jvp`, `jacobian`, `vmap`, `map` and `scan`.

Slices whose bounds are so many elements apart, as `x[i:i + 3]`, have a known size. In a function in which one reaches
beyond an end of its axis, where NumPy's is shorter, all of them have sizes known at run time from that call on.

`y.size`, `y.shape[0]` and `len(y)` are traced integers. All other functions raise `TraceError`. Decompositions of a
padded matrix take the time of the greatest size, and where their vectors are not unique, they may be other ones than
NumPy's. Transforms of run-time length are convolutions with a chirp, which take a few times as long as those of known
length. A new
shape may be any that NumPy accepts; elements are moved unless the shapes agree but for factors that are known, as
`x.reshape(n, 4, -1)` of an array of shape (n, 64) does. Greatest sizes multiply, so that an array of several such
dimensions may be too large for a program; if there is no memory for the arrays of a call, NumPy runs the function, with
a `FallbackWarning`. The greatest size must be known: that of `np.arange(n)` follows from the range of `n`, as of
`np.count_nonzero(mask)`, `y.size` or `np.minimum(n, 100)`. `out=` of other functions than ufuncs is refused, and
`np.squeeze` without `axis=` raises an error if the size happens to be one. `np.unique_values` returns sorted elements.
`np.bincount` without `minlength=` counts integers below 65,536, or in the range of their dtype.

## Results that NumPy computes

Programs compute with bools, integers, floats of up to 64 bits and complex numbers. Where a function makes an array of
another dtype, as `x.astype(str)`, `np.concatenate((x, y), dtype=">f8")`, `np.sum(x, dtype=np.longdouble)` or
`x + np.longdouble(1)`, NumPy computes it from results of the program, after each run. So it does for
`np.histogram(x, "auto")`, whose number of bins has no bound. Such results can be returned; any other use raises
`UnimplementedError`. Arrays of these dtypes whose values are known while tracing can be returned as well.

## Any size of an argument

A function is compiled for each size of its arguments, until a dimension has had two sizes, all else being equal: for
the third size (`sizes="auto"`), it is compiled for any size of that dimension, up to a bound of at least 4096 and four
times the size. The bound is at least 1024 or 256 if arrays with several dimensions of any size, as `x @ x.T`, would
take more than 8 MiB; greater sizes are compiled for with greater bounds. Calls with other sizes then compile nothing,
and take time in proportion to their size. The bound is one or two powers of two above the size if an array that would
take more than 128 KiB is changed by a loop, as in `a[k:, k:] -= ..`, flattened, as in `np.median(x)` of a matrix, or
computed whole although several of its sizes are known at run time, as in `np.sort(a[r][:, c])`: the function is then
compiled anew for much greater sizes, and for much smaller ones if the array is still as large. Dimensions that had
equal sizes are taken to be equal; calls in which they differ are compiled apart. A size that recurs, so that its calls
take ten times as long as a compilation and a second at least, gets a program of its own; there are up to four of them.
`sizes="any"` compiles for any size from the second size on, never for one that recurs, and raises the reason if it
cannot be done. `sizes="exact"` compiles for each size.

Arguments may be in any order in memory, as `x.T` or the columns of a data frame; each order has programs of its own.
Within the function, such an argument is an array whose sizes are known at run time, as above. What cannot be traced so,
such as `np.roots(x)`, is compiled for each size, as are functions that change containers or write to arrays from
outside. A call for which the program fails, as for an index out of range or a size of 1 that is broadcast, is repeated
with the program for exactly its sizes.

## Type checkers

`cyxla.jit` keeps the signature of the function for mypy, pyright and editors: arguments and results of calls, also of
methods, are checked as those of the function, with `out=` as a further argument, and so are the options of `jit`.
`typing` has no way to say this of a `@classmethod` over `@cyxla.jit`, whose calls checkers refuse, and pyright none of
a `@property`.

## State outside of a function

A compiled function gives what the plain function gives, written arguments and changed state included.

* Arrays among the arguments are written in place where possible: without a copy if they are contiguous and the program
  cannot fail, else through a temporary. An exception leaves them as they were. Where a written array is read-only, the
  plain function runs; so it does where a written array shares memory with another one, unless both are the same array,
  or the write is the last thing that the function does, as in `np.add(x, 1, out=y)`. Of arrays that are not contiguous,
  such as `x[::2]`, it may depend on their strides whether a write to `x.ravel()` reaches them: there, too, it runs.
* Lists, dicts and dataclasses among the arguments (`d["k"] = v`, `lst.append(v)`, `obj.attr = v`) are changed after
  each run. Such calls take some microseconds more.
* Arrays from globals, closures, attributes, defaults and `functools.partial`, also those of your modules, classes and
  functions, are read at every call, without a copy, and written as arguments are.
  Numbers, texts, functions and objects from there are compared at every call, in C: the function is traced again if one
  of them has changed, or if a method of one of your classes, or the code or a default of one of your functions, was
  replaced, as notebooks do when they load a module again. A number that changes becomes an argument of the program.
  Assignments to them (`global n`, `self.w = ..`) and to items of lists and dicts from outside are made after each run.
* Objects of your classes are seen and changed as by the plain function, also by methods that Python calls itself
  (`obj[k]`, `obj + x`, properties, `with obj`), and those that are arguments. One program serves all objects of a
  class whose attributes are arrays, numbers and texts; of objects that hold other ones, each has its own. A
  `cached_property`, and a function of `functools.lru_cache`, is computed by NumPy, once, and keeps no traced value.
  Iterators, sets, `deque`, `Counter` and other classes derived from lists and dicts, `MappingProxyType`, weak
  references, context variables, `vars(obj)`, and methods of generators, containers and other objects of C
  (`draw = rng.normal`, `take = w.pop`), from outside, are reasons to run the plain function.
* Objects that a function makes and returns, alone or in containers, are new in each call, as are lists: of the same
  class, with the attributes that the run computes, made without calling `__init__`. An object that is returned twice
  is one object. Their classes are those of your modules whose objects hold attributes alone, in `__dict__` or
  `__slots__`. Classes that a function defines, those with a `__new__`, `__setattr__` or `__del__` of their own, an
  `__init__` that keeps or counts the objects elsewhere, weak references, and `id` are reasons to run the plain
  function, as is a new object that is kept in an argument or outside. A traced condition may choose between two new
  objects of a class that have one name each, and no loop of the program makes them.
* Of a function whose source is not known, arrays from outside are constants, for which only rebinding is seen, and a
  function that changes anything outside is not compiled; nor is one that calls such a function.
* Python's numbers that are traced give Python's results: a division by zero raises `ZeroDivisionError` at the end of
  the run; the plain function runs instead, where an integer exceeds 64 bits, and where Python's power is an integer, a
  float or a complex number by its values. With `fallback="error"`, such runs raise `OverflowError`, and
  a number that a loop makes `float` or `np.float64` by the values is of the latter class.
* A function with a `try` or `with` statement around an operation that fails in a run is called again as a plain
  function, which may catch the error.

What cannot be compiled runs as plain NumPy, with one `cyxla.errors.FallbackWarning` for each cause, which names the
line and the reason; `explain()` repeats it. With `fallback="error"`, or `CYXLA_FALLBACK=error`, the reason is raised
instead. An error of tracing that the function itself catches counts as such a reason.

An error that tracing finds, such as shapes that do not match or a constant index that is out of range, would come in
every run. The plain function runs up to it, so that it prints and changes what precedes the error.

Tracing comes to an end: a function runs plainly for new arguments once it was specialised for 64 numbers, texts or
structures of containers, or once its traces have taken ten seconds in vain (`CYXLA_TRACE_SECONDS`).

## Differences from NumPy

| subject | NumPy | a compiled function |
|---|---|---|
| errors that depend on values | are raised at once | have the same class and message, and are raised at the end of \
the call; with `bounds="clamp"` indices out of range are moved into range, with `"unchecked"` not checked |
| RuntimeWarning | for a division by zero, overflow, NaN and the like | none, and `np.errstate` has no effect; \
with `"raise"` inside a function, the plain one runs; DeprecationWarnings are issued once |
| sums | are added pairwise | may be added in another order, the same in each run on one machine |
| equal elements in `argsort` | in an order that depends on the processor | in their own order |
| Python numbers | keep their class | have the class that a loop may give them: `s = 0`, to which a loop adds \
floats under a condition, comes back as 0.0 |
| views | share memory with arguments | results are contiguous arrays of their own, unless they are arguments, or one \
array twice; so are arrays, returned or bound outside, of which a condition decides whether they \
are new; `order=` counts, and results are read-only where NumPy's are |
| `a[1] = a[:, 2]`, vectors of different strides that overlap | may read elements that it has just \
written (as of NumPy 2.4) | reads all elements first, as NumPy's documentation says |
| Fourier transforms of infinities | NaN where its steps subtract them | NaN where its own steps do, which differ |
| linear algebra with infinities | as in the steps of its BLAS and LAPACK: the determinant may be 0, a product of \
complex matrices NaN | NaN where the sums and products of the definition, or its own steps, are |
| memory order | that of the operands | the same, but row-major for integer array indexing, loops and branches |
| `x[i]` of a 0-d array `i` | is a copy | shares memory, as with an int |
| random numbers | of the generator's stream | of another stream, for a `Generator` that is an argument |
| containers in results | may be those passed | lists, dicts and dataclasses that were passed are, others are new; so \
is a list that a loop both appends to another one and leaves in a variable |
| `logging`, writes to files | in every run | once, while it is traced; `print(x)` prints in every run, after errors \
that depend on values, too |
| texts of values | `str(x)`, f-strings | printed, or messages of exceptions; else the plain function runs |
| subclasses of `np.ndarray` | have operators of their own, and results of their class | run the plain function, \
also as `self`; so do masked arrays, `np.matrix` and objects of pandas; views and copies of an `np.memmap` are arrays |
| `type(x)` | `np.ndarray` | the same in the program, `cyxla.TracedArray` in libraries; so is `isinstance` |
| SciPy | | functions that are written with NumPy run, those that call compiled code are named by the error; they may \
call jitted functions: `solve_ivp(cyxla.jit(f), ..)` |
"""


class Entry(NamedTuple):
    """An entry of the list: a function with its subject and a note on limits."""

    subject: str
    name: str
    note: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("pattern", nargs="?", default="*", help="show names of this pattern, such as 'linalg.*'")
    parser.add_argument("--count", action="store_true", help="only print the number of functions")
    parser.add_argument("--markdown", action="store_true", help="print the whole list as docs/numpy.md")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    if args.markdown:
        print(markdown(), end="")
        return 0
    matching = [entry for entry in entries() if fnmatchcase(entry.name, args.pattern)]
    if args.count:
        print(len(matching))
        return 0
    for entry in matching:
        print(f"{entry.name:32s} {entry.subject:16s} {entry.note}".rstrip())
    return 0


def entries() -> list[Entry]:
    """Return all functions, sorted by subject and name."""
    return sorted({*_functions(), *_ufuncs(), *_special()})


def _functions() -> Iterator[Entry]:
    from cyxla.numpy.tracing.registry import rows

    for row in rows().values():
        yield Entry(row.implementation.__module__.rpartition(".")[2], row.name, row.note)


def _ufuncs() -> Iterator[Entry]:
    from cyxla.numpy.ufuncs.table import known

    return (Entry("ufuncs", ufunc.__name__, "") for ufunc in known())


def _special() -> Iterator[Entry]:
    from cyxla.numpy.ufuncs.scipy_ufuncs import names

    return (Entry("scipy.special", name, "") for name in names())


def markdown() -> str:
    """Return the list as a page."""
    all_entries = entries()
    lines = [HEAD, f"## The {len(all_entries)} functions", ""]
    for subject in dict.fromkeys(entry.subject for entry in all_entries):
        entries_of_subject = [entry for entry in all_entries if entry.subject == subject]
        lines += [f"**{subject}**: {', '.join(f'`{entry.name}`' for entry in entries_of_subject)}", ""]
    note_lines = [f"| `{entry.name}` | {entry.note} |" for entry in all_entries if entry.note]
    if note_lines:
        lines += ["## With limits", "", "| function | limit |", "|---|---|", *note_lines]
    return "\n".join(lines) + "\n"
