"""The server's options: what is refused, and that nobody opens a server to others without a key."""

from __future__ import annotations

from typing import Any

import pytest

from radixlm.errors import ConfigError
from radixlm.runtime.http.settings import ServerSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_this_machine_needs_no_key(host: str) -> None:
    assert ServerSettings.create(host=host).host == host


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "127.0.0.1.evil.org"]
)
def test_another_address_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerSettings.create(host=host)
    assert caught.value.place == "host"
    assert "api_key" in caught.value.hint
    with pytest.raises(ConfigError):
        ServerSettings.create(host=host, api_key=" , ")
    assert ServerSettings.create(host=host, api_key="a, b").api_keys == ("a", "b")


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"port": 65536}, "port"),
        ({"port": "http"}, "port"),
        ({"port": 80.5}, "port"),
        ({"port": True}, "port"),
        ({"host": ""}, "host"),
        ({"host": 1}, "host"),
        ({"keepalive_s": 0}, "keepalive_s"),
        ({"keepalive_s": "nan"}, "keepalive_s"),
        ({"max_requests": 0}, "max_requests"),
        ({"api_key": "né"}, "api_key"),
        ({"prot": 1}, "prot"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerSettings.create(**options)
    assert caught.value.place == place


def test_a_misspelt_option_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerSettings.create(prot=1)
    assert "'port'" in caught.value.hint


def test_texts_of_the_command_line_are_read() -> None:
    settings = ServerSettings.create(port="0", keepalive_s="2.5")
    assert (settings.port, settings.keepalive_s) == (0, 2.5)


def test_the_key_may_come_from_the_environment_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RADIXLM_API_KEY", "hidden")
    settings = ServerSettings.create(host="0.0.0.0")
    assert settings.api_keys == ("hidden",)
    assert "hidden" not in repr(settings)
    assert ServerSettings.create(api_key="given").api_keys == ("given",)
