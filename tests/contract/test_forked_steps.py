"""A step's process that was forked knows what one that loads the host itself would know."""

from __future__ import annotations

import json
from pathlib import Path

from matrix_coder.core.models import RunOutcome

from .runbench import MEND, Bench, rules, says


def test_step_when_the_home_has_an_env_file_then_each_step_has_it_as_it_is_now(bench: Bench, tmp_path: Path) -> None:
    """What the person keeps in HERMES_HOME/.env holds in every step, also when it was edited since the last one."""
    look = {"tool": "terminal", "args": {"command": "echo the hue is $PAINT_HUE"}}
    repaint = {"tool": "terminal", "args": {"command": f"python3 {tmp_path}/repaint.py"}}
    place = bench(rules([says("PASS", MEND, look, repaint)], [says("PASS", look)]))
    settings = place.home.path / ".env"
    settings.write_text("PAINT_HUE=blue\n")
    (tmp_path / "repaint.py").write_text(f"open({str(settings)!r}, 'w').write('PAINT_HUE=green\\n')\n")
    assert place.run().outcome is RunOutcome.VERIFIED
    sent = json.dumps(place.model.bodies)
    assert "the hue is blue" in sent
    assert "the hue is green" in sent
