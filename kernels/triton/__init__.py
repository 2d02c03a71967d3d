"""Triton kernels for NVIDIA GPUs, one file a kernel."""
