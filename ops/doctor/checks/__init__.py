"""The checks, by what they look at; `ops/doctor/examination.py` collects them. They use the `StackWorld` alone."""
