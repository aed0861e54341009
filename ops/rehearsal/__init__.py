"""A change rehearsed: the stack as it is brought up on a throw-away local cloud, then the change, seen by its clients.

`configuration.py` copies the stack's configuration for the local cloud, `surroundings.py` derives what must exist
already, `trees.py` lays out both commits, `run.py` does it, `steps.py` and `sign_ins.py` watch, `report.py` judges.
"""
