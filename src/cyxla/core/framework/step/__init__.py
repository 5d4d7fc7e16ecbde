"""State that all kernels of one step share: cancellation, rendezvous, and the files that may be touched."""
