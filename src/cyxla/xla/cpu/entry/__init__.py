"""The entry of a compiled program: its schedule as C, or as a recipe where all kernels are prebuilt."""
