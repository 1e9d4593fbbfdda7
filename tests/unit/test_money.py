"""Money as people read and write it: in words, in a header, in the settings, as a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from matrix_coder.core.errors import InputError
from matrix_coder.core.gate_options import OptionError, read_option
from matrix_coder.core.intent_gate import parse_trigger
from matrix_coder.core.models import RunOutcome, RunStatus, RunView, Usage
from matrix_coder.core.money import dollars, money_words
from matrix_coder.engine.plan import Limits
from matrix_coder.hermes.commands import limit_options, show_text
from matrix_coder.hermes.settings import Settings, load_settings


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0.0, "$0.00"),
        (0.00001, "$0.0001"),
        (0.0123, "$0.0123"),
        (0.02, "$0.02"),
        (0.1, "$0.10"),
        (5.018, "$5.02"),
        (1_234.5, "$1,234.50"),
    ],
)
def test_dollars_when_written_then_a_small_amount_is_never_nothing(amount: float, words: str) -> None:
    """Cents for what people pay, more places for what is less than a dime."""
    assert dollars(amount) == words


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(), ""),
        (Usage(input_tokens=10, unpriced_tokens=10), ""),
        (Usage(input_tokens=10, cost_usd=0.42), "$0.42"),
        (Usage(input_tokens=10), "$0.00"),
        (Usage(input_tokens=10, cost_usd=0.42, unpriced_tokens=4), "at least $0.42"),
    ],
)
def test_money_when_worded_then_what_has_no_price_is_not_taken_for_free(usage: Usage, words: str) -> None:
    """A price of nothing is told, no price is not, and a part is told as a part."""
    assert money_words(usage) == words


@pytest.mark.parametrize(("raw", "amount"), [("5", 5.0), ("2.50", 2.5), ("$5", 5.0), ("0.01", 0.01)])
def test_money_option_when_an_amount_then_dollars(raw: str, amount: float) -> None:
    """The same in a header and where a limit is raised."""
    assert read_option("money", raw) == amount
    assert limit_options([f"money={raw}", "cap=8"]) == {"money_usd": amount, "cap": 8}
    decision = parse_trigger(f"matrix ralph money={raw}: make it work")
    assert decision is not None
    assert (decision.options, decision.goal) == ({"money": amount}, "make it work")


@pytest.mark.parametrize(
    "raw", ["", "0", "$0.00", "-5", "5$", "5e3", "inf", "nan", "1.234", "1,000", "5 EUR", "1234567"]
)
def test_money_option_when_no_amount_then_told_what_is(raw: str) -> None:
    """Nothing that could be read in two ways is an amount."""
    with pytest.raises(OptionError, match=r"not an amount of dollars such as 5, 2\.50 or \$5"):
        read_option("money", raw)
    with pytest.raises(InputError, match="amount of dollars"):
        limit_options([f"money={raw}"])


def test_money_limit_when_set_then_it_is_among_the_limits_and_a_start_goes_before_the_settings(tmp_path: Path) -> None:
    """A run is told its money budget where it has one; there is none unless somebody sets it."""
    assert Settings().run_limits({}).money_usd == 0
    assert "$" not in Limits().words()
    text = "plugins: {entries: {matrix_coder: {settings: {limits: {money: 2.5}}}}}"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    settings = load_settings(tmp_path)
    assert settings.run_limits({}).money_usd == 2.5
    assert settings.run_limits({"money": 4.0}).money_usd == 4.0
    assert "2,000,000 tokens, $2.50 by the host's prices, 30 min a step" in settings.run_limits({}).words()


@pytest.mark.parametrize("value", ["-1", ".inf", ".nan", "lots"])
def test_money_setting_when_no_amount_then_refused(tmp_path: Path, value: str) -> None:
    """A budget that can't be met or never ends is none."""
    text = f"plugins: {{entries: {{matrix_coder: {{settings: {{limits: {{money: {value}}}}}}}}}}}"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"limits\.money"):
        load_settings(tmp_path)


def test_show_when_a_run_has_cost_something_then_its_line_says_so() -> None:
    """Money stands beside tokens and time, and what the budget does not count is named."""
    used = Usage(input_tokens=1_000, seconds=2.0, cost_usd=0.42)
    run = RunView(
        run_id="r7", workflow="ralph", goal="g", workspace="/w", status=RunStatus.RUNNING, iteration=1, usage=used
    )
    assert "iteration 1 of 5, 1,000 tokens, $0.42, 2 s of work" in show_text(run)
    part = RunView(
        run_id="r7",
        workflow="ralph",
        goal="g",
        workspace="/w",
        status=RunStatus.ENDED,
        outcome=RunOutcome.UNVERIFIED,
        iteration=1,
        money_usd=5.0,
        usage=Usage(input_tokens=1_000, seconds=2.0, unpriced_tokens=1_000),
    )
    assert "1,000 tokens, 2 s of work\n1,000 tokens had no price the host knows; the money budget" in show_text(part)
