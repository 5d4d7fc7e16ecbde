"""Just-in-time compilation of graphs: of whole graphs, or of the clusters that can be compiled."""
