"""Functions made of HLO that every front door uses: helpers of values, and the special functions."""
