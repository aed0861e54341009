"""Rehearses a change: brings the stack up on a throw-away local cloud, then applies the change while clients sign in.

`configuration.py` copies the stack's configuration for the local cloud, `world.py` derives the prerequisites and
unpacks both commits, `run.py` runs them, `sign_ins.py` observes, `report.py` judges.
"""
