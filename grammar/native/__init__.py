"""The native core of constrained output: grammar programs compiled and matched in C++, by the same rules as the Python passes beside it."""
