"""Node inside: threads, children, servers on loopback, and packages installed from a cache that the host filled."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.installed import Installed
from support.shared import once
from support.work import STARTERS, Ground, Said, host_npm, make_ground, row

Row = Mapping[str, Said]

PACKAGE = {
    "name": "work",
    "version": "1.0.0",
    "private": True,
    "dependencies": {"debug": "4.3.4", "semver": "7.6.0"},
    "scripts": {"postinstall": "node -e \"fs.writeFileSync('hooked', 'yes')\"", "test": "node --test tests"},
}
"""Two small packages with dependencies of their own; semver brings a command."""

PROGRAM = r"""
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads")
const { execFileSync, exec, fork, spawn } = require("node:child_process")
const { once } = require("node:events")
const fs = require("node:fs"), http = require("node:http"), net = require("node:net"), os = require("node:os")
const crypto = require("node:crypto"), dgram = require("node:dgram"), path = require("node:path")

const deeds = {
  async thread() {
    const shared = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(__filename, { workerData: shared })
    const [said] = await once(worker, "message")
    return [said, Atomics.load(shared, 0)]
  },
  async fork() {
    const child = fork(__filename, ["child"])
    child.send({ number: 20 })
    const [said] = await once(child, "message")
    await once(child, "exit")
    return said
  },
  async spawn() {
    const child = spawn("cat", { stdio: ["pipe", "pipe", "inherit"] })
    child.stdin.end("through a child")
    let said = ""
    for await (const part of child.stdout) said += part
    return said
  },
  shell: () => execFileSync("sh", ["-c", "exit 0"], { stdio: "inherit" }) ?? "done",
  async code() {
    const child = exec("exit 9")
    const [code] = await once(child, "exit")
    return code
  },
  async killed() {
    const child = spawn("sleep", ["60"])
    child.kill("SIGTERM")
    const [, signal] = await once(child, "exit")
    return signal
  },
  async web() {
    const server = http.createServer((asked, answer) => answer.end(`${asked.method} ${asked.url}`))
    await once(server.listen(0, "127.0.0.1"), "listening")
    const answer = await fetch(`http://localhost:${server.address().port}/path`, { method: "POST" })
    server.close()
    return [answer.status, await answer.text()]
  },
  async unix() {
    const server = net.createServer((socket) => socket.end("over unix"))
    const place = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "node-")), "socket")
    await once(server.listen(place), "listening")
    let said = ""
    for await (const part of net.connect(place)) said += part
    server.close()
    return said
  },
  async datagram() {
    const socket = dgram.createSocket("udp4")
    await once(socket.bind(0, "127.0.0.1"), "listening")
    socket.send("datagram", socket.address().port, "127.0.0.1")
    const [said] = await once(socket, "message")
    socket.close()
    return said.toString()
  },
  async watch() {
    const watcher = fs.watch(".")
    setTimeout(() => fs.writeFileSync("seen", ""), 20)
    const [, name] = await once(watcher, "change")
    watcher.close()
    return name
  },
  hash: () => crypto.createHash("sha256").update("x").digest("hex").slice(0, 8),
  processors: () => os.cpus().length > 0 && os.availableParallelism() > 0,
  identity: () => [os.userInfo().uid === process.getuid(), os.homedir() === process.env.HOME],
}

async function main() {
  for (const [name, deed] of Object.entries(deeds)) console.log(name, JSON.stringify(await deed()))
}

if (!isMainThread) {
  Atomics.store(workerData, 0, 7)
  parentPort.postMessage("from a thread")
} else if (process.argv[2] === "child") {
  process.once("message", ({ number }) => process.send({ doubled: number * 2 }, () => process.disconnect()))
} else main()
"""

EXPECTED = r"""
thread ["from a thread",7]
fork {"doubled":40}
spawn "through a child"
shell "done"
code 9
killed "SIGTERM"
web [200,"POST /path"]
unix "over unix"
datagram "datagram"
watch "seen"
hash "2d711642"
processors true
identity [true,true]
"""

WORK = row("""
ci:
    npm ci --offline --cache npm-cache
    ls node_modules
    cat hooked
command:
    npx --offline semver 1.2.3 -i minor
    node_modules/.bin/semver 1.2.3
module:
    node -e 'console.log(require("debug").default.name, require("semver").lt("1.0.0", "2.0.0"))'
test:
    npm test --silent
program:
    node program.js
again:
    rm -rf node_modules
    npm ci --offline --cache npm-cache --silent
    npm ls --all --parseable | wc -l
""")


@pytest.fixture(scope="session")
def material(shared_folder: Path) -> Path:
    return once(shared_folder / "node-material", make_material)


def make_material(folder: Path) -> None:
    """package.json with its lock, and the cache with which npm needs no registry; npm on the host fills it."""
    (folder / "tests").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(PACKAGE))
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts")
    # Without `resolved` in the lock, which some configurations leave out, npm ci asks the registry again.
    host_npm("install", *quiet, "--omit-lockfile-registry-resolved=false", "--cache", "npm-cache", cwd=folder)
    shutil.rmtree(folder / "node_modules")
    (folder / "program.js").write_text(PROGRAM)
    (folder / "tests" / "work.test.js").write_text(
        'const { test } = require("node:test");'
        'test("semver sorts", () => require("node:assert").ok(require("semver").gt("2.0.0", "1.0.0")));\n'
    )


@pytest.fixture(scope="module", params=STARTERS)
def ground(request: pytest.FixtureRequest, installed: Installed, open_folder: Path, material: Path) -> Ground:
    found = make_ground(request.param, installed, open_folder / "node")
    shutil.copytree(material, found.workspace, dirs_exist_ok=True)
    found.hand_over()
    return found


@pytest.fixture(scope="module")
def work(ground: Ground) -> Row:
    return ground.work(WORK)


def test_npm_ci_installs_from_a_cache_and_runs_the_own_script(work: Row, ground: Ground) -> None:
    assert work["ci"].code == 0, work["ci"].text
    assert {"debug", "ms", "semver"} <= set(work["ci"].text.split())
    assert work["ci"].text.endswith("yes")
    assert ground.made_by_owner("node_modules/debug/package.json")


def test_a_command_of_a_package_runs(work: Row) -> None:
    assert work["command"] == Said(0, "1.3.0\n1.2.3\n")


def test_modules_are_found(work: Row) -> None:
    assert work["module"].text.split()[-1] == "true", work["module"].text


def test_npm_test_runs_the_tests_of_the_project(work: Row) -> None:
    assert work["test"].code == 0, work["test"].text
    assert "pass 1" in work["test"].text


def test_an_installation_is_removed_and_made_again(work: Row) -> None:
    assert work["again"].code == 0, work["again"].text


@pytest.mark.parametrize("line", EXPECTED.split("\n")[1:-1])
def test_node_works_with_the_kernel(work: Row, line: str) -> None:
    assert line in work["program"].text.splitlines(), work["program"].text
