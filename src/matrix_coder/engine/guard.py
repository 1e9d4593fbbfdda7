"""Runs one command so that nothing of it can outlive its end, and so that a reading step can't write.

    python -I -S guard.py LEASE_FD [--protect DIRECTORY [--layer FOLDER] --keep DIRECTORY ...] -- COMMAND ...

A process of its own between the engine and the command, with nothing but the standard library. It is the reaper
of everything below it: a daemon that has left its session, its parent and its environment still ends up as its
child. It ends them all when the command ends, when the engine lets go of the lease (a pipe), and so also when the
engine is killed. Its exit code is the command's, as a shell would tell it.

With `--protect`, the kernel (Landlock) refuses every write below that directory, to the command and to all that it
starts, and every signal to anybody else; `--keep` names directories below or beside it that stay writable. Where the
kernel has no Landlock, nothing is refused, and the engine's look at the tree before and after is what is left.

With `--layer`, the command sees that directory through a layer of its own: what it writes there lies in the named
folder, and nobody else ever sees it. The exit code is 71 where the kernel can't do that.
"""

import ctypes
import os
import select
import signal
import struct
import sys
import time

TYPE_CHECKING = False  # typing's own would cost its import
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
# Removing and making directories, files, sockets, pipes, devices and links.
_CHANGES = sum(1 << bit for bit in range(4, 13))
_SCOPE_SIGNAL, _SCOPES_SINCE = 1 << 1, 6
_PR_SET_PDEATHSIG = 1
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_ENGINE_GONE = 70
NO_LAYER = 71


def main(arguments: "list[str]") -> int:
    """Run the command of this command line; its exit code."""
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    named = {w: [options[i + 1] for i, word in enumerate(options) if word == w] for w in ("--protect", "--layer")}
    keep = [options[i + 1] for i, word in enumerate(options) if word == "--keep"]

    def become() -> int:
        confine(*named["--protect"][:1], keep=keep, layer=(named["--layer"] or [""])[0])
        os.execvp(command[0], command)

    return hold(become, int(options[0]))


def hold(become: "Callable[[], int]", lease: int, mine: "tuple[int, ...]" = (), its: "tuple[int, ...]" = ()) -> int:
    """Run `become` in a child of this process, which ends it and all it started; its exit code.

    The descriptors of `mine` are closed in the child, those of `its` in this process. It has to be alone: no threads.
    """
    _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: None)
    child = os.fork()
    if child == 0:
        _in_child(become, (lease, *mine))
    for fd in its:
        os.close(fd)
    code = _wait(child, lease)
    _end_all()
    return code


def _in_child(become: "Callable[[], int]", close: "tuple[int, ...]") -> None:
    code = 127
    try:
        # Whoever kills the guard has not freed the command.
        _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        for fd in close:
            os.close(fd)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        code = become()
    except LayerFailed as error:
        os.write(2, f"no layer of its own: {error}\n".encode())
        code = NO_LAYER
    except OSError as error:
        os.write(2, f"{error.filename or 'the command'}: {error}\n".encode())
    finally:
        os._exit(code)


class LayerFailed(Exception):
    """The kernel does not let this process see a directory through a layer of its own."""


def confine(protect: str = "", *, keep: "list[str]", layer: str = "") -> None:
    """Make this process one that can't change what lies below `protect`. Raises LayerFailed."""
    if not protect:
        return
    # Of a linked worktree or a submodule: its own submodules' git directories lie there, too.
    elsewhere = _repository(os.path.realpath(protect))
    if layer:
        _put_layer(os.path.realpath(protect), layer)
        keep = [*keep, protect]
    if not forbid_writes([protect, *elsewhere], keep) and layer:
        # Without it, whoever may mount may also take the layer away.
        raise LayerFailed("the kernel has no Landlock")


def _put_layer(directory: str, folder: str) -> None:
    upper, work = os.path.join(folder, "upper"), os.path.join(folder, "work")
    for path in (upper, work):
        os.makedirs(path, mode=0o700, exist_ok=True)
    libc, user, group = _libc(), os.geteuid(), os.getegid()
    options = f"lowerdir={directory},upperdir={upper},workdir={work}"
    if user:
        options += ",userxattr"
        _must(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS), "a namespace of its own")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode())
    else:
        _must(libc.unshare(_CLONE_NEWNS), "a namespace of its own")
    _must(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mounts of its own")
    _must(libc.mount(b"overlay", os.fsencode(directory), b"overlay", 0, os.fsencode(options)), "the layer")
    link = os.path.join(directory, ".git")
    if os.path.islink(link) or os.path.isfile(link):
        # A linked worktree or submodule: git commands would write into a repository elsewhere.
        os.unlink(link)
    # The working directory still names what lies below the layer.
    os.chdir(os.getcwd())


def _repository(directory: str) -> "list[str]":
    """Where the repository lies that a directory's `.git` leads to; nothing where that is the repository itself."""
    link = os.path.join(directory, ".git")
    if os.path.islink(link):
        return [os.path.realpath(link)]
    said = _text(link)
    if not said.startswith("gitdir:"):
        return []
    own = os.path.realpath(os.path.join(directory, said.partition(":")[2].strip()))
    common = _text(os.path.join(own, "commondir")).strip()
    return [own, os.path.realpath(os.path.join(own, common))]


def _text(path: str) -> str:
    try:
        # Nothing that would be waited for, such as a pipe.
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return os.fsdecode(file.read(4096))
    except OSError:
        pass
    return ""


def _must(result: int, what: str) -> None:
    if result:
        raise LayerFailed(f"{what}: {os.strerror(ctypes.get_errno())}")


def _wait(child: int, lease: int) -> int:
    """The command's exit code once it has ended, or the code for a lease that was let go."""
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([ended, lease], [], [])
        if lease in ready and not os.read(lease, 1):
            return _ENGINE_GONE
        if ended in ready:
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def _end_all() -> None:
    """Kill whatever is below this process until there is nothing: its orphans have become its own children."""
    while True:
        children = _children()
        for pid in _descendants(os.getpid()) if children is None else children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children() -> "list[int] | None":
    """This process's own children, which a look at all processes would find too late; None where nobody tells."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return None


def _descendants(root: int) -> "list[int]":
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    # The second field is a program's name in brackets, and may hold anything.
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def forbid_writes(protect: "list[str]", keep: "list[str]") -> bool:
    """Let this process and all it starts write nothing below these directories; whether the kernel could do that.

    Where the kernel can keep that in, too, they send no signals but to each other.

    Landlock knows only what is allowed. So everything beside the paths to `protect` is allowed, level by level, and
    new entries right in the directories on those paths are not: temporary files belong into a directory of `keep`.
    """
    libc = _libc()
    abi = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        return False
    changes = _CHANGES | (_REFER if abi >= 2 else 0)
    handled = _WRITE_FILE | changes | (_TRUNCATE if abi >= 3 else 0)
    # The guard and the engine are outside; a careless `pkill python` is, too.
    words = struct.pack("QQQ", handled, 0, _SCOPE_SIGNAL) if abi >= _SCOPES_SINCE else struct.pack("Q", handled)
    attribute = ctypes.create_string_buffer(words, len(words))
    ruleset = libc.syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(words)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    for path in [*_beside({os.path.realpath(p) for p in protect}), *keep]:
        _allow(libc, ruleset, path, handled, changes)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)) == 0)


def _beside(shut: "set[str]") -> "list[str]":
    """Every entry of every directory above what is shut, but for those that lead to it."""
    above: set[str] = set()
    todo = {*shut} - {"/"}
    while todo:
        above |= {os.path.dirname(path) for path in todo}
        todo = {os.path.dirname(path) for path in todo} - {"/"}
    found: list[str] = []
    for directory in above:
        if any(os.path.commonpath([directory, path]) == path for path in shut):
            continue
        try:
            entries = {os.path.join(directory, entry) for entry in os.listdir(directory)}
        except OSError:
            continue
        found += entries - above - shut
    return found


def _allow(libc: "ctypes.CDLL", ruleset: int, path: str, handled: int, changes: int) -> None:
    try:
        # A link may lead right back to what is protected; what it leads to elsewhere is allowed by its own place.
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        rights = handled if os.path.isdir(path) and not os.path.islink(path) else handled & ~changes
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd))
        libc.syscall(_ADD_RULE, ruleset, ctypes.c_uint32(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(fd)


def _libc() -> "ctypes.CDLL":
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
