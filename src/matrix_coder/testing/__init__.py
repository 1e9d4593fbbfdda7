"""Doubles that users may use too: a scripted model server, a real Hermes home around it, a manual clock.

Nothing here is used by the plugin in a conversation. The scripted model is a *double*: a small
OpenAI-compatible server that answers from a script, so that the real host can be driven offline.
"""

from __future__ import annotations

from .clock import ManualClock
from .home import HermesHome, Result
from .script import Play, Rule, Script, load_rules
from .server import ScriptedModel

__all__ = ["HermesHome", "ManualClock", "Play", "Result", "Rule", "Script", "ScriptedModel", "load_rules"]
