"""What macOS lacks of Linux is not used, or there is another way."""

import ast
from pathlib import Path

import greylag

LINUX = {
    "os": {
        "O_DIRECT", "O_PATH", "O_TMPFILE", "POSIX_FADV_DONTNEED", "copy_file_range", "eventfd", "fdatasync",
        "getrandom", "getresgid", "getresuid", "getxattr", "listxattr", "memfd_create", "pidfd_open", "pipe2",
        "posix_fadvise", "posix_fallocate", "removexattr", "sched_getaffinity", "sched_setaffinity",
        "sched_setscheduler", "setns", "setresgid", "setresuid", "setxattr", "splice", "unshare", "waitid",
    },
    "resource": {"prlimit"},
    "select": {"epoll"},
    "signal": {"SIGPWR", "SIGRTMAX", "SIGRTMIN", "SIGSTKFLT", "sigtimedwait", "sigwaitinfo"},
    "socket": {"AF_NETLINK", "AF_PACKET", "AF_VSOCK"},
}  # fmt: skip
"""Attributes of the standard library that Linux has and macOS has not, by module."""
GUARDED = {
    ("base/runtime/folders.py", "os.posix_fadvise"), ("base/runtime/folders.py", "os.POSIX_FADV_DONTNEED"),
    ("base/runtime/parallel.py", "os.sched_getaffinity"),
}  # fmt: skip
"""Uses that `hasattr` or `suppress(AttributeError)` guards."""


def test_calls_of_linux_have_another_way():
    root = Path(greylag.__file__).parent
    used = {
        (str(path.relative_to(root)), f"{node.value.id}.{node.attr}")
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.attr in LINUX.get(node.value.id, set())
    }
    assert used == GUARDED
