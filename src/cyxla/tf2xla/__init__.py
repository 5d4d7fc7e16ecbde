"""Translation of graphs to HLO: graphs are executed symbolically, and kernels emit HLO instructions."""
