create table if not exists meta (
    key   text primary key,
    value text not null
);

create table if not exists runs (
    id          integer primary key autoincrement,
    workflow    text not null,
    definition  text not null,
    goal        text not null,
    domain      text not null default '',
    workspace   text not null,
    session_id  text not null default '',
    checks      text not null,
    limits      text not null,
    options     text not null default '{}',
    environment text not null default '{}',
    generation  integer not null default 0,
    status      text not null default 'queued',
    outcome     text,
    reason      text not null default '',
    question    text not null default '',
    iteration   integer not null default 0,
    check_seconds real not null default 0,
    baseline    text not null default '[]',
    evidence    text not null default '[]',
    start_tree  text not null default '',
    final_tree  text not null default '',
    changed     text not null default '[]',
    created_at  real not null,
    started_at  real not null default 0,
    ended_at    real not null default 0
);

-- One live run for each workspace, whoever starts it and from which process.
create unique index if not exists runs_one_live_per_workspace
    on runs (workspace) where status != 'ended';

create table if not exists steps (
    run_id        integer not null references runs (id),
    number        integer not null,
    step          text not null,
    role          text not null,
    iteration     integer not null,
    status        text not null,
    attempt       integer not null default 1,
    report        text,
    evidence      text not null default '[]',
    result        text,
    redo          integer not null default 0,
    note          text not null default '',
    usage         text not null default '{}',
    tree_before   text not null default '',
    tree_after    text not null default '',
    pid           integer not null default 0,
    pid_started   real not null default 0,
    child_session text not null default '',
    started_at    real not null,
    ended_at      real not null default 0,
    primary key (run_id, number)
);

create table if not exists events (
    id     integer primary key autoincrement,
    run_id integer not null references runs (id),
    at     real not null,
    kind   text not null,
    data   text not null
);
create index if not exists events_of_run on events (run_id, id);

create table if not exists controls (
    id      integer primary key autoincrement,
    run_id  integer not null references runs (id),
    kind    text not null,
    text    text not null default '',
    at      real not null,
    applied real not null default 0
);

create table if not exists sessions (
    session_id text not null,
    run_id     integer not null references runs (id),
    told       real not null default 0,
    primary key (session_id, run_id)
);

create table if not exists cards (
    run_id  integer not null references runs (id),
    step    integer not null,
    card_id text not null,
    shown   text not null default '',
    state   text not null default '',
    board   text not null default '',
    primary key (run_id, step)
);

-- What a person was shown of a run in a chat, unasked: a row is taken before the event is shown.
create table if not exists milestones (
    session_id text not null,
    event_id   integer not null references events (id),
    at         real not null,
    primary key (session_id, event_id)
);
