"""Custom-call targets: those that cyxla knows, LAPACK's, and C functions that users register."""
