"""Declarations of include/cyxla/abi.h and of the C++ runtime, for cimport."""

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "cyxla/abi.h":
    ctypedef int32_t cyx_status
    ctypedef cyx_status (*cyx_kernel)(void *const *bufs, int64_t begin, int64_t end) noexcept nogil
    ctypedef struct cyx_ctx:
        uint32_t version
        uint32_t size
        char *arena
        char *message
        void *pool
        cyx_status (*parallel_for)(const cyx_ctx *, cyx_kernel, void *const *, int64_t) noexcept nogil
        cyx_status (*poll)(const cyx_ctx *) noexcept nogil
        void *const *functions
    ctypedef cyx_status (*cyx_entry)(void *const *bufs, const cyx_ctx *ctx) noexcept nogil
    enum:
        CYX_ABI_VERSION
        CYX_MESSAGE_BYTES
        CYX_OK
        CYX_CANCELLED
        CYX_RESOURCE_EXHAUSTED
        CYX_INTERNAL


cdef extern from "runtime.h":
    const char *CYX_RUNTIME_CAPSULE
    enum:
        CYX_ABANDONED
    ctypedef struct cyx_call:
        cyx_ctx ctx
        const uint32_t *cancel_epoch
        uint32_t epoch
        int64_t next_check
        uint32_t stop
    ctypedef struct cyx_runtime:
        size_t small_pages
        uint32_t size
        void *(*acquire)(size_t) noexcept nogil
        void (*release)(void *, size_t) noexcept nogil
        int (*discard)(void *, size_t, size_t) noexcept nogil
        cyx_status (*parallel_for)(const cyx_ctx *, cyx_kernel, void *const *, int64_t) noexcept nogil
        cyx_status (*poll)(const cyx_ctx *) noexcept nogil
        int (*on_main_thread)() noexcept nogil
        cyx_status (*run_watched)(cyx_entry, void *const *, size_t, cyx_call *, size_t, void *) noexcept
