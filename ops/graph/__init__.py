"""The identity chain of a stack as a graph: the model, its layout, and its output formats."""
