"""The durable engine's own database is a trust boundary: JSON rows only, and nothing that runs."""

from __future__ import annotations

import base64
import pickle
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from matrix_coder.core.errors import StoreUntrusted
from matrix_coder.engine.worker import _add_clock, prepare_database


class Trap:
    """Runs a command where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return (Path.touch, (self.mark,))  # type: ignore[return-value]


LAUNCH = """
import sys
from dbos import DBOS, DBOSPortableJSONSerializer, SetWorkflowID
@DBOS.workflow(name="sum")
def work(n: int) -> int:
    return DBOS.run_step({"name": "add"}, lambda: n + 1)
DBOS(config={"name": "matrix-coder", "system_database_url": f"sqlite:///{sys.argv[1]}", "enable_otlp": False,
     "serializer": DBOSPortableJSONSerializer(), "log_level": "ERROR", "executor_id": "test"})
DBOS.launch()
with SetWorkflowID("run-1"):
    assert DBOS.start_workflow(work, 1).get_result() == 2
DBOS.destroy()
"""


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a database that the real engine has worked in."""
    path = tmp_path_factory.mktemp("dbos") / "dbos.db"
    prepare_database(path)
    subprocess.run([sys.executable, "-c", LAUNCH, str(path)], check=True, capture_output=True, timeout=120)
    with sqlite3.connect(path) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    return path.read_bytes()


@pytest.fixture
def database(tmp_path: Path, used: bytes) -> Path:
    path = tmp_path / "dbos.db"
    path.write_bytes(used)
    return path


def change(path: Path, sql: str, *values: object) -> None:
    db = sqlite3.connect(path)
    assert db.execute(sql, values).rowcount != 0
    db.commit()
    db.close()


def trapped(mark: Path) -> str:
    """A pickle that leaves a mark when it is read, as the library's default form stores it."""
    return base64.b64encode(pickle.dumps(Trap(mark))).decode()


def test_prepare_when_there_is_no_database_then_an_empty_one_for_the_owner_alone(tmp_path: Path) -> None:
    """A new database can be read by nobody else and is in WAL mode."""
    prepare_database(tmp_path / "dbos.db")
    assert stat.S_IMODE((tmp_path / "dbos.db").stat().st_mode) == 0o600
    db = sqlite3.connect(tmp_path / "dbos.db")
    assert db.execute("pragma journal_mode").fetchone() == ("wal",)
    db.close()


def test_prepare_when_the_engine_itself_wrote_it_then_accepted(database: Path) -> None:
    """What the real library writes under our configuration is JSON throughout, and a lax mode is tightened."""
    database.chmod(0o644)
    prepare_database(database)
    prepare_database(database)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


FOREIGN = {
    "workflow_status": "update workflow_status set inputs = ?, serialization = 'py_pickle'",
    "operation_outputs": "update operation_outputs set output = ?, serialization = 'py_pickle'",
    "notifications": "insert into notifications (destination_uuid, message, serialization, message_uuid) "
    "values ('run-1', ?, 'py_pickle', 'm')",
    "workflow_events": "insert into workflow_events (workflow_uuid, key, value, serialization) "
    "values ('run-1', 'k', ?, 'py_pickle')",
    "workflow_events_history": "insert into workflow_events_history "
    "(workflow_uuid, function_id, key, value, serialization) values ('run-1', 1, 'k', ?, 'py_pickle')",
    "streams": 'insert into streams (workflow_uuid, key, value, serialization, "offset", function_id) '
    "values ('run-1', 'k', ?, 'py_pickle', 0, 1)",
}


@pytest.mark.parametrize("table", FOREIGN)
def test_prepare_when_a_row_is_pickled_then_refused_and_nothing_of_it_runs(
    database: Path, tmp_path: Path, table: str
) -> None:
    """A planted row that would run code as it is read is refused by its form, unread, in whatever table it lies."""
    trap = trapped(tmp_path / "ran")
    change(database, FOREIGN[table], trap)
    with pytest.raises(StoreUntrusted, match=rf"1 row\(s\) of another form in {table}; move the file away"):
        prepare_database(database)
    assert not (tmp_path / "ran").exists()
    pickle.loads(base64.b64decode(trap))
    assert (tmp_path / "ran").exists(), "the trap itself must work, or this test shows nothing"


def test_tables_when_the_library_has_one_with_a_form_then_it_is_tried_above(database: Path) -> None:
    """A new version of the library that stores values in another table is noticed here."""
    db = sqlite3.connect(database)
    tables = [row[0] for row in db.execute("select name from sqlite_master where type = 'table'")]
    formed = {t for t in tables if any(c[1] == "serialization" for c in db.execute(f"pragma table_info('{t}')"))}
    db.close()
    assert formed == set(FOREIGN)


@pytest.mark.parametrize("form", ["custom_serializer", "", "PORTABLE_JSON", "portable_json "])
def test_prepare_when_a_form_is_unknown_then_refused(database: Path, form: str) -> None:
    """Anything but our own form is foreign."""
    change(database, "update workflow_status set serialization = ?", form)
    with pytest.raises(StoreUntrusted):
        prepare_database(database)


@pytest.mark.parametrize(
    "sql",
    [
        "create trigger late after insert on workflow_status begin "
        "update workflow_status set serialization = 'py_pickle'; end",
        "create view extra as select * from workflow_status",
        'create table "odd ""name" as select \'py_pickle\' as serialization',
    ],
)
def test_prepare_when_the_schema_holds_what_the_library_never_made_then_refused(database: Path, sql: str) -> None:
    """A trigger that would turn rows foreign later is refused as they are."""
    change(database, sql)
    with pytest.raises(StoreUntrusted):
        prepare_database(database)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4_000])
def test_prepare_when_the_file_is_no_database_then_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    """A foreign file gets one clear line and is not overwritten."""
    path = tmp_path / "dbos.db"
    path.write_bytes(content)
    with pytest.raises(StoreUntrusted, match="move the file away"):
        prepare_database(path)
    assert path.read_bytes() == content


def test_old_sqlite_when_taught_then_answers_the_clock_that_the_schema_asks_for() -> None:
    """`unixepoch('subsec')` in a table's default gives milliseconds on any SQLite, also one that knows no fractions."""
    db = sqlite3.connect(":memory:")
    _add_clock(db, None)
    db.execute("create table t (id integer, at integer not null default (unixepoch('subsec') * 1000))")
    db.execute("insert into t (id) values (1)")
    (at,) = db.execute("select at from t").fetchone()
    assert abs(at / 1000 - time.time()) < 60
    assert isinstance(db.execute("select unixepoch()").fetchone()[0], int)
    db.close()
