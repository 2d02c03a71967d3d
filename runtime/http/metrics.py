"""What /metrics shows, in Prometheus' text format. Owns every metric's name; its registry is this server's own.

    counted here, as requests pass: HTTP requests by route and status; time to first token, between tokens, to the end, in the queue;
    prompt, cached, completion and forced tokens; how late the event loop is
    asked of engine and gateway at each scrape: running, waiting, pages, evictions, hits ... (`StatsRequest`)

A `LiveRequest` reports here by itself; endpoints have nothing to call. For an endpoint that runs no Generate: `observe_usage`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from .. import messages as m
from .live_request import LiveRequest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SHORT_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_LONG_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

_Family = type[GaugeMetricFamily] | type[CounterMetricFamily]

# counter of StatsReply -> (metric, kind, text)
_ENGINE: Mapping[str, tuple[str, _Family, str]] = {
    "running": ("radixlm_running", GaugeMetricFamily, "requests that hold pages"),
    "waiting": ("radixlm_waiting", GaugeMetricFamily, "requests that wait for pages"),
    "waiting_grammar": (
        "radixlm_waiting_grammar",
        GaugeMetricFamily,
        "requests that wait for their grammar",
    ),
    "pages": ("radixlm_pages", GaugeMetricFamily, "pages of the prefix cache"),
    "free_pages": ("radixlm_free_pages", GaugeMetricFamily, "pages that hold nothing"),
    "evictable_pages": (
        "radixlm_evictable_pages",
        GaugeMetricFamily,
        "cached pages that no running request needs",
    ),
    "locked_pages": ("radixlm_locked_pages", GaugeMetricFamily, "pages that running requests need"),
    "steps": ("radixlm_steps", CounterMetricFamily, "steps of the engine"),
    "computed_tokens": (
        "radixlm_computed_tokens",
        CounterMetricFamily,
        "tokens that went through the model",
    ),
    "preemptions": (
        "radixlm_preemptions",
        CounterMetricFamily,
        "requests that had to give their pages back",
    ),
    "follows": (
        "radixlm_follows",
        CounterMetricFamily,
        "requests that waited for another computing their prefix",
    ),
    "cache_evicted_pages": (
        "radixlm_evicted_pages",
        CounterMetricFamily,
        "cached pages that made room",
    ),
    "cache_hit_tokens": (
        "radixlm_cache_hit_tokens",
        CounterMetricFamily,
        "tokens found in the prefix cache",
    ),
    "cache_lookup_tokens": (
        "radixlm_cache_lookup_tokens",
        CounterMetricFamily,
        "tokens looked for in the prefix cache",
    ),
    "repairs": (
        "radixlm_repairs",
        CounterMetricFamily,
        "contradictions that the engine met and repaired",
    ),
    "gateway_requests": (
        "radixlm_live_requests",
        GaugeMetricFamily,
        "requests that the gateway has not answered",
    ),
    "gateway_clients": ("radixlm_clients", GaugeMetricFamily, "clients of the gateway"),
}


class Metrics:
    """The metrics of one server. A watcher of live requests."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        registry = self.registry
        self._requests = Counter(
            "radixlm_http_requests",
            "answered HTTP requests",
            ("route", "status"),
            registry=registry,
        )
        self._in_work = Gauge(
            "radixlm_http_requests_in_work", "HTTP requests in work", registry=registry
        )
        self._first = Histogram(
            "radixlm_time_to_first_token_seconds", "from the request's start to its first text (streams)",
            buckets=_LONG_S, registry=registry,
        )  # fmt: skip
        self._between = Histogram(
            "radixlm_inter_token_seconds", "between tokens of one output, averaged over each piece of text (streams)",
            buckets=_SHORT_S, registry=registry,
        )  # fmt: skip
        self._total = Histogram(
            "radixlm_request_seconds", "from a generation's start to its end", ("outcome",),
            buckets=_LONG_S, registry=registry,
        )  # fmt: skip
        self._queue = Histogram(
            "radixlm_queue_seconds",
            "in the engine, before the first step",
            buckets=_LONG_S,
            registry=registry,
        )
        self._loop_lag = Histogram(
            "radixlm_event_loop_lag_seconds",
            "how late the server's loop runs what is due",
            buckets=_SHORT_S,
            registry=registry,
        )
        self._tokens = Counter(
            "radixlm_tokens", "tokens by kind; cached ones are part of prompt, forced ones of completion",
            ("kind",), registry=registry,
        )  # fmt: skip
        self._engine = _EngineCounters()
        registry.register(self._engine)
        self._last_s: dict[tuple[int, int], float] = {}  # (live request, output) -> its newest text

    # ------------------------------------------------------------------------------------------ requests

    def request_begins(self) -> None:
        """An HTTP request came."""
        self._in_work.inc()

    def request_ends(self, route: str, status: int) -> None:
        """It was answered; `route` is the path's pattern, so that the number of series stays small."""
        self._in_work.dec()
        self._requests.labels(route, str(status)).inc()

    def on_delta(self, live: LiveRequest, delta: m.Delta) -> None:
        """Text of a stream came."""
        now_s = time.monotonic()
        key = (id(live), delta.index)
        before_s = self._last_s.get(key)
        if before_s is None:
            self._first.observe(now_s - live.started_s)
        else:
            self._between.observe((now_s - before_s) / max(len(delta.token_ids), 1))
        self._last_s[key] = now_s

    def on_end(self, live: LiveRequest, finished: m.Finished | None) -> None:
        """A generation ended."""
        for index in range(live.message.sampling.n):
            self._last_s.pop((id(live), index), None)
        self._total.labels(live.outcome).observe(time.monotonic() - live.started_s)
        if finished is not None:
            self._queue.observe(finished.queue_s)
            self.observe_usage(finished.usage)

    def observe_loop_lag(self, lag_s: float) -> None:
        """A due callback of the loop came this late."""
        self._loop_lag.observe(lag_s)

    def observe_usage(self, usage: m.Usage) -> None:
        """Count the tokens of one answer. Live requests are counted by themselves."""
        for kind, number in (
            ("prompt", usage.prompt_tokens),
            ("cached", usage.cached_tokens),
            ("completion", usage.completion_tokens),
            ("forced", usage.forced_tokens),
        ):
            self._tokens.labels(kind).inc(number)

    # ------------------------------------------------------------------------------------------ the page

    def render(self, counters: Mapping[str, float] | None) -> bytes:
        """The page. `counters` are those of engine and gateway, None when they did not answer."""
        self._engine.counters = counters
        return generate_latest(self.registry)


class _EngineCounters:
    """Turns the newest StatsReply into metrics."""

    def __init__(self) -> None:
        self.counters: Mapping[str, float] | None = None

    def collect(self) -> Iterator[Metric]:
        counters = self.counters
        up = GaugeMetricFamily("radixlm_engine_up", "1 when the engine answered this scrape")
        up.add_metric([], 0.0 if counters is None else 1.0)
        yield up
        for name, (metric, kind, text) in _ENGINE.items():
            if counters is not None and name in counters:
                family = kind(metric, text)
                family.add_metric([], counters[name])
                yield family
