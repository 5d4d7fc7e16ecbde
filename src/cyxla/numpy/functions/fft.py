"""numpy.fft."""
