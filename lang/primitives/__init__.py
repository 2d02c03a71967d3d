"""The primitives of the language, one file each: a node, and the function that programs call to make it."""
