"""What one call of the model cost, asked of the host's own price lists."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from matrix_coder.hermes.pricing import Priced, price

USAGE = {"input_tokens": 1_000, "output_tokens": 100, "cache_read_tokens": 50, "total_tokens": 1_150}


@contextmanager
def endpoint(pricing: Any) -> Iterator[str]:
    """The base URL of a server whose list of models has one, with this price."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = json.dumps({"data": [{"id": "m", "pricing": pricing}]}).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


def test_price_when_the_host_has_a_price_list_then_each_kind_of_token_has_its_own() -> None:
    """Tokens read from a cache are cheaper than new ones, and count among those that went in."""
    found = price({"usage": USAGE, "model": "gpt-5.6-sol", "provider": "openai"})
    assert found == Priced(input=1_050, output=100, cost=pytest.approx(1_000 * 5e-6 + 100 * 30e-6 + 50 * 0.5e-6))


def test_price_when_the_call_is_part_of_a_subscription_then_it_is_priced_at_nothing() -> None:
    """What the host knows to cost nothing has a price, and it is 0."""
    found = price({"usage": USAGE, "model": "any", "provider": "openai-codex"})
    assert found == Priced(input=1_050, output=100)


@pytest.mark.parametrize(
    ("pricing", "cost"),
    [
        ({"prompt": "0", "completion": "0", "cache_read": "0"}, 0.0),
        ({"prompt": "0.001", "completion": "0.01", "cache_read": "0.0001"}, 2.005),
        ({"prompt": "-1", "completion": "-1", "cache_read": "-1"}, None),
        ({"prompt": "Infinity", "completion": "0", "cache_read": "0"}, None),
        ({"prompt": "NaN", "completion": "0", "cache_read": "0"}, None),
        ({"prompt": "0.001", "completion": "0.01"}, None),
        ("free of charge", None),
        (None, None),
    ],
)
def test_price_when_an_endpoint_lists_its_prices_then_only_a_usable_one_counts(
    pricing: Any, cost: float | None
) -> None:
    """A list can hold a 0 that means 0, and much that is no price: then the call's tokens have none."""
    with endpoint(pricing) as base_url:
        found = price({"usage": USAGE, "model": "m", "provider": "custom", "base_url": base_url})
    expected = Priced(input=1_050, output=100, unpriced=1_150) if cost is None else None
    assert found == (expected or Priced(input=1_050, output=100, cost=pytest.approx(cost)))


@pytest.mark.parametrize(
    "told",
    [
        {"model": "m", "provider": "custom", "base_url": "http://[no-address"},
        {"model": None, "provider": None, "base_url": None},
        {},
    ],
)
def test_price_when_the_host_cant_say_then_the_tokens_have_no_price(told: dict[str, Any]) -> None:
    """Whatever is wrong with a price, the call and its tokens are counted."""
    assert price({**told, "usage": USAGE}) == Priced(input=1_050, output=100, unpriced=1_150)


def test_price_when_no_usage_was_told_then_nothing_is_counted() -> None:
    """A provider that does not count tokens costs what nobody knows."""
    assert price({"model": "gpt-5.6-sol", "provider": "openai", "usage": None}) is None
