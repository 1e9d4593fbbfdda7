"""`python -m matrix_coder.testing serve`: the scripted model as a process of its own."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .server import ScriptedModel


def main(arguments: list[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m matrix_coder.testing")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="a scripted OpenAI-compatible model on 127.0.0.1")
    serve.add_argument("--rules", type=Path, required=True, help="JSON file: a list of rules")
    serve.add_argument("--port", type=int, default=0, help="0 takes a free one")
    serve.add_argument("--port-file", type=Path, help="written once the server listens")
    serve.add_argument("--log", type=Path, help="JSONL file for every request")
    options = parser.parse_args(arguments)
    model = ScriptedModel(options.rules, log=options.log, port=options.port)
    if options.port_file:
        part = options.port_file.with_suffix(".part")
        part.write_text(f"{model.port}\n", encoding="utf-8")
        part.replace(options.port_file)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        model.serve_forever()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
