"""State that all kernels of one step share: cancellation, rendezvous, and file access."""
