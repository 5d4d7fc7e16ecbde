"""The platform of the reference evaluator: any module, on NumPy."""
