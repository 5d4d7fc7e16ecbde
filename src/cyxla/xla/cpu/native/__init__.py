"""Native code: the C compiler, compilations side by side, the disk cache, shared objects."""
