"""Kernels with their arrays, as emitters return them to the planner; their cost; calls of prebuilt functions."""
