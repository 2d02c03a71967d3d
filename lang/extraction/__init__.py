"""Documents in, validated rows out: the parts of `lang.extract`, one concept a file. See `lang/extraction/README.md`."""
