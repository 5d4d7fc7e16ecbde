# Signatures of calls: nodes of the arguments, and guards of values from outside. A part of dispatch.pyx.

@cython.final
cdef class CallSignature:
    """A signature of calls, with its compiled program.

    Parameters
    ----------
    compiled : Compiled
        Program of the signature.
    nargs : int
        Number of positional arguments.
    kwnames : tuple of str
        Names of the keyword arguments.
    nodes : list of tuple
        Nodes ``(kind, count, slot, key, names)`` in the order of the arguments, containers before their parts. The key
        of an array is its ``(dtype, sizes, axes)``, see `axes_of`, and that of `Node.NUMBERS` the node of each number;
        `slot` is the number of an input of the program, or -1 for a list of numbers that is not needed as an array.
    inputs : int
        Number of inputs of the program.
    guards : list of tuple, optional
        Values from outside that the program depends on: ``(source, of, owner, key, node, same_as, other_than)`` as in
        `Guard`, where `node` is a number among `nodes`, behind those of the arguments.
    open_dims : list of tuple, optional
        Dimensions of inputs of any size within bounds: ``(slot, dim, least, bound, same)`` as in `OpenDim`. Nodes have
        -1 in place of their sizes.
    """

    cdef SignatureNode *nodes
    cdef Guard *guards
    cdef npy_intp *dims
    cdef OpenDim *open_dims
    cdef Py_ssize_t nargs, inputs, n_guards, n_open
    cdef bint is_flat  # True if each argument is an array or a number
    cdef Py_ssize_t borrowed  # number of inputs whose references are the caller's: those of flat arguments
    cdef tuple kwnames
    cdef list kept_alive
    cdef readonly Compiled compiled

    def __init__(
        self, Compiled compiled, Py_ssize_t nargs, tuple kwnames, list nodes, Py_ssize_t inputs, list guards=None,
        list open_dims=None,
    ):
        self.compiled, self.nargs, self.kwnames, self.inputs = compiled, nargs, kwnames, inputs
        self.kept_alive = [nodes, guards]
        of_arguments = nodes[:min([guard[4] for guard in guards])] if guards else nodes
        self.is_flat = all(row[0] <= Node.COMPLEX for row in of_arguments)
        self.borrowed = len(of_arguments) if self.is_flat else 0
        self.set_guards(guards or [])
        self.set_open_dims(open_dims or [])
        self.nodes = <SignatureNode *> PyMem_Calloc(len(nodes) + 1, sizeof(SignatureNode))
        arrays = [row[3] for row in nodes if row[0] <= Node.SCALAR]
        self.dims = <npy_intp *> PyMem_Calloc(sum(2 * len(sizes) for _, sizes, _ in arrays) + 1, sizeof(npy_intp))
        if self.nodes == NULL or self.dims == NULL:
            raise MemoryError
        cdef npy_intp *next_dim = self.dims
        cdef SignatureNode *node = self.nodes
        for kind, count, slot, key, names in nodes:
            node.kind, node.count, node.slot = kind, count, slot
            node.key, node.names = <PyObject *> key, <PyObject *> names
            if kind <= Node.SCALAR:
                node.descr = <PyArray_Descr *> <PyObject *> key[0]
                node.type_num, node.ndim, node.dims = key[0].num, len(key[1]), next_dim
                for size in key[1]:
                    next_dim[0] = size
                    next_dim += 1
                if key[2] is not None:
                    node.axes = next_dim
                    for axis in key[2]:
                        next_dim[0] = axis
                        next_dim += 1
            elif kind == Node.NUMBERS:
                node.type_num = key
            node += 1

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.dims)
        PyMem_Free(self.guards)
        PyMem_Free(self.open_dims)

    cdef int set_guards(self, list guards) except -1:
        self.n_guards = len(guards)
        self.guards = <Guard *> PyMem_Calloc(len(guards) + 1, sizeof(Guard))
        if self.guards == NULL:
            raise MemoryError
        cdef Guard *guard = self.guards
        for source, of, owner, key, node, same_as, other_than in guards:
            guard.source, guard.of, guard.node = source, of, node
            guard.same_as, guard.other_than = same_as, other_than
            guard.key = <PyObject *> key
            if source == Source.GLOBAL:
                guard.owner, guard.builtins = <PyObject *> owner[0], <PyObject *> owner[1]
            else:
                guard.owner = <PyObject *> owner
            guard += 1
        return 0

    cdef int set_open_dims(self, list open_dims) except -1:
        cdef Py_ssize_t k
        self.n_open = len(open_dims)
        self.open_dims = <OpenDim *> PyMem_Calloc(len(open_dims) + 1, sizeof(OpenDim))
        if self.open_dims == NULL:
            raise MemoryError
        for k, (slot, dim, least, bound, same) in enumerate(open_dims):
            self.open_dims[k].slot, self.open_dims[k].dim = slot, dim
            self.open_dims[k].least, self.open_dims[k].bound, self.open_dims[k].same = least, bound, same
        return 0

    cdef bint matches(
        self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs, Py_ssize_t capacity,
        PyObject **out,
    ):
        """Return True if arguments have this signature; `inputs` then has them in the order of the program.

        All but the first `borrowed` are new references, which `release_inputs` drops.
        """
        cdef Py_ssize_t k, count = nargs
        if nargs != self.nargs or self.inputs > capacity:
            return False
        if kwnames != NULL:
            if <PyObject *> self.kwnames != kwnames and self.kwnames != <tuple> kwnames:
                return False
            count += PyTuple_GET_SIZE(<tuple> kwnames)
        elif PyTuple_GET_SIZE(self.kwnames):
            return False
        cdef const SignatureNode *at = self.nodes
        for k in range(self.borrowed, self.inputs):
            inputs[k] = NULL
        if self.is_flat:
            for k in range(count):
                if not is_leaf(args[k], &at[k]):
                    return False
                inputs[at[k].slot] = args[k]
        else:
            for k in range(count):
                if at.kind == Node.OUT:
                    out[0] = args[k]
                    at += 1
                elif not match_node(&at, args[k], inputs):
                    self.release_inputs(inputs)
                    return False
        if not self.match_open_dims(inputs) or (self.n_guards and not self.match_guards(args, inputs)):
            self.release_inputs(inputs)
            return False
        return True

    cdef bint match_open_dims(self, PyObject **inputs) noexcept:
        """Return True if the sizes of the open dimensions are within their bounds, and equal where they must be."""
        cdef Py_ssize_t k
        cdef npy_intp size = 0, before
        cdef const OpenDim *at
        for k in range(self.n_open):
            at = &self.open_dims[k]
            before = size
            size = PyArray_DIMS(<PyArrayObject *> inputs[at.slot])[at.dim]
            if size < at.least or size > at.bound or (at.same and size != before):
                return False
        return True

    def fetch(self, tuple args):
        """Return the inputs from outside, in a call that passes these values; None if a guard does not hold."""
        cdef Py_ssize_t k
        cdef PyObject **inputs = <PyObject **> PyMem_Calloc(self.inputs + 1, sizeof(PyObject *))
        if inputs == NULL:
            raise MemoryError
        cdef PyObject **passed = <PyObject **> PyMem_Calloc(len(args) + 1, sizeof(PyObject *))
        try:
            if passed == NULL:
                raise MemoryError
            for k in range(len(args)):
                passed[k] = PyTuple_GET_ITEM(args, k)
            if not self.match_guards(passed, inputs):
                return None
            return [<object> inputs[k] for k in range(self.inputs)]
        finally:
            self.release_inputs(inputs)
            PyMem_Free(inputs)
            PyMem_Free(passed)

    cdef bint match_guards(self, PyObject *const *args, PyObject **inputs):
        """Compare the values from outside, and add the arrays and numbers among them to `inputs`."""
        cdef PyObject *inline[MAX_GUARDS]
        cdef PyObject **values = inline
        cdef Py_ssize_t k, done = 0
        cdef const Guard *guard
        cdef const SignatureNode *node
        cdef bint is_match = True
        if self.n_guards > MAX_GUARDS:
            values = <PyObject **> PyMem_Malloc(self.n_guards * sizeof(PyObject *))
            if values == NULL:
                raise MemoryError
        while is_match and done < self.n_guards:
            guard = &self.guards[done]
            values[done] = find_value(guard, args, values)
            node = &self.nodes[guard.node]
            if guard.same_as >= 0:
                is_match = values[done] == values[guard.same_as]
            elif guard.other_than >= 0:
                is_match = values[done] != values[guard.other_than]
            elif values[done] == NULL:
                is_match = node.kind == Node.MISSING
            else:
                is_match = match_node(&node, values[done], inputs)
            done += 1
        for k in range(done):
            Py_XDECREF(values[k])
        if values != inline:
            PyMem_Free(values)
        return is_match

    cdef void release_inputs(self, PyObject **inputs) noexcept:
        cdef Py_ssize_t k
        for k in range(self.borrowed, self.inputs):
            Py_XDECREF(inputs[k])
