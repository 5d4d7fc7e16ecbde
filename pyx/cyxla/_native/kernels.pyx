"""Prebuilt functions, by number and type, and recipes: programs that call nothing else.

The build generates the table of functions from the emitters; this module only exposes it.
"""

import struct

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from cyxla._native.abi cimport cyx_ctx, cyx_status


cdef extern from *:
    """
    extern void *const cyx_prebuilt_functions[];
    extern const char cyx_prebuilt_names[];
    extern const long cyx_prebuilt_count;
    extern const char *const cyx_prebuilt_digest;
    """
    void *const cyx_prebuilt_functions[]
    const char *cyx_prebuilt_names
    const long cyx_prebuilt_count
    const char *const cyx_prebuilt_digest

cdef extern from "recipe.h":
    int check_recipe(const int64_t *, int64_t, int64_t, int64_t) nogil
    cyx_status run_recipe(void *const *, const cyx_ctx *) nogil
    const int64_t RECIPE_MAGIC, RECIPE_HEAD
    const int RECIPE_COPY, RECIPE_CALL, RECIPE_CHAIN, RECIPE_LINKS


# A line for each function: its name, and the C types of its result and arguments.
_functions = [line.split("|") for line in cyx_prebuilt_names.decode().splitlines()]

#: Digest of the source texts of the library.
digest = cyx_prebuilt_digest.decode()
#: Number of each function, by its name with the instruction-set level.
numbers = {function[0]: k for k, function in enumerate(_functions)}
#: C types of the result and of the arguments of each function, by number.
types = [tuple(function[1:]) for function in _functions]
#: The first two numbers of a recipe.
head = (RECIPE_MAGIC, int.from_bytes(bytes.fromhex(digest), "little", signed=True))
#: Addresses of the table of functions, and of the entry point of recipes.
table = <size_t> &cyx_prebuilt_functions[0]
entry = <size_t> <void *> run_recipe


#: Kinds of steps, and the greatest number of calls of a chain.
COPY, CALL, CHAIN = RECIPE_COPY, RECIPE_CALL, RECIPE_CHAIN
LINKS = RECIPE_LINKS


def recipe(list words, int steps):
    """Return a recipe of a number of steps, which are given as consecutive numbers."""
    numbers = [*head, RECIPE_HEAD + len(words), steps, *words]
    return struct.pack(f"<{len(numbers)}q", *numbers)


def called_functions(bytes recipe):
    """Return the numbers of the functions that a recipe calls, in order."""
    words = struct.unpack(f"<{len(recipe) // 8}q", recipe)
    position, functions = RECIPE_HEAD, []
    while position < len(words):
        if words[position] != RECIPE_CALL:
            position += 4
            continue
        functions.append(words[position + 1])
        buffers = words[position + 4]
        position += 6 + buffers + words[position + 5 + buffers]
    return functions


def is_recipe(bytes image):
    """Return True if bytes are a valid recipe for these functions."""
    cdef const int64_t *words = <const int64_t *> PyBytes_AS_STRING(image)
    cdef int64_t size = PyBytes_GET_SIZE(image)
    return size % 8 == 0 and bool(check_recipe(words, size // 8, head[1], cyx_prebuilt_count))


def address(bytes image):
    """Return the address of a recipe's numbers, which is valid as long as the object lives."""
    return <size_t> PyBytes_AS_STRING(image)
