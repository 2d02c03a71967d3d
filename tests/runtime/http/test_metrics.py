"""/metrics tells what passed and what the engine says, and the number of its series does not grow with strangers' requests."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from http_probe import PROBES
from http_server import Served, served
from prometheus_client.parser import text_string_to_metric_families

from radixlm.runtime.launch import Runtime

Samples = dict[str, float]


@pytest.fixture
def server(slow_runtime: Runtime) -> Iterator[Served]:
    with served(slow_runtime, PROBES) as running:
        yield running


def samples(server: Served) -> Samples:
    page = httpx.get(f"{server.url}/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name
        + "".join(f"[{value}]" for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }


def test_tokens_times_and_requests_are_counted(server: Served) -> None:
    body = {"text": "count the tokens of these words", "max_tokens": 6}
    httpx.post(f"{server.url}/probe", json=body)
    httpx.post(f"{server.url}/probe", json={**body, "stream": True})
    httpx.post(f"{server.url}/probe", json={**body, "regex": "("})
    found = samples(server)
    assert found["radixlm_http_requests_total[/probe][200]"] == 2
    assert found["radixlm_http_requests_total[/probe][400]"] == 1
    assert found["radixlm_tokens_total[completion]"] == 12
    assert found["radixlm_tokens_total[prompt]"] > found["radixlm_tokens_total[cached]"] > 0
    assert found["radixlm_time_to_first_token_seconds_count"] == 1
    assert found["radixlm_inter_token_seconds_count"] >= 4
    assert found["radixlm_request_seconds_count[finished]"] == 2
    assert found["radixlm_request_seconds_count[failed]"] == 1
    assert found["radixlm_queue_seconds_count"] == 2
    assert 0 <= found["radixlm_queue_seconds_sum"] <= found["radixlm_request_seconds_sum[finished]"]


def test_the_engine_s_own_numbers_are_there(server: Served) -> None:
    found = samples(server)
    assert found["radixlm_engine_up"] == 1
    assert found["radixlm_running"] == found["radixlm_waiting"] == 0
    assert found["radixlm_pages"] == 1024
    assert found["radixlm_free_pages"] + found["radixlm_evictable_pages"] == 1024
    for name in ("evicted_pages", "cache_hit_tokens", "cache_lookup_tokens", "preemptions"):
        assert f"radixlm_{name}_total" in found


def test_paths_of_strangers_make_one_series(server: Served) -> None:
    for name in ("a", "b", "c"):
        httpx.get(f"{server.url}/{name}")
        httpx.get(f"{server.url}/v1/models/{name}")
    found = samples(server)
    assert found["radixlm_http_requests_total[other][404]"] == 3
    assert found["radixlm_http_requests_total[/v1/models/{model:path}][404]"] == 3
    assert found["radixlm_http_requests_in_work"] == 1  # the scrape itself
