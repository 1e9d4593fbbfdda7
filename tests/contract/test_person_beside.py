"""A person who works in the workspace while a run does: what is theirs is not taken for a step's."""

from __future__ import annotations

import json
import threading

from matrix_coder.core.models import RunOutcome, StepVerdict
from matrix_coder.engine import views

from .runbench import MEND, Bench, rules, says


def test_verify_when_a_person_edits_while_it_waits_for_the_provider_then_it_is_not_accused(bench: Bench) -> None:
    """What changed between two tries of a reading step is none of its doing; the checks look at it again."""
    body = json.dumps({"error": {"message": "slow down"}})
    look = {"tool": "terminal", "args": {"command": "ls"}, "http": 429, "body": body, "fail_times": 1}
    place = bench(rules([says("PASS", MEND)], [says("PASS", look)]))
    run = place.start(limits={"rate_wait_s": 3.0})
    edit = threading.Thread(target=lambda: place.event_of(1, "waiting") and (place.repo / "notes.md").write_text("x\n"))
    edit.start()
    result = place.finish(run.run_id)
    edit.join()
    step = views.view(place.client.store, 1).steps[1]
    assert step.report is not None
    assert step.report.verdict is StepVerdict.PASS, step.report.summary
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert "notes.md" in result.changed_files
