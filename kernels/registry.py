"""Finds kernel backends: every folder beside this file that has a `backend.py` with a `BACKEND`.

Owns the choice by name or by "auto". Knows nothing of what a backend does; adding one is adding its folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from ..errors import ConfigError
from .ops import Backend

AUTO = "auto"


def backend_names() -> list[str]:
    """Names of all backends in the package, whether or not they can serve here."""
    folder = Path(__file__).parent
    return sorted(
        module.name
        for module in pkgutil.iter_modules([str(folder)])
        if module.ispkg and (folder / module.name / "backend.py").is_file()
    )


def load_backend(name: str) -> Backend:
    """The backend called `name`, importing only its folder. ConfigError when there is none."""
    if name not in backend_names():
        raise ConfigError(
            f"no kernel backend is called {name!r}",
            place="kernels",
            hint=f"Known: {', '.join([AUTO, *backend_names()])}",
        )
    backend: Backend = importlib.import_module(f".{name}.backend", __package__).BACKEND
    return backend


def usable_backends(name: str = AUTO, device: str = "cpu") -> list[Backend]:
    """`name` alone, or for "auto" all that can serve on `device`, best first. ConfigError says why a named one cannot serve."""
    if name != AUTO:
        backend = load_backend(name)
        reason = backend.unavailable_reason(device)
        if reason is not None:
            raise ConfigError(
                f"the kernel backend {name!r} cannot serve on {device}: {reason}", place="kernels"
            )
        return [backend]
    candidates = [load_backend(found) for found in backend_names()]
    usable = [backend for backend in candidates if backend.unavailable_reason(device) is None]
    return sorted(usable, key=lambda backend: -backend.priority)
