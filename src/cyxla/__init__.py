"""cyxla: an array compiler for CPUs that reads like XLA."""
