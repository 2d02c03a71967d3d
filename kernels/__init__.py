"""Package kernels."""
