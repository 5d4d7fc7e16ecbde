"""XLA kernels of ops for tensor arrays, lists, maps, tables, queues and iterators."""
