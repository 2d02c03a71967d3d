"""One module a wire protocol; each has a class that satisfies `runtime.remote.adapter.Adapter`."""
