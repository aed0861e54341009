"""Rehearses a change: brings the stack up on a throw-away local cloud, then applies the change while clients sign in.

`configuration.py` copies the stack's configuration for the local cloud, `surroundings.py` derives the prerequisites,
`world.py` unpacks both commits, `run.py` runs them, `steps.py` and `sign_ins.py` observe, `report.py` judges.
"""
