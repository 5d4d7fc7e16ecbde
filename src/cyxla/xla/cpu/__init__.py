"""The platform cpu: HLO to C, to machine code, to a call."""
