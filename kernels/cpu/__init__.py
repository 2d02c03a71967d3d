"""Native CPU kernels: C++17 behind a plain C border, chosen by instruction set at run time."""
