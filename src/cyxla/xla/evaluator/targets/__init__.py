"""Custom-call targets: built-in ones, LAPACK's, and C functions that users register."""
