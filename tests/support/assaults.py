r"""Every way to change, replace or make a path, as programs that run inside (after support.attempts.PRELUDE).

Rule: each verb works on an unprotected neighbour in the same run, made fresh for it; that is its positive
control, and a verb that has none is not here. Nothing is put back: on a protected path every verb fails, and
what a verb did to a neighbour is the neighbour's end.
"""

ASSAULT = r"""
import fcntl
FREE = "free"
GET_FLAGS, SET_FLAGS, NO_DUMP = 0x80086601, 0x40086602, 0x40  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_NODUMP_FL
EXCHANGE = 2  # RENAME_EXCHANGE
count = 0
def fresh(kind="file"):
    global count
    count += 1
    name = f"{FREE}/fresh-{count}"
    os.mkdir(name) if kind == "folder" else keep(name, "fresh")
    return name
def away():
    return f"{fresh('folder')}/away"
def with_fd(path, flags, deed):
    fd = os.open(path, flags)
    try:
        return deed(fd)
    finally:
        os.close(fd)
def opened(path, flags, *mode):
    os.close(os.open(path, flags, *mode))
def flagged(fd):
    (now,) = struct.unpack("l", fcntl.ioctl(fd, GET_FLAGS, bytes(8)))
    fcntl.ioctl(fd, SET_FLAGS, struct.pack("l", now | NO_DUMP))
def exchange(one, other):
    call("renameat2", AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), EXCHANGE)
def reopen(path, flags):
    with_fd(path, flags, lambda fd: opened(f"/proc/self/fd/{fd}", os.O_RDWR))
def bound_in(folder):
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)
        try:
            server.bind("planted.sock")
        finally:
            os.chdir(here)
def linked_write(path):
    name = away()
    os.link(path, name)
    opened(name, os.O_WRONLY)

ANY = {
    "rename away": lambda path: os.rename(path, away()),
    "rename beside": lambda path: os.rename(path, path + ".old"),
    "exchange": lambda path: exchange(path, fresh()),
    "exchange, the other way": lambda path: exchange(fresh("folder"), path),
    "chmod": lambda path: os.chmod(path, 0o777),
    "chown": lambda path: os.chown(path, os.getuid(), os.getgid()),
    "utime": lambda path: os.utime(path, (1, 1)),
    "utime of the open file": lambda path: with_fd(path, os.O_RDONLY, lambda fd: os.utime(fd, (1, 1))),
    "chmod of the open file": lambda path: with_fd(path, os.O_RDONLY, lambda fd: os.fchmod(fd, 0o777)),
    "chmod by /proc/self/fd": lambda path: with_fd(
        path, os.O_PATH, lambda fd: os.chmod(f"/proc/self/fd/{fd}", 0o777)),
    "set an attribute": lambda path: os.setxattr(path, "user.planted", b"1"),
    "set file flags": lambda path: with_fd(path, os.O_RDONLY, flagged),
}
OF_FILES = {
    **ANY,
    "write": lambda path: opened(path, os.O_WRONLY),
    "read and write": lambda path: opened(path, os.O_RDWR),
    "append": lambda path: opened(path, os.O_WRONLY | os.O_APPEND),
    "create where it is": lambda path: opened(path, os.O_WRONLY | os.O_CREAT, 0o644),
    "truncate": lambda path: os.truncate(path, 0),
    "truncate by open": lambda path: opened(path, os.O_WRONLY | os.O_TRUNC),
    "truncate an open file": lambda path: with_fd(
        path, os.O_RDONLY, lambda fd: os.truncate(f"/proc/self/fd/{fd}", 0)),
    "reopen to write": lambda path: reopen(path, os.O_RDONLY),
    "reopen a path to write": lambda path: reopen(path, os.O_PATH),
    "unlink": os.unlink,
    "rename over": lambda path: os.rename(fresh(), path),
    "link from": lambda path: os.link(path, away()),
    "link from, by fd": lambda path: with_fd(path, os.O_RDONLY, lambda fd: link_fd(fd, away())),
    "write through a link": linked_write,
}
IN_FOLDERS = {
    "make a file in it": lambda path: opened(path + "/planted", os.O_WRONLY | os.O_CREAT, 0o644),
    "make a folder in it": lambda path: os.mkdir(path + "/planted.d"),
    "make a link in it": lambda path: os.symlink("/etc/passwd", path + "/planted.link"),
    "make a hard link in it": lambda path: os.link(fresh(), path + "/planted.hard"),
    "make a pipe in it": lambda path: os.mkfifo(path + "/planted.fifo"),
    "make a socket in it": bound_in,
    "make a nameless file in it": lambda path: opened(path, os.O_RDWR | os.O_TMPFILE, 0o600),
    "move a file into it": lambda path: os.rename(fresh(), path + "/moved"),
    "move a folder into it": lambda path: os.rename(fresh("folder"), path + "/moved.d"),
}
OF_FOLDERS = {
    **ANY,
    **IN_FOLDERS,
    "make a file by its fd": lambda path: with_fd(
        path, os.O_RDONLY, lambda fd: os.close(os.open("planted.fd", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))),
}
OF_EMPTY_FOLDERS = {
    "rmdir": os.rmdir,
    "rename a folder over": lambda path: os.rename(fresh("folder"), path),
}
OF_LINKS = {
    "unlink": os.unlink,
    "rename away": ANY["rename away"],
    "rename over": OF_FILES["rename over"],
    "exchange": ANY["exchange"],
    "chown": lambda path: os.chown(path, os.getuid(), os.getgid(), follow_symlinks=False),
    "utime": lambda path: os.utime(path, (1, 1), follow_symlinks=False),
    "link from": lambda path: os.link(path, away(), follow_symlinks=False),
    "write through": OF_FILES["write"],
    "truncate through": OF_FILES["truncate"],
    "chmod through": ANY["chmod"],
}
OF_PINNED = {
    "rename away": ANY["rename away"],
    "rename beside": ANY["rename beside"],
    "exchange": ANY["exchange"],
    "exchange, the other way": ANY["exchange, the other way"],
}
VERBS = {"file": OF_FILES, "folder": OF_FOLDERS, "empty": OF_EMPTY_FOLDERS, "link": OF_LINKS, "pinned": OF_PINNED}

def neighbour(kind):
    made = fresh("file" if kind in ("file", "link") else "folder")
    if kind in ("folder", "pinned"):
        keep(made + "/child", "a child")
    if kind == "link":
        os.symlink(os.path.basename(made), made + ".link")
        made += ".link"
    return made
if not os.path.isdir(FREE):
    os.mkdir(FREE)
for path, kind in json.loads(sys.argv[1]):
    for verb, deed in VERBS[kind].items():
        attempt(f"{verb}: {path}", lambda: deed(path))
for kind, verbs in VERBS.items():
    for verb, deed in verbs.items():
        attempt(f"control, {kind}: {verb}", lambda: deed(neighbour(kind)))
say()
"""
"""Argument: a JSON list of (path, kind). Findings: "verb: path" for these, "control, kind: verb" for
neighbours.
"""

APPEAR = r"""
import time
FREE = "free"
PATIENCE = 60.0
count = 0
def fresh(kind="file"):
    global count
    count += 1
    name = f"{FREE}/fresh-{count}"
    os.mkdir(name) if kind == "folder" else keep(name, f"fresh {count}")
    return name
def whole(path):
    folder = fresh("folder")
    os.makedirs(folder + "/deep/er")
    keep(folder + "/deep/er/file", "planted deep")
    os.rename(folder, path)
def nameless(path):
    fd = os.open(FREE, os.O_RDWR | os.O_TMPFILE, 0o644)
    os.write(fd, b"planted without a name")
    link_fd(fd, path)
    os.close(fd)
def server(path):
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(os.path.dirname(path) or ".")
        try:
            made.bind(os.path.basename(path))
        finally:
            os.chdir(here)
WAYS = {
    "create": lambda path: keep(path, "planted"),
    "mkdir": os.mkdir,
    "symlink": lambda path: os.symlink("/etc/passwd", path),
    "dangling symlink": lambda path: os.symlink("nowhere", path),
    "link onto": lambda path: os.link(fresh(), path),
    "rename onto": lambda path: os.rename(fresh(), path),
    "move a tree onto": whole,
    "mkfifo": os.mkfifo,
    "socket": server,
    "nameless file": nameless,
}
def gone(path):
    end = time.monotonic() + PATIENCE
    while os.path.lexists(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True
if not os.path.isdir(FREE):
    os.mkdir(FREE)
for path in json.loads(sys.argv[1]):
    for way, deed in WAYS.items():
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        attempt(f"{way}: {path}", lambda: deed(path))
        if not gone(path):
            found[f"stays: {way}: {path}"] = "there"
for way, deed in WAYS.items():
    made = f"{FREE}/control {way} {os.getpid()} {time.monotonic_ns()}"
    deed(made)
    found[f"control: {way}"] = "there" if os.path.lexists(made) else "gone"
say()
"""
"""Argument: a JSON list of paths. Each is made in every way and must vanish again; neighbours stay."""

THROUGH_A_LINK = frozenset(
    "chmod; chown; utime; utime of the open file; chmod of the open file; chmod by /proc/self/fd; set an attribute; "
    "set file flags; write; read and write; append; create where it is; truncate; truncate by open; truncate an open file; "
    "reopen to write; reopen a path to write".split("; ")
)
"""What follows a link: at a held git config it changes the copy that the session keeps, and succeeds."""
