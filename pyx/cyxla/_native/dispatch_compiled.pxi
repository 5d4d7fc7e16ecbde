# Compiled programs: runs on the inputs of a call, and their results. A part of dispatch.pyx.

cdef class Compiled:
    """The compiled program of one signature, for all forms in which its arguments can be passed.

    A subclass defines the methods ``run_slowly(arguments, out, passed)``, where `arguments` have permuted dimensions
    and `passed` do not, ``fail(code, number)`` and, if `finishes` is set, ``finish(result)``. It may set `padded_bytes`,
    and then defines ``require_memory()``, which precedes each run in C.

    Parameters
    ----------
    executable : Executable
        Executable that takes the arrays and numbers among the arguments, and returns one array or a tuple.
    plan : tuple
        Structure of the container of results: ``(0,)`` is a leaf, ``(1, parts)`` a tuple, ``(2, parts)`` a list,
        ``(3, keys, parts)`` a dict, ``(4,)`` is None, ``(5, build, key, parts)`` anything else, ``(6, k)`` input k
        itself, or a leaf, which are numbered after the inputs, and ``(7, build, dimensions, parts)`` an array and its
        sizes at run time in some dimensions.
    fails : bool
        True if the last result is a failure code, s64[2].
    rank0 : bytes
        Type of each result of rank 0: 0 for a NumPy scalar, 1 for an array, 2 for a Python number.
    input_axes : tuple of (tuple of int or None), optional
        Permutation of each input's dimensions for the program; None for one or all inputs without a permutation.
    layouts : tuple of (tuple of int or None, bool), optional
        Permutation of each result's dimensions, and True if the result is writeable; None if all results are returned
        as the program computes them.
    spectra : tuple of (int, int), optional
        Complex results that become real arrays if all imaginary parts of another result are zero: pairs of the index
        of such a result and the index of that other result.
    writes : tuple of int, optional
        Inputs that are written: their new values are the last results of the program, before the failure.
    dense : tuple of int, optional
        Inputs that must be contiguous in memory, in the order of `input_axes`.
    finishes : bool
        True if the result goes through ``finish``, which changes objects from outside.
    takes_passed : bool
        True if the dispatcher's ``run_with_passed`` runs the program, which needs the values passed.
    plain : bool
        True if no program runs, but ``call_plainly`` of the dispatcher.
    direct : callable, optional
        Function that is called with the arguments as they are passed, in place of ``call_plainly``.
    """

    cdef readonly object executable, direct
    cdef readonly tuple plan, input_axes, layouts, spectra
    cdef readonly bint fails, finishes, takes_passed, plain
    cdef readonly tuple writes, dense
    cdef bint is_plain_run  # True if a call runs the program on its inputs, and does nothing else
    cdef bint passes_arguments  # True if an argument itself is among the results
    cdef Py_ssize_t n_writes
    cdef Py_ssize_t *written  # numbers of the inputs that are written
    cdef Program program  # None if the executable must be called from Python
    cdef Py_ssize_t n_results
    cdef bint single, flat
    cdef bint unchanged  # True if each array of the results is returned as the program computes it
    cdef readonly bytes rank0
    cdef public unsigned long long stamp  # time of the last call, on the clock of the dispatcher
    cdef public size_t padded_bytes  # of the arrays of a run, if some are large since they are padded, else 0

    def __init__(
        self, executable, tuple plan, bint fails, bytes rank0, tuple input_axes=None, tuple layouts=None,
        tuple spectra=None, tuple writes=(), bint finishes=False, bint takes_passed=False, bint plain=False,
        direct=None, tuple dense=(),
    ):
        self.writes, self.n_writes, self.dense = writes, len(writes), dense
        self.finishes, self.takes_passed = finishes, takes_passed
        self.plain, self.direct = plain, direct
        self.written = <Py_ssize_t *> PyMem_Calloc(len(writes) + 1, sizeof(Py_ssize_t))
        if self.written == NULL:
            raise MemoryError
        for k, number in enumerate(writes):
            self.written[k] = number
        self.is_plain_run = not (plain or takes_passed or finishes or writes or dense) and input_axes is direct is None
        self.passes_arguments = has_arguments(plan)
        self.plan, self.fails, self.rank0 = plan, fails, rank0
        self.input_axes, self.layouts, self.spectra = input_axes, layouts, spectra
        self.unchanged = layouts is None and spectra is None
        self.single = plan[0] == 0
        self.flat = plan[0] == 1 and all(part[0] == 0 for part in plan[1])
        self.use(executable)

    def __dealloc__(self):
        PyMem_Free(self.written)

    def use(self, executable):
        """Replace the executable by an equivalent one; running calls finish with the old one."""
        cdef Program program = None
        if isinstance(executable, Program) and type(executable).__call__ is Program.__call__:
            program = executable
            if program.nested or program.watched or program.n_buffers > MAX_INLINE:
                program = None
            elif program.donations is not None and not self.donates_writes_alone(program):
                program = None
            else:
                self.n_results = program.n_outputs - self.fails - self.n_writes
        self.executable, self.program = executable, program

    cdef bint donates_writes_alone(self, Program program):
        """Return True if the only donated inputs are written ones, each to its own new value."""
        cdef Py_ssize_t first = program.n_outputs - self.fails - self.n_writes
        return program.donations.items() <= {(k, first + n) for n, k in enumerate(self.writes)}

    def __call__(self, list leaves, out=None, list results=None):
        """Run on the arrays and numbers among the arguments, in the order of the program's parameters.

        Where an argument itself is a result, it is the one of `results`, by default of `leaves`.
        """
        cdef Py_ssize_t k, count = len(leaves)
        cdef PyObject *inputs[MAX_INLINE]
        cdef PyObject *passed[MAX_INLINE]
        cdef list permuted = leaves
        if results is None:
            results = leaves
        if self.input_axes is not None:
            permuted = [leaf if axes is None else leaf.transpose(axes) for leaf, axes in zip(leaves, self.input_axes)]
        if count > MAX_INLINE:
            result = self.run_slowly(permuted, out, results)
        else:
            for k in range(count):
                inputs[k], passed[k] = PyList_GET_ITEM(permuted, k), PyList_GET_ITEM(results, k)
            result = self.run_in_order(inputs, passed, count, out)
        return self.finish(result) if self.finishes else result

    cdef object run(self, PyObject **inputs, Py_ssize_t count, object out):
        if self.input_axes is not None or self.finishes:
            return self([<object> inputs[k] for k in range(count)], out)
        return self.run_in_order(inputs, inputs, count, out)

    cdef object run_in_order(self, PyObject **inputs, PyObject **passed, Py_ssize_t count, object out):
        """Run on inputs whose dimensions are permuted already; `passed` are those that were passed."""
        cdef void *bufs[MAX_INLINE]
        cdef char memory[(MAX_INLINE + 4) * CELL_BYTES]
        cdef Program program = self.program  # another thread may replace self.program meanwhile
        if program is None or out is not None:
            return self.run_slowly(
                [<object> inputs[k] for k in range(count)], out, [<object> passed[k] for k in range(count)]
            )
        memcpy(bufs, program.template, program.n_buffers * sizeof(void *))
        return self.run_on(program, bufs, <char *> ((<uint64_t> memory + 63) & ~<uint64_t> 63), inputs, passed)

    cdef object run_on(self, Program program, void **bufs, char *cells, PyObject **inputs, PyObject **passed):
        """Run on buffers; the cell of 16 bytes with the number of a buffer holds its value if it has rank 0."""
        cdef Py_ssize_t k
        cdef Spec *spec
        cdef object converted_inputs = None, only = None
        cdef list arrays = None
        if self.padded_bytes:
            self.require_memory()
        for k in range(program.n_inputs):
            spec = &program.specs[k]
            if matches(inputs[k], spec):
                bufs[k] = PyArray_DATA(<PyArrayObject *> inputs[k])
            elif spec.ndim == 0 and write_number(cells + k * CELL_BYTES, inputs[k], spec):
                bufs[k] = cells + k * CELL_BYTES
            else:
                converted = arguments.convert(<object> inputs[k], *program.inputs[k], f"argument {k}")
                bufs[k] = PyArray_DATA(<PyArrayObject *> <PyObject *> converted)
                converted_inputs = (converted_inputs, converted)
        spec = &program.specs[program.n_inputs]
        cdef Py_ssize_t first = 0
        if self.single and self.unchanged and spec.ndim:  # the most frequent case needs no list
            only = new_array(spec)
            bufs[program.n_inputs] = PyArray_DATA(<PyArrayObject *> <PyObject *> only)
            first = 1
        for k in range(first, self.n_results):
            if spec[k].ndim == 0:
                bufs[program.n_inputs + k] = cells + (program.n_inputs + k) * CELL_BYTES
                continue
            array = new_array(&spec[k])
            bufs[program.n_inputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            if arrays is None:
                arrays = []
            arrays.append(array)
        cdef Py_ssize_t last = program.n_inputs + self.n_results + self.n_writes
        cdef int64_t *failure = <int64_t *> (cells + last * CELL_BYTES)
        if self.fails:
            bufs[last] = failure
        cdef list written = self.prepare_writes(program, bufs, inputs) if self.n_writes else None
        program.execute(bufs, None, None, None)  # the program is not watched
        if self.fails and failure[0] != 0:
            self.fail(failure[0], failure[1])
        if written is not None:
            self.copy_writes(inputs, written)
        if first:
            return only
        if self.single:
            if spec.ndim:
                if self.layouts is not None:
                    arrays[0] = with_layout(arrays[0], self.layouts[0])
                return arrays[0] if self.spectra is None else drop_zero_imaginary(arrays, self.spectra)[0]
            return self.unbox(bufs[program.n_inputs], spec, 0)
        return self.container(program, bufs, arrays, passed)

    cdef list prepare_writes(self, Program program, void **bufs, PyObject **inputs):
        """Set the buffers of inputs' new values, and return the arrays that must be copied to the inputs.

        A donated input is overwritten in place, unless the program cannot write to its memory.
        """
        cdef Py_ssize_t n, k, output
        cdef list copied = None
        cdef PyArrayObject *target
        for n in range(self.n_writes):
            k, output = self.written[n], program.n_inputs + self.n_results + n
            target = <PyArrayObject *> inputs[k]
            donated = program.donations is not None and k in program.donations
            if donated and matches(inputs[k], &program.specs[k]) and PyArray_ISALIGNED(target):
                bufs[output] = bufs[k]
                continue
            array = new_array(&program.specs[output])
            if donated:
                memcpy(PyArray_DATA(<PyArrayObject *> <PyObject *> array), bufs[k], program.specs[k].bytes)
                bufs[k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            bufs[output] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            if copied is None:
                copied = [None] * self.n_writes
            copied[n] = array
        return copied

    cdef int copy_writes(self, PyObject **inputs, list written) except -1:
        cdef Py_ssize_t n
        for n in range(self.n_writes):
            if written[n] is not None:
                PyArray_CopyInto(<PyArrayObject *> inputs[self.written[n]], <PyArrayObject *> <PyObject *> written[n])
        return 0

    cdef bint may_run(self, PyObject **inputs, Py_ssize_t count):
        """Return True if inputs to write are writeable, and share no memory with others, and `dense` ones are so."""
        cdef Py_ssize_t n, k
        cdef PyObject *target
        for k in self.dense:
            if not is_dense(<object> inputs[k], None if self.input_axes is None else self.input_axes[k]):
                return False
        for n in range(self.n_writes):
            target = inputs[self.written[n]]
            if not PyArray_Check(target) or not PyArray_ISWRITEABLE(<PyArrayObject *> target):
                return False
            for k in range(count):
                if k != self.written[n] and PyArray_Check(inputs[k]) and overlap(target, inputs[k]):
                    return False
        return True

    def check_inputs(self, list leaves):
        """Return True if inputs to write are writeable, and share no memory with others, and `dense` ones are so."""
        cdef PyObject **inputs = <PyObject **> PyMem_Malloc((len(leaves) + 1) * sizeof(PyObject *))
        if inputs == NULL:
            raise MemoryError
        try:
            for k in range(len(leaves)):
                inputs[k] = PyList_GET_ITEM(leaves, k)
            return self.may_run(inputs, len(leaves))
        finally:
            PyMem_Free(inputs)

    cdef object container(self, Program program, void **bufs, list arrays, PyObject **passed):
        cdef Py_ssize_t k, at = 0
        cdef Spec *spec = &program.specs[program.n_inputs]
        cdef list leaves = []
        for k in range(self.n_results):
            if spec[k].ndim:
                leaves.append(arrays[at] if self.layouts is None else with_layout(arrays[at], self.layouts[k]))
                at += 1
            else:
                leaves.append(self.unbox(bufs[program.n_inputs + k], &spec[k], k))
        if self.spectra is not None:
            drop_zero_imaginary(leaves, self.spectra)
        if self.flat:
            return tuple(leaves)
        cdef list arguments = None
        if self.passes_arguments:
            arguments = [<object> passed[k] for k in range(program.n_inputs)]
            arguments += leaves
        return build_result(self.plan, iter(leaves), arguments, True)

    cdef object unbox(self, void *cell, const Spec *spec, Py_ssize_t k):
        """Return result `k`, of rank 0, as the type that NumPy returns."""
        cdef char rank0 = (<const char *> self.rank0)[k]
        if rank0 == 0:
            return PyArray_Scalar(cell, spec.descr, NULL)
        if rank0 == 2:
            return PyArray_Scalar(cell, spec.descr, NULL).item()
        array = new_array(spec)
        memcpy(PyArray_DATA(<PyArrayObject *> <PyObject *> array), cell, spec.bytes)
        return array
