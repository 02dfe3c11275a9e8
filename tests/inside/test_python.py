"""Python inside: an environment, local wheels with their scripts, a real package's own tests, and the parts of
the standard library that need the kernel.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.installed import Installed
from support.shared import once
from support.work import STARTERS, SYSTEM_PYTHON, Ground, Said, fetched, make_ground, row

Row = Mapping[str, Said]

SDIST = "click==8.1.8"
TOOLS = ("pytest==8.3.5", "pluggy", "iniconfig", "packaging", "flit_core<4")
"""What its tests and its build need."""

WORK = row(f"""
venv:
    {SYSTEM_PYTHON} -m venv .venv
    .venv/bin/python -c 'import sys; print(sys.prefix)'
pip:
    .venv/bin/pip install --no-index --no-compile --find-links wheels pytest
script:
    .venv/bin/pytest --version
activated:
    . .venv/bin/activate
    command -v python pytest
build:
    tar xf sdist/*.tar.gz --strip-components=1 --one-top-level=package
    .venv/bin/pip install --no-index --no-compile --find-links wheels ./package
suite:
    cd package
    ../.venv/bin/pytest -q -p no:cacheprovider
""")

PROGRAM = r"""
import asyncio, concurrent.futures, ctypes, http.server, multiprocessing, os, signal, socket, sqlite3, ssl
import subprocess, sys, tempfile, threading, urllib.request
from multiprocessing import shared_memory

def square(number):
    return number * number

def pool():
    with multiprocessing.get_context("fork").Pool(2) as workers:
        return workers.map(square, range(4))

def spawned():
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as workers:
        return list(workers.map(square, range(4)))

def manager():
    with multiprocessing.Manager() as shared:
        found = shared.dict(a=1)
        return found["a"]

def memory():
    first = shared_memory.SharedMemory(create=True, size=4096)
    second = shared_memory.SharedMemory(first.name)
    first.buf[0] = 42
    seen = second.buf[0]
    second.close()
    first.close()
    first.unlink()
    return seen

async def echo():
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", "cat; echo err >&2; exit 3", stdin=-1, stdout=-1, stderr=-1)
    out, err = await child.communicate(b"out")
    return [out.decode(), err.decode().strip(), child.returncode]

async def unix_server():
    path = os.path.join(tempfile.mkdtemp(), "s")
    async def answer(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    async with await asyncio.start_unix_server(answer, path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"over unix\n")
        return (await reader.readline()).decode().strip()

def database():
    with sqlite3.connect("work.db") as first:
        first.execute("pragma journal_mode=wal")
        first.execute("create table t (a)")
        first.execute("insert into t values (1)")
    return sqlite3.connect("work.db").execute("select a from t").fetchall()

def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *ignored: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with urllib.request.urlopen(f"http://localhost:{server.server_port}/") as answer:
        return answer.status

def six():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        socket.create_connection(server.getsockname()[:2]).close()
    return True

def trusted():
    return ssl.create_default_context().cert_store_stats()["x509_ca"] > 0

def killed():
    child = subprocess.Popen(["sleep", "60"])
    child.send_signal(signal.SIGTERM)
    return child.wait(10)

def locked():
    with tempfile.TemporaryFile() as file:
        os.lockf(file.fileno(), os.F_TLOCK, 0)
    return True

def semaphore():
    return multiprocessing.get_context("fork").Semaphore(2).acquire(timeout=1)

def main():
    for deed in (pool, spawned, manager, memory, semaphore, database, web, six, trusted, killed, locked):
        print(deed.__name__, deed())
    for deed in (echo, unix_server):
        print(deed.__name__, asyncio.run(deed()))
    print("pty", all(os.isatty(fd) for fd in os.openpty()))
    print("cores", len(os.sched_getaffinity(0)) == os.cpu_count())

if __name__ == "__main__":
    main()
"""

EXPECTED = """
pool [0, 1, 4, 9]
spawned [0, 1, 4, 9]
manager 1
memory 42
database [(1,)]
web 200
six True
trusted True
killed -15
locked True
semaphore True
echo ['out', 'err', 3]
unix_server over unix
pty True
cores True
"""


@pytest.fixture(scope="session")
def material(shared_folder: Path) -> Path:
    return once(shared_folder / "python-material", fetch_material)


def fetch_material(folder: Path) -> None:
    """Wheels and one source distribution, fetched by pip on the host."""
    folder.mkdir()
    fetched(folder / "wheels", *TOOLS, options=("--only-binary", ":all:"))
    fetched(folder / "sdist", SDIST, options=("--no-binary", ":all:"))


@pytest.fixture(scope="module", params=STARTERS)
def ground(request: pytest.FixtureRequest, installed: Installed, open_folder: Path, material: Path) -> Ground:
    found = make_ground(request.param, installed, open_folder / "python")
    shutil.copytree(material, found.workspace, dirs_exist_ok=True)
    (found.workspace / "program.py").write_text(PROGRAM)
    found.hand_over()
    return found


@pytest.fixture(scope="module")
def work(ground: Ground) -> Row:
    return ground.work({**WORK, "library": f"{SYSTEM_PYTHON} -W error::ResourceWarning program.py"})


def test_an_environment_is_made_in_the_workspace(work: Row, ground: Ground) -> None:
    assert work["venv"] == Said(0, f"{ground.workspace}/.venv\n")
    assert ground.made_by_owner(".venv/bin/pip")


def test_local_wheels_are_installed_with_their_scripts(work: Row) -> None:
    assert work["pip"].code == 0, work["pip"].text
    assert work["script"] == Said(0, "pytest 8.3.5\n")


def test_an_activated_environment_comes_first(work: Row, ground: Ground) -> None:
    folder = f"{ground.workspace}/.venv/bin"
    assert work["activated"].text.split() == [f"{folder}/python", f"{folder}/pytest"]


def test_a_source_distribution_is_built_and_installed(work: Row) -> None:
    assert work["build"].code == 0, work["build"].text
    assert "Successfully installed click-8.1.8" in work["build"].text


def test_the_own_tests_of_a_real_package_pass(work: Row) -> None:
    assert work["suite"].code == 0, work["suite"].text
    passed = re.search(r"(\d+) passed", work["suite"].text)
    assert passed is not None
    assert int(passed[1]) > 500


@pytest.mark.parametrize("line", EXPECTED.split("\n")[1:-1])
def test_the_standard_library_works_with_the_kernel(work: Row, line: str) -> None:
    assert line in work["library"].text.splitlines(), work["library"].text
