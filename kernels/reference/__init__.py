"""Plain torch kernels: the definition of every op, and what serves where nothing faster is built."""
