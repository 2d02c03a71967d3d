"""Front ends: one module (or package) a kind of constraint, named after the spec's tag, with `build(spec, limits) -> Grammar`."""
