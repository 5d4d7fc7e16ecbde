"""Calls of compiled programs on NumPy arrays, entirely in C if the arguments have the declared types.

This module makes no decisions: shapes, buffers and the order of kernels are fixed when the program is compiled.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_Occurred
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF, PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from cyxla._native.abi cimport *
from cyxla._native.arrays cimport *

import os

import numpy as np

from cyxla._native import _rt
from cyxla import memory
from cyxla._native import arguments, kernels

cdef extern from "dlfcn.h" nogil:
    void *dlopen(const char *, int)
    void *dlsym(void *, const char *)
    int dlclose(void *)
    const char *dlerror()
    int RTLD_NOW, RTLD_LOCAL

cdef extern from *:
    """
    /* Atomic, since running programs read the epoch without the GIL. */
    static void next_epoch(uint32_t *epoch) { __atomic_fetch_add(epoch, 1, __ATOMIC_RELAXED); }
    """
    void next_epoch(uint32_t *) noexcept nogil

_import_array()

cdef cyx_runtime *rt = <cyx_runtime *> PyCapsule_GetPointer(_rt.runtime, CYX_RUNTIME_CAPSULE)
if rt.size != sizeof(cyx_runtime):
    raise ImportError("cyxla._native._rt and cyxla._native.launch are from different builds")

cdef size_t LARGE_BYTES = memory.LARGE
cdef object require_memory = memory.require

cdef enum:
    MAX_DIMENSIONS = 64  # dimensions of a NumPy array, at most
    MAX_STACK_BUFFERS = 64  # programs with more buffers take memory of the pool for the pointers
    MIN_GROWING_BYTES = 1 << 16  # blocks of smaller results take little time to touch
    MAX_REST_BYTES = 1 << 20  # of memory behind a result, if it is no more than three times the result
    MAX_SPARSE_RESULT = 1 << 24  # bytes; the caller may read all of a larger result, for which huge pages are faster


@cython.final
@cython.freelist(256)
cdef class Block:
    """Memory of the pool, which is released together with the array that uses it."""

    cdef void *data
    cdef size_t bytes

    def __dealloc__(self):
        if self.data != NULL:
            rt.release(self.data, self.bytes)


@cython.final
cdef class Library:
    """A loaded shared object, which is closed when its last program is deallocated, or a recipe (`recipe.h`)."""

    cdef void *handle
    cdef readonly str path
    cdef readonly bytes recipe  # None for a shared object

    def __init__(self, path):
        self.path = os.fspath(path)
        self.recipe = read_recipe(self.path)
        if self.recipe is not None:
            return
        self.handle = dlopen(PyBytes_AS_STRING(os.fsencode(self.path)), RTLD_NOW | RTLD_LOCAL)
        if self.handle == NULL:
            raise OSError(f"cannot load {self.path}: {dlerror().decode(errors='replace')}")
        cdef uint32_t *version = <uint32_t *> dlsym(self.handle, b"cyx_library_version")
        if version != NULL and version[0] != CYX_ABI_VERSION:
            raise OSError(
                f"{self.path} was compiled for ABI version {version[0]}, not {CYX_ABI_VERSION}; compile it again"
            )
        cdef void **prebuilt = <void **> dlsym(self.handle, b"cyx_prebuilt")
        if prebuilt != NULL:
            prebuilt[0] = <void *> <size_t> kernels.table

    @staticmethod
    def from_bytes(bytes image):
        """Load a library from its image in memory."""
        if kernels.is_recipe(image):
            return Library.from_recipe(image)
        import tempfile

        # The name is unique: dlopen identifies libraries by path, and would return another library for a reused name.
        with tempfile.NamedTemporaryFile(prefix="cyxla-", suffix=".so") as file:
            file.write(image)
            file.flush()
            return Library(file.name)

    @staticmethod
    cdef Library from_recipe(bytes recipe):
        cdef Library library = Library.__new__(Library)
        library.path = ""
        library.recipe = recipe
        return library

    cdef void *symbol(self, str name) except NULL:
        if self.recipe is not None:
            return <void *> <size_t> kernels.entry
        cdef void *found = dlsym(self.handle, PyBytes_AS_STRING(name.encode()))
        if found == NULL:
            raise OSError(f"{self.path} has no symbol {name}")
        return found

    def __dealloc__(self):
        if self.handle != NULL:
            dlclose(self.handle)


cdef list recipe_functions(bytes recipe):
    """Return the addresses for `cyx_ctx.functions` of a recipe."""
    return None if recipe is None else [kernels.address(recipe), kernels.table]


cdef bytes read_recipe(str path):
    """Return the recipe at the start of a file; None if the file does not exist or holds something else."""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(RECIPE_HEADER_BYTES)
            if head[:8] != RECIPE_MAGIC or len(head) < RECIPE_HEADER_BYTES:
                return None
            size = min(int.from_bytes(head[16:24], "little") * 8, os.fstat(file.fileno()).st_size)
            recipe = head + file.read(max(0, size - RECIPE_HEADER_BYTES))
    except OSError:
        return None  # dlopen searches more folders and reports the error
    if not kernels.is_recipe(recipe):
        raise OSError(f"{path} is a recipe for other prebuilt functions; compile the program again")
    return recipe


RECIPE_MAGIC = kernels.head[0].to_bytes(8, "little")
RECIPE_HEADER_BYTES = 32  # bytes of the header, with the magic number and the length


cdef object new_array(const Spec *spec):
    """Return an uninitialised array over memory of the pool."""
    return array_in(new_block(spec.bytes, spec.pages), spec)


cdef Block new_block(size_t bytes, size_t pages):
    """Return uninitialised memory of the pool; `pages` is its flag of small pages, or 0."""
    cdef Block block = Block.__new__(Block)
    if bytes >= LARGE_BYTES:
        require_memory(bytes)
    block.data = rt.acquire(bytes | pages)
    if block.data == NULL:
        arguments.out_of_memory(bytes)
    block.bytes = bytes | pages
    return block


cdef size_t growing_bytes(size_t bytes):
    """Return the bytes of a block for an array whose size changes from call to call: a power of two, if it is large.

    A block then serves many sizes. The first access to a page of a new one takes longer than most computations with it.
    """
    cdef size_t capacity = MIN_GROWING_BYTES
    if bytes <= capacity:
        return bytes
    while capacity < bytes:
        capacity *= 2
    return capacity


cdef inline object array_in(Block block, const Spec *spec):
    """Return an array over the memory of a block."""
    Py_INCREF(<object> spec.descr)
    array = PyArray_NewFromDescr(
        &PyArray_Type, spec.descr, spec.ndim, spec.dims, NULL, block.data, NPY_ARRAY_CARRAY, NULL
    )
    Py_INCREF(block)
    PyArray_SetBaseObject(<PyArrayObject *> <PyObject *> array, <PyObject *> block)
    return array


cdef object first_rows(object array, npy_intp rows, bint owned):
    """Return an array of the first rows of an array that `new_array` made, in place or in less memory.

    They stay in place if the other rows take no more memory than they do, or little and up to three times as much.

    Parameters
    ----------
    array : object
        Array.
    rows : int
        Number of rows.
    owned : bool
        True if nobody reads the other rows. Large results then stay in place, and the system takes back their memory.

    Returns
    -------
    array or None
        None for any other array.
    """
    cdef PyArrayObject *source = <PyArrayObject *> <PyObject *> array
    cdef npy_intp dims[MAX_DIMENSIONS]
    cdef Spec spec
    cdef Block block
    cdef object copied
    cdef size_t rest
    cdef bint stays
    spec.ndim = PyArray_NDIM(source)
    if not PyArray_IS_C_CONTIGUOUS(source) or not PyArray_ISWRITEABLE(source) or PyArray_BASE(source) == NULL:
        return None
    base = <object> PyArray_BASE(source)
    if type(base) is not Block or (<Block> base).data != PyArray_DATA(source) or spec.ndim == 0:
        return None
    block = base
    memcpy(dims, PyArray_DIMS(source), spec.ndim * sizeof(npy_intp))
    if rows == dims[0]:
        return array
    if rows < 0 or rows > dims[0]:
        return None
    spec.bytes = PyArray_NBYTES(source) // dims[0] * rows
    spec.descr, spec.dims = PyArray_DESCR(source), dims
    dims[0] = rows
    rest = <size_t> PyArray_NBYTES(source) - spec.bytes
    stays = rest <= spec.bytes or rest <= MAX_REST_BYTES and rest <= 3 * spec.bytes
    if stays or owned and rt.discard(block.data, block.bytes, spec.bytes):
        return array_in(block, &spec)
    spec.pages = block.bytes & rt.small_pages
    copied = array_in(new_block(growing_bytes(spec.bytes), spec.pages), &spec)
    memcpy(PyArray_DATA(<PyArrayObject *> <PyObject *> copied), block.data, spec.bytes)
    return copied


cdef class Program:
    """A compiled program, which is called like a function of arrays.

    Parameters
    ----------
    library : Library or path
        Shared object or recipe.
    entry : str
        Name of its `cyx_entry` symbol.
    inputs, outputs : sequence of (numpy dtype, dims)
        Types of the arrays that the entry reads and writes, flattened.
    results : int or nested tuple of int
        Tree of the results of a call, with the numbers of outputs as leaves.
    parameters : tuple of int or nested tuples, optional
        One tree per argument of a call, with the numbers of inputs as leaves. By default argument k is input k.
    constants : sequence of C-contiguous arrays
        Constant buffers, which follow the results in every call.
    bound : mapping of int to array, optional
        Values of fixed inputs, which are not part of `parameters`.
    arena_bytes : int
        Size of the temporaries of one call.
    sparse : bool
        True if calls use little of their temporaries and results: these get small pages, unless a result is large.
    functions : sequence of int
        Addresses for `cyx_ctx.functions`; `keep` holds the objects that they need alive.
    release_gil : bool
        False for programs that take a microsecond or two.
    watched : bool
        True for programs that may take long: another thread runs them, while the main thread watches for Ctrl-C.
    abandonable : bool
        True if a watched program may run on for long after it was cancelled, so that it must not write to arrays of the
        caller.
    donations : mapping of int to int, optional
        Donated inputs, with the output that takes the memory of each: both get the same buffer.
    """

    def __init__(
        self, library, str entry, inputs, outputs, results, *, parameters=None, constants=(), bound=None,
        Py_ssize_t arena_bytes=0, bint sparse=False, functions=(), keep=None, bint release_gil=True,
        bint watched=False, bint abandonable=False, donations=None,
    ):
        if self.entry != NULL:
            raise RuntimeError("a program cannot be initialised twice")
        self.library = library if isinstance(library, Library) else Library(library)
        self.inputs = tuple((np.dtype(dtype), tuple(dims)) for dtype, dims in inputs)
        self.outputs = tuple((np.dtype(dtype), tuple(dims)) for dtype, dims in outputs)
        self.n_inputs, self.n_outputs = len(self.inputs), len(self.outputs)
        self.results = results
        self.single = isinstance(results, int)
        self.output_range = tuple(range(self.n_outputs))
        self.flat = results == self.output_range
        bound = dict(bound or {})
        self.set_parameters(parameters, bound)
        self.set_specs(sparse)
        self.set_buffers(list(constants), bound)
        self.set_functions(recipe_functions((<Library> self.library).recipe) or list(functions))
        self.set_donations(dict(donations or {}), bound)
        self.kept_alive = (list(constants), bound, keep)
        self.arena_bytes = self.new_bytes = arena_bytes
        self.arena_request = self.arena_bytes | rt.small_pages if sparse else self.arena_bytes
        for k in range(self.n_outputs):
            self.new_bytes += self.specs[self.n_inputs + k].bytes
        self.release_gil = release_gil
        self.watched, self.abandonable = watched, abandonable
        self.call.ctx.version = CYX_ABI_VERSION
        self.call.ctx.size = sizeof(cyx_ctx)
        self.call.ctx.parallel_for = rt.parallel_for
        self.call.ctx.poll = rt.poll
        self.call.ctx.functions = self.functions
        self.call.cancel_epoch = &self.cancel_epoch
        self.entry = <cyx_entry> (<Library> self.library).symbol(entry)

    def __dealloc__(self):
        free(self.specs)
        free(self.dims)
        free(self.template)
        free(self.functions)
        free(self.slots)

    cdef int set_parameters(self, parameters, dict bound) except -1:
        if parameters is None:
            parameters = tuple(k for k in range(self.n_inputs) if k not in bound)
        self.parameters = tuple(parameters)
        self.nested = any(isinstance(tree, tuple) for tree in self.parameters)
        leaves = arguments.leaves(self.parameters)
        if sorted([*leaves, *bound]) != list(range(self.n_inputs)):
            raise ValueError(
                f"parameters {parameters} and bound {sorted(bound)} must together be the {self.n_inputs} inputs"
            )
        self.n_leaves = len(leaves)
        self.slots = <int *> calloc(max(1, self.n_leaves), sizeof(int))
        if self.slots == NULL:
            raise MemoryError
        for k, leaf in enumerate(leaves):
            self.slots[k] = leaf
        return 0

    cdef int set_specs(self, bint sparse) except -1:
        arrays = [*self.inputs, *self.outputs]
        self.specs = <Spec *> calloc(max(1, len(arrays)), sizeof(Spec))
        self.dims = <npy_intp *> calloc(max(1, sum(len(dims) for _, dims in arrays)), sizeof(npy_intp))
        if self.specs == NULL or self.dims == NULL:
            raise MemoryError
        cdef npy_intp *next_dim = self.dims
        cdef Spec *spec
        for k, (dtype, dims) in enumerate(arrays):
            if not dtype.isnative or dtype.hasobject:
                raise ValueError(f"programs do not support {dtype!r}")
            spec = &self.specs[k]
            spec.descr = <PyArray_Descr *> <PyObject *> dtype  # self.inputs and self.outputs keep it alive
            spec.type_num = dtype.num
            spec.ndim = len(dims)
            spec.dims = next_dim
            spec.bytes = dtype.itemsize
            for size in dims:
                next_dim[0] = size
                next_dim += 1
                spec.bytes *= <size_t> size
            if sparse and k >= self.n_inputs and spec.bytes <= MAX_SPARSE_RESULT:
                spec.pages = rt.small_pages
        return 0

    cdef int set_buffers(self, list constants, dict bound) except -1:
        self.n_buffers = self.n_inputs + self.n_outputs + len(constants)
        self.template = <void **> calloc(max(1, self.n_buffers), sizeof(void *))
        if self.template == NULL:
            raise MemoryError
        for k, array in enumerate(constants):
            if not PyArray_Check(<PyObject *> array) or not array.flags.c_contiguous:
                raise ValueError(f"constant {k} is not a C-contiguous array")
            self.template[self.n_inputs + self.n_outputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
        for k, value in bound.items():
            array = arguments.convert(value, *self.inputs[k], f"bound input {k}")
            bound[k] = array
            self.template[k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
        return 0

    cdef int set_functions(self, list addresses) except -1:
        self.functions = <void **> calloc(max(1, len(addresses)), sizeof(void *))
        if self.functions == NULL:
            raise MemoryError
        for k, address in enumerate(addresses):
            self.functions[k] = <void *> <size_t> address
        return 0

    cdef int set_donations(self, dict donations, dict bound) except -1:
        self.donations = donations or None
        for k, n in donations.items():
            if k in bound or self.specs[k].bytes != self.specs[self.n_inputs + n].bytes:
                raise ValueError(f"input {k} cannot be donated to output {n}: it is bound, or of another size")
        if len(set(donations.values())) != len(donations):
            raise ValueError(f"an output occurs twice in the donations {donations}")
        return 0

    def cancel(self):
        """Cancel the running calls on all threads; they end with CancelledError at their next poll."""
        next_epoch(&self.cancel_epoch)

    def __call__(self, *args, out=None):
        """Run on the arguments; the results are new arrays, or those of `out`."""
        if self.nested or PyTuple_GET_SIZE(args) != self.n_leaves:
            args = arguments.flatten(args, self.parameters)
        if self.n_buffers <= MAX_STACK_BUFFERS:
            return self.run_inline(args, out)
        cdef size_t bytes = self.n_buffers * sizeof(void *)
        cdef void **bufs = <void **> rt.acquire(bytes)
        if bufs == NULL:
            arguments.out_of_memory(bytes)
        try:
            return self.run(bufs, args, out)
        finally:
            rt.release(bufs, bytes)

    cdef object run_inline(self, tuple args, object out):
        cdef void *bufs[MAX_STACK_BUFFERS]
        return self.run(bufs, args, out)

    cdef object run(self, void **bufs, tuple args, object out):
        """Set up the buffers of arguments and results, run, and return the results."""
        if self.entry == NULL:
            raise RuntimeError("the program was never initialised")
        memcpy(bufs, self.template, self.n_buffers * sizeof(void *))
        if self.donations is not None:
            return self.run_donating(bufs, args, out)
        owners = self.set_argument_buffers(bufs, args)  # converted copies, which must outlive the call
        if self.new_bytes >= LARGE_BYTES and out is None:
            require_memory(self.new_bytes)
        if out is not None:
            return self.run_into(bufs, args, owners, out)
        if self.single:
            result = new_array(&self.specs[self.n_inputs])
            bufs[self.n_inputs] = PyArray_DATA(<PyArrayObject *> <PyObject *> result)
            self.execute(bufs, args, owners, result)
            return result
        leaves = self.new_results(bufs)
        self.execute(bufs, args, owners, leaves)
        return leaves if self.flat else arguments.build(self.results, leaves)

    cdef object set_argument_buffers(self, void **bufs, tuple args):
        cdef Py_ssize_t k
        cdef int slot
        cdef PyObject *value
        cdef object owners = None  # typed, since Cython's type inference does not terminate on a tuple of itself
        for k in range(self.n_leaves):
            slot = self.slots[k]
            value = <PyObject *> PyTuple_GET_ITEM(args, k)
            if not matches(value, &self.specs[slot]):
                converted = arguments.convert(<object> value, *self.inputs[slot], (self.parameters, k))
                value = <PyObject *> converted
                owners = (owners, converted)
            bufs[slot] = PyArray_DATA(<PyArrayObject *> value)
        return owners

    cdef tuple new_results(self, void **bufs):
        cdef Py_ssize_t k
        leaves = PyTuple_New(self.n_outputs)
        for k in range(self.n_outputs):
            array = new_array(&self.specs[self.n_inputs + k])
            bufs[self.n_inputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            Py_INCREF(array)
            PyTuple_SET_ITEM(leaves, k, array)
        return leaves

    cdef object run_into(self, void **bufs, object args, object owners, object out):
        """Run with results in the caller's arrays, by way of a new array if one is strided or overlaps an argument.

        Abandonable programs always write to new arrays, since they may still write after the call was interrupted.
        """
        if self.single and self.may_write_to(bufs, out, 0):
            bufs[self.n_inputs] = PyArray_DATA(<PyArrayObject *> <PyObject *> out)
            self.execute(bufs, args, owners, None)  # writes to memory of the caller
            return out
        cdef list targets = arguments.match_out(out, self.results, self.outputs)
        cdef list computed = []
        cdef Py_ssize_t k
        cdef object array
        for k in range(self.n_outputs):
            array = targets[k]
            if array is None or not self.may_write_to(bufs, array, k):
                array = new_array(&self.specs[self.n_inputs + k])
            bufs[self.n_inputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            computed.append(array)
        self.execute(bufs, args, owners, computed if self.abandonable else None)
        for k in range(self.n_outputs):
            if targets[k] is not None and targets[k] is not computed[k]:
                PyArray_CopyInto(<PyArrayObject *> <PyObject *> targets[k], <PyArrayObject *> <PyObject *> computed[k])
            else:
                targets[k] = computed[k]
        return arguments.build(self.results, targets)

    cdef object run_donating(self, void **bufs, tuple args, object out):
        """Run with results in the memory of donated arguments; each result keeps its argument alive."""
        cdef Py_ssize_t k
        cdef int slot
        cdef object array
        cdef dict donated = {}
        cdef list owners = []
        for k in range(self.n_leaves):
            slot = self.slots[k]
            array = <object> PyTuple_GET_ITEM(args, k)
            if not matches(<PyObject *> array, &self.specs[slot]):
                array = arguments.convert(array, *self.inputs[slot], (self.parameters, k))
            if slot in self.donations:
                if not PyArray_ISWRITEABLE(<PyArrayObject *> <PyObject *> array):
                    arguments.not_donated((self.parameters, k), "the array is read-only")
                if not PyArray_ISALIGNED(<PyArrayObject *> <PyObject *> array):
                    array = array.copy()
                donated[self.donations[slot]] = array
            owners.append(array)
            bufs[slot] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
        self.check_no_overlap(bufs)
        cdef list computed = []
        for k in range(self.n_outputs):
            array = donated.get(k)
            array = new_array(&self.specs[self.n_inputs + k]) if array is None else self.result_in_memory_of(array, k)
            bufs[self.n_inputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            computed.append(array)
        cdef list targets = [None] * self.n_outputs
        if out is not None:
            targets = arguments.match_out(out, self.results, self.outputs)
            arguments.check_out_apart(targets, computed, donated)
        self.execute(bufs, args, owners, None)
        for k in range(self.n_outputs):
            if targets[k] is not None:
                PyArray_CopyInto(<PyArrayObject *> <PyObject *> targets[k], <PyArrayObject *> <PyObject *> computed[k])
                computed[k] = targets[k]
        return arguments.build(self.results, computed)

    cdef int check_no_overlap(self, void **bufs) except -1:
        """Raise if a donated argument shares memory with another argument."""
        cdef Py_ssize_t k, other
        cdef int slot
        cdef char *begin
        cdef char *end
        for k in range(self.n_leaves):
            slot = self.slots[k]
            if slot not in self.donations:
                continue
            begin = <char *> bufs[slot]
            end = begin + self.specs[slot].bytes
            for other in range(self.n_inputs):
                if other == slot or self.specs[other].bytes == 0:
                    continue
                if begin < <char *> bufs[other] + self.specs[other].bytes and <char *> bufs[other] < end:
                    arguments.not_donated((self.parameters, k), "it shares memory with another argument")
        return 0

    cdef object result_in_memory_of(self, object donated_array, Py_ssize_t index):
        """Return the array of output `index` over the memory of an argument."""
        cdef Spec *spec = &self.specs[self.n_inputs + index]
        cdef void *data = PyArray_DATA(<PyArrayObject *> <PyObject *> donated_array)
        Py_INCREF(<object> spec.descr)
        array = PyArray_NewFromDescr(
            &PyArray_Type, spec.descr, spec.ndim, spec.dims, NULL, data, NPY_ARRAY_CARRAY, NULL
        )
        PyArray_UpdateFlags(<PyArrayObject *> <PyObject *> array, NPY_ARRAY_ALIGNED)  # the types may differ
        Py_INCREF(donated_array)
        PyArray_SetBaseObject(<PyArrayObject *> <PyObject *> array, <PyObject *> donated_array)
        return array

    cdef bint may_write_to(self, void **bufs, object out, Py_ssize_t index):
        """Return True if result `index` can be written to `out`: its type matches, and it overlaps no other buffer."""
        if self.abandonable or not matches(<PyObject *> out, &self.specs[self.n_inputs + index]):
            return False
        if not PyArray_ISWRITEABLE(<PyArrayObject *> <PyObject *> out):
            return False
        cdef char *begin = <char *> PyArray_DATA(<PyArrayObject *> <PyObject *> out)
        cdef char *end = begin + self.specs[self.n_inputs + index].bytes
        cdef Py_ssize_t k
        for k in range(self.n_inputs + index):
            if begin < <char *> bufs[k] + self.specs[k].bytes and <char *> bufs[k] < end:
                return False
        return True

    cdef int execute(self, void **bufs, object args, object owners, object results) except -1:
        """Run the entry on the buffers, and raise the error of its status.

        The other arguments are the objects that own the buffers. `results` is None if other objects share their memory.
        """
        cdef char message[CYX_MESSAGE_BYTES]
        cdef cyx_call call = self.call
        cdef cyx_status status
        message[0] = 0
        call.ctx.message = message
        call.epoch = self.cancel_epoch
        if self.arena_bytes:
            if self.arena_bytes >= LARGE_BYTES:
                require_memory(self.arena_bytes)
            call.ctx.arena = <char *> rt.acquire(self.arena_request)
            if call.ctx.arena == NULL:
                arguments.out_of_memory(self.arena_bytes)
        if self.watched and rt.on_main_thread():
            status = self.execute_watched(bufs, &call, (self, args, owners, results) if results is not None else None)
        elif self.release_gil:
            with nogil:
                status = self.entry(bufs, &call.ctx)
        else:
            status = self.entry(bufs, &call.ctx)
        if self.arena_bytes and status != CYX_ABANDONED:
            rt.release(call.ctx.arena, self.arena_request)
        if PyErr_Occurred():  # a signal handler raised while the program polled
            return -1
        if status == CYX_OK:
            return 0
        message[CYX_MESSAGE_BYTES - 1] = 0
        arguments.failed(status, (<bytes> message).decode(errors="replace"))
        return -1

    cdef cyx_status execute_watched(self, void **bufs, cyx_call *call, tuple keep) noexcept:
        """Run the entry on another thread, which may be abandoned if `keep` holds all its buffers alive."""
        cdef void *owners = NULL if keep is None else <void *> <PyObject *> keep
        return rt.run_watched(self.entry, bufs, self.n_buffers, call, self.arena_request, owners)
