"""`image` is refused clearly, as an error of the program with its line."""

from __future__ import annotations

from typing import Any

import pytest

from radixlm import ProgramError, ScriptedBackend, function, image, user


def test_an_image_is_refused_by_name_before_anything_is_sent() -> None:
    @function
    def looks(s: Any) -> None:
        s += user(image("cat.png") + "What is it?")

    backend = ScriptedBackend()
    with pytest.raises(ProgramError, match="images are not read here") as raised:
        looks.run(backend=backend)
    assert raised.value.place == "image"
    assert "cat.png" in raised.value.message
    assert not backend.sent
