"""Fuzzing: inputs made from a seed, tried in supervised processes, and what is found reduced and kept.

`kinds` names every kind of input. `worker` tries inputs; `supervisor` watches it for crashes, hangs and memory, and
collects findings; `minimise` makes them small. `texts`, `bits` and `messages` mutate.
"""
