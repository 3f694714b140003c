"""tapegen: gradients of ordinary Python functions as readable, compiled Python."""
