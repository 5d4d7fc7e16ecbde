"""Fuzzing: inputs generated from a seed run in supervised processes; findings are reduced and kept.

`kinds` names every kind of input. `worker` tries inputs; `supervisor` watches it for crashes, hangs and memory, and
collects findings; `minimise` makes them small. `texts`, `bits` and `messages` mutate.
"""
