"""What macOS lacks of Linux is not used, or there is another way."""

import ast
from pathlib import Path

import greylag
from tests.processes import python

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
GUARDED = {("runtime/folders.py", "os.posix_fadvise"), ("runtime/folders.py", "os.POSIX_FADV_DONTNEED")}
"""Uses that `hasattr` guards."""
SESSION = """
import {modules}
for module, names in {lacking}.items():
    for name in names & set(dir(module := globals()[module])):
        delattr(module, name)
from pathlib import Path
from greylag import read_run, rerank, write_run
from greylag.runtime.folders import sync
passages = ["wind power at sea", "solar cells", "a river in flood", "power of the sea"]
print([hit.position for hit in rerank("sea power", passages, method="mmr")])
print([hit.position for hit in rerank("sea power", passages)])
Path("first.run").write_text("1 Q0 a 1 2 x\\n1 Q0 b 2 1 x\\n")
write_run(read_run("first.run"), "second.run")
sync(Path("second.run"), drop=True)
print(Path("second.run").read_text())
"""


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


def test_without_them_the_results_are_the_same(tmp_path):
    def shown(lacking):
        code = SESSION.format(modules=", ".join(LINUX), lacking=lacking)
        return python("-c", code, check=True, cwd=tmp_path).stdout

    assert shown(LINUX) == shown({})
