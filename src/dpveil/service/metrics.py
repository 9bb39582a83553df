"""The figures of one service, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)  # bounds of the classes of times


class Metrics:
    """The figures of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        by = ["route", "status"]
        self.requests = Counter("dpveil_requests", "Requests by route and status.", by, registry=own)
        self.seconds = Histogram(
            "dpveil_request_seconds", "Time until the answer began.", ["route"], buckets=SECONDS, registry=own
        )
        self.releases = Counter("dpveil_releases", "Releases that were drawn and kept.", registry=own)
        self.refused = Counter("dpveil_budget_refused", "Releases that a budget did not allow.", registry=own)
        self.lost = Counter("dpveil_releases_lost", "Releases that were paid for and not made.", registry=own)

    def watch(self, name: str, words: str, read: Callable[[], float]) -> None:
        """Add a figure that is read when it is asked for."""
        Gauge(f"dpveil_{name}", words, registry=self.registry).set_function(read)

    def text(self) -> bytes:
        return generate_latest(self.registry)
