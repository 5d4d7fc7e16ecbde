"""The conformance tests: recorded results of XLA, every element-wise opcode, and the interface of executables."""
