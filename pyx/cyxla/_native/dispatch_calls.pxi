# Dispatch of a call to the program of its signature. A part of dispatch.pyx.

cdef class Dispatcher:
    """A function that caches a compiled program for each signature of its arguments.

    A subclass defines the method ``call_slowly(args, kwnames, hash)``, which returns the result, and adds
    signatures; and ``call_plainly(compiled, args, kwnames)``, which calls the function itself: always, or where a
    program would write to arrays that are read-only or share memory. ``call_after_failure(error, args, kwnames)`` calls
    it after a failed run, whose error the function may catch. ``run_with_passed(compiled, inputs, out, args,
    kwnames)`` runs a program that changes or returns values passed.

    Parameters
    ----------
    static_positions : bytes
        Flag for each positional argument, 1 if it is static.
    static_rest : bool
        True if all further positional arguments are static.
    static_names : set of str
        Names of static keyword arguments.
    """

    cdef vectorcallfunc vectorcall
    cdef CallSignature last
    cdef dict signatures  # list of CallSignature by hash
    cdef list open_signatures  # those with open dimensions, which no hash finds, in the order of their programs
    cdef Py_ssize_t count, max_inputs
    cdef bytes static_positions
    cdef bint static_rest
    cdef object static_names
    cdef readonly unsigned long long hits, clock

    def __cinit__(self):
        self.vectorcall = call
        self.signatures = {}
        self.open_signatures = []

    def set_static(self, bytes positions, bint rest, names):
        """Set the static arguments."""
        self.static_positions, self.static_rest, self.static_names = positions, rest, names or None

    def add_signature(self, uint64_t hash, CallSignature signature):
        """Add a signature under its hash; all others are dropped first if there are too many."""
        if self.count >= MAX_SIGNATURES:
            self.forget()
        self.max_inputs = max(self.max_inputs, signature.inputs)
        self.signatures.setdefault(hash, []).append(signature)
        self.count += 1

    def add_open_signature(self, CallSignature signature):
        """Add a signature with open dimensions, for calls that match no other; the oldest is dropped."""
        self.max_inputs = max(self.max_inputs, signature.inputs)
        self.open_signatures = [*self.open_signatures[1 - MAX_OPEN_SIGNATURES:], signature]

    def hash_of_call(self, tuple args, tuple kwnames):
        """Return the hash of a call, under which its signature is added."""
        cdef Py_ssize_t k, count = len(args)
        cdef PyObject **values = <PyObject **> PyMem_Malloc((count + 1) * sizeof(PyObject *))
        if values == NULL:
            raise MemoryError
        for k in range(count):
            values[k] = PyTuple_GET_ITEM(args, k)
        hash = self.hash_of(values, count - len(kwnames), <PyObject *> kwnames)
        PyMem_Free(values)
        return hash

    def forget(self, compiled=None):
        """Drop the signatures of a compiled program, or all of them."""
        self.last = None
        remaining = {} if compiled is None else {
            hash: [s for s in bucket if s.compiled is not compiled] for hash, bucket in self.signatures.items()
        }
        self.signatures = {hash: bucket for hash, bucket in remaining.items() if bucket}
        self.open_signatures = [
            s for s in self.open_signatures if compiled is not None and s.compiled is not compiled
        ]
        self.count = sum(map(len, self.signatures.values()))

    cdef uint64_t hash_of(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) noexcept:
        cdef Py_ssize_t k
        cdef uint64_t hash = nargs
        cdef int left = MAX_HASHED
        cdef PyObject *name
        for k in range(nargs):
            if self.is_static_position(k):
                hash = hash_key(hash, args[k])
            else:
                hash = hash_value(hash, args[k], 0, &left)
        if kwnames != NULL:
            for k in range(PyTuple_GET_SIZE(<tuple> kwnames)):
                name = PyTuple_GET_ITEM(<tuple> kwnames, k)
                hash = hash_key(hash, name)
                if self.static_names is not None and <object> name in self.static_names:
                    hash = hash_key(hash, args[nargs + k])
                else:
                    hash = hash_value(hash, args[nargs + k], 0, &left)
        return hash

    cdef inline bint is_static_position(self, Py_ssize_t k) noexcept:
        if self.static_positions is None:
            return False
        return (<char *> self.static_positions)[k] if k < len(self.static_positions) else self.static_rest

    cdef object invoke(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames):
        cdef PyObject *inline[MAX_INLINE]
        cdef PyObject **inputs = inline
        cdef Py_ssize_t capacity = max(MAX_INLINE, self.max_inputs)  # read once: other threads may increase max_inputs
        if capacity > MAX_INLINE:
            inputs = <PyObject **> PyMem_Malloc(capacity * sizeof(PyObject *))
            if inputs == NULL:
                raise MemoryError
        try:
            return self.dispatch(args, nargs, kwnames, inputs, capacity)
        finally:
            if inputs != inline:
                PyMem_Free(inputs)

    cdef object dispatch(
        self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs, Py_ssize_t capacity
    ):
        cdef PyObject *out = NULL
        cdef CallSignature signature = self.last
        cdef uint64_t hash = 0
        if traces == 0 or current_trace() is None:
            if signature is not None and signature.matches(args, nargs, kwnames, inputs, capacity, &out):
                return self.run(signature, args, nargs, kwnames, inputs, out)
            hash = self.hash_of(args, nargs, kwnames)
            for signature in self.signatures.get(hash, ()):
                if signature.matches(args, nargs, kwnames, inputs, capacity, &out):
                    self.last = signature
                    return self.run(signature, args, nargs, kwnames, inputs, out)
            for signature in self.open_signatures:
                if signature.matches(args, nargs, kwnames, inputs, capacity, &out):
                    return self.run(signature, args, nargs, kwnames, inputs, out)
        return self.call_slowly(passed_values(args, nargs, kwnames), names_of(kwnames), hash)

    cdef object run(
        self, CallSignature signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs,
        PyObject *out,
    ):
        cdef Compiled compiled = signature.compiled
        self.hits += 1
        self.clock += 1
        compiled.stamp = self.clock
        try:
            if compiled.is_plain_run and out == NULL:
                return compiled.run_in_order(inputs, inputs, signature.inputs, None)
            return self.run_otherwise(signature, args, nargs, kwnames, inputs, out)
        finally:
            signature.release_inputs(inputs)

    cdef object run_otherwise(
        self, CallSignature signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs,
        PyObject *out,
    ):
        """Run a program that writes to its inputs, or one for which the function itself or Python code runs."""
        cdef Py_ssize_t k
        cdef Compiled compiled = signature.compiled
        if compiled.direct is not None:
            return PyObject_Vectorcall(compiled.direct, args, nargs, kwnames)
        if compiled.plain or not compiled.may_run(inputs, signature.inputs):
            return self.call_plainly(compiled, passed_values(args, nargs, kwnames), names_of(kwnames))
        if compiled.takes_passed:
            return self.run_with_passed(
                compiled, [<object> inputs[k] for k in range(signature.inputs)], None if out == NULL else <object> out,
                passed_values(args, nargs, kwnames), names_of(kwnames),
            )
        return compiled.run(inputs, signature.inputs, None if out == NULL else <object> out)


cdef object names_of(PyObject *kwnames):
    """Return the names of the keyword arguments of a call."""
    return () if kwnames == NULL else <object> kwnames


cdef tuple passed_values(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames):
    """Return the values of a call, keywords after the others."""
    cdef Py_ssize_t k, count = nargs + (0 if kwnames == NULL else PyTuple_GET_SIZE(<tuple> kwnames))
    return tuple([<object> args[k] for k in range(count)])


cdef object call_with_frames(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames):
    return (<Dispatcher> self).invoke(args, PyVectorcall_NARGS(nargsf), kwnames)


cdef PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) noexcept:
    """Implement vectorcall; exceptions propagate without the frames of this file.

    A cast in place of an `except` clause saves the copy of the exception being handled, which each call would make.
    """
    cdef PyObject *result = (<vectorcallfunc> call_with_frames)(self, args, nargsf, kwnames)
    return call_after_error(<Dispatcher> self, args, PyVectorcall_NARGS(nargsf), kwnames) if result == NULL else result


cdef PyObject *call_after_error(
    Dispatcher self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames
) noexcept:
    """Return the result of the function itself if it may catch the error of the call, else raise that error."""
    cdef object result = None, error = None
    try:
        try:
            raise_current()
        except CaughtError as failure:
            result = self.call_after_failure(failure.error, passed_values(args, nargs, kwnames), names_of(kwnames))
    except BaseException as raised:
        error = raised
    if error is None:
        Py_INCREF(result)
        return <PyObject *> result
    try:
        trace = trim(error)
    except Exception:
        trace = error.__traceback__
    restore(type(error), error, trace)
    return NULL


cdef void restore(object kind, object error, object trace) noexcept:
    """Raise an exception with a traceback, or without one if it is None."""
    cdef PyObject *frames = NULL if trace is None else <PyObject *> trace
    Py_INCREF(kind)
    Py_INCREF(error)
    Py_XINCREF(frames)
    PyErr_Restore(<PyObject *> kind, <PyObject *> error, frames)


def enable_vectorcall(type cls):
    """Enable vectorcall for instances of a subclass of `Dispatcher`, so that calls create no tuple of arguments."""
    cdef Dispatcher sample = Dispatcher.__new__(Dispatcher)
    cyx_set_vectorcall(<PyTypeObject *> cls, <char *> &sample.vectorcall - <char *> <PyObject *> sample)


enable_vectorcall(Dispatcher)
