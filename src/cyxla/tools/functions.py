"""``cyxla functions``: the functions of NumPy and SciPy that `cyxla.jit` compiles."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

HEAD = """# What `cyxla.jit` compiles

Written by `cyxla functions --markdown`.

A function decorated with `@cyxla.jit` is called once for each signature of its arguments, with arrays that stand for
any arrays of a shape and dtype. What it does with them becomes a program; calls run the program. Until its native code
is made, prebuilt functions run it if they can, with the same bits ([prebuilt.md](prebuilt.md)). All this is NumPy's:

* operators, methods and attributes of arrays: arithmetic, comparisons, `@`, `x.sum(axis=0)`, `x.T`, `x.astype(...)`;
* indexing of every kind (integers, slices, `...`, `None`, integer arrays, masks known while tracing), and writing:
  `x[i] = v`, `x[1:-1] += v`. Parts of an array share its memory as in NumPy. The caller's arrays are never written;
  `x.at[i].set(v)` makes a new array;
* dtypes as NumPy 2 has them: Python's numbers are weak (NEP 50), float64 is the default;
* nested tuples, lists, dicts, dataclasses and None as arguments and results; text, dtypes, functions and enums in them
  stay what they are;
* Python's own `if`, `for` and `while` on what is known while tracing: sizes, dtypes, static arguments;
* `cyxla.cond`, `switch`, `while_loop`, `fori_loop`, `scan` and `map` for what is not;
* `cyxla.grad` and `cyxla.value_and_grad` of all of this ([gradients.md](gradients.md));
* random numbers: an `np.random.Generator` as an argument, or `cyxla.random`. The stream is another than NumPy's.

What differs from NumPy:

* results whose shape depends on values (`np.nonzero`, `np.unique`, `x[mask]` for a traced mask) raise
  `UnimplementedError`, which names what to use instead;
* an index that a call finds out of range raises `IndexError` when the call ends (`bounds="clamp"` moves it inside,
  `"unchecked"` trusts it);
* arrays from outside, such as globals, are constants: their values are those of the time of tracing. NumPy does not
  ask what it means to index one by a traced array, so `table[i]` is an error; `np.take(table, i)` and
  `np.asarray(table)[i]` are not. `np.asarray(table)` is a copy;
* `table += x` on an array from outside, or on an element of a container from outside, gives the name another array; the
  array itself is not written. Where the name is a global, and for `table[i] = x`, it is an error;
* `x[i]` by an array of no dimensions shares memory as by an int. Results without dimensions are arrays, scalars or
  Python's numbers where NumPy gives these, but of a few functions whose choice depends on values;
* `isinstance(x, np.ndarray)` is false of a traced array: it is a `cyxla.TracedArray`;
* what a run computes gives no RuntimeWarning: division by zero, overflow, invalid values, casts of nan, the mean of
  nothing, bad conditions of `np.polyfit` are silent, and `np.errstate` changes nothing. Warnings of what is deprecated
  are given, once, when the function is traced;
* NumPy's errors keep their class and words. Those that depend on values are raised when the call ends;
* results hold no gaps and share no memory, also where NumPy gives a view of an argument. Their dimensions lie in the
  order that NumPy chooses: `order=` counts, element-wise functions and most others keep the order of their operands.
  Results of index arrays, and those of loops and branches, lie in row-major order. What NumPy makes read-only, such as
  diagonals, is read-only;
* sums may be added in another order, so that their last bits differ; on one machine they are the same in every run.
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
    found = [entry for entry in entries() if fnmatchcase(entry.name, args.pattern)]
    if args.count:
        print(len(found))
        return 0
    for entry in found:
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
    found = entries()
    lines = [HEAD, f"## The {len(found)} functions", ""]
    for subject in dict.fromkeys(entry.subject for entry in found):
        here = [entry for entry in found if entry.subject == subject]
        lines += [f"**{subject}**: {', '.join(f'`{entry.name}`' for entry in here)}", ""]
    noted = [f"| `{entry.name}` | {entry.note} |" for entry in found if entry.note]
    if noted:
        lines += ["## With limits", "", "| function | limit |", "|---|---|", *noted]
    return "\n".join(lines) + "\n"
