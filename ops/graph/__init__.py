"""The identity chain of a stack as a graph: the model, its layout, and the forms it is written in."""
