"""Backends are found by their folder and chosen by name or priority."""

from __future__ import annotations

import pytest

from radixlm.errors import ConfigError
from radixlm.kernels.ops import Backend
from radixlm.kernels.registry import backend_names, load_backend, usable_backends


def test_every_folder_with_a_backend_is_known_by_the_name_it_gives_itself() -> None:
    assert {"reference", "triton"} <= set(backend_names())
    for name in backend_names():
        backend = load_backend(name)
        assert isinstance(backend, Backend)
        assert backend.name == name


def test_auto_takes_an_available_backend_of_the_highest_priority() -> None:
    chosen = usable_backends("auto", "cpu")[0]
    usable = [
        load_backend(name)
        for name in backend_names()
        if load_backend(name).unavailable_reason("cpu") is None
    ]
    assert chosen.priority == max(backend.priority for backend in usable)


def test_an_unknown_backend_is_refused_with_the_known_names() -> None:
    with pytest.raises(ConfigError, match=r"'fastest'.*auto, .*reference") as caught:
        usable_backends("fastest")
    assert caught.value.place == "kernels"


def test_a_backend_that_cannot_serve_the_device_says_why() -> None:
    with pytest.raises(ConfigError, match=r"reference.*CUDA"):
        usable_backends("reference", "cuda")
