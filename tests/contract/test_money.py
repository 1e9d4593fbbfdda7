"""Money in real runs: a provider that the host has a price list for, and one that it has none for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matrix_coder.core.errors import InputError
from matrix_coder.core.models import RunOutcome
from matrix_coder.hermes.commands import show_text

from .runbench import MEND, Bench, RunBench, report, rules, says

IN_USD, OUT_USD = 0.14e-6, 0.28e-6
LARGE = {"usage": {"input": 100, "output": 100_000}}


def priced(place: RunBench) -> RunBench:
    """The bench with a provider and a model of the host's price list, served by the scripted model."""
    place.home.configure({"model": {"provider": "deepseek", "default": "deepseek-chat"}})
    address = f"DEEPSEEK_API_KEY=none\nDEEPSEEK_BASE_URL={place.model.base_url}\n"
    (place.home.path / ".env").write_text(address, encoding="utf-8")
    return place


@pytest.mark.outcome("ralph", "budget")
@pytest.mark.outcome("ralph", "verified")
def test_money_budget_when_it_is_spent_then_stops_and_goes_on_when_raised(bench: Bench) -> None:
    """What the host priced is counted before each step; only a raise lets the run go on, and the report tells all."""
    dear = (MEND, {**report("PASS"), **LARGE}, {"text": "done"})
    place = priced(bench(rules([dear], [says("PASS")])))
    first = place.run(limits={"money_usd": 0.02})
    spent = 300 * IN_USD + 100_040 * OUT_USD
    assert first.outcome is RunOutcome.BUDGET, first.reason
    assert first.reason == "$0.0281 of $0.02 used (the host's estimate)"
    assert first.usage.cost_usd == pytest.approx(spent)
    assert first.usage.unpriced_tokens == 0
    with pytest.raises(InputError, match="limits only go up"):
        place.client.raise_limits("r1", money_usd=0.01)
    with pytest.raises(InputError, match=r"raise r1 money=0\.04"):
        place.client.resume("r1")
    place.client.raise_limits("r1", money_usd=1.0)
    after = place.finish("r1")
    assert after.outcome is RunOutcome.VERIFIED, after.reason
    assert after.usage.cost_usd == pytest.approx(spent + 200 * IN_USD + 40 * OUT_USD)
    text = Path(after.report_path).read_text(encoding="utf-8")
    assert "$0.0281 by the host's estimate." in text
    assert "| executor | 1 | 100,340 | $0.0281 |" in text
    data = json.loads(Path(after.report_path).with_suffix(".json").read_text(encoding="utf-8"))
    assert data["cost"]["by_role"]["executor"]["cost_usd"] == pytest.approx(spent)
    assert data["money_usd"] == 1.0
    assert "unpriced" not in {kind for kind, _ in place.events}


@pytest.mark.outcome("ralph", "verified")
def test_money_budget_when_the_host_knows_no_price_then_the_run_says_that_it_limits_nothing(bench: Bench) -> None:
    """Once while it runs, and in its report: a money budget over unpriced tokens is never silently no limit."""
    place = bench(rules([says("PASS", MEND)], [says("PASS")]))
    result = place.run(limits={"money_usd": 0.01})
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert result.usage.cost_usd == 0
    assert result.usage.unpriced_tokens == result.usage.tokens > 0
    told = [data["words"] for kind, data in place.events if kind == "unpriced"]
    assert told == ["360 tokens had no price the host knows; the money budget of $0.01 does not count them"]
    words = f"{result.usage.tokens:,} tokens had no price the host knows; the money budget of $0.01 does not count"
    assert words in Path(result.report_path).read_text(encoding="utf-8")
    assert words in show_text(place.client.show("r1"))


@pytest.mark.outcome("ralph", "cancelled")
def test_money_when_a_step_is_stopped_halfway_then_its_calls_so_far_are_in_the_cost(
    bench: Bench, tmp_path: Path
) -> None:
    """Each call is priced as it ends, so that what was cut off is not free; a run without a budget can't get one."""
    hangs = ({**MEND, **LARGE}, {**report("PASS"), "until": str(tmp_path / "never")})
    place = priced(bench(rules([hangs], [says("PASS")])))
    place.start()
    place.wait_for(lambda: len(place.model.requests) == 2)
    with pytest.raises(InputError, match="r1, which has none"):
        place.client.raise_limits("r1", money_usd=5.0)
    place.client.cancel("r1")
    result = place.finish("r1")
    assert result.outcome is RunOutcome.CANCELLED, result.reason
    assert result.usage.cost_usd == pytest.approx(100 * IN_USD + 100_000 * OUT_USD)
