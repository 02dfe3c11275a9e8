"""Starts of `true` side by side: jail, a bare interpreter, bubblewrap, firejail where installed.

Rule: rounds, not blocks: each round runs every candidate once, so that a noisy moment meets all of them;
medians and ratios are printed, never a single time. Usage: bench.py VENV_BIN start [ROUNDS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 60
BARE = "bare python3 -I -S -c pass"


def candidates(binaries: str) -> dict[str, list[str]]:
    """Name → command; what is not installed is left out."""
    python = os.path.realpath(f"{binaries}/python")
    bubblewrap = (
        "--ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin"
    )
    found = {
        BARE: [python, "-I", "-S", "-c", "pass"],
        "jail run -- true": [f"{binaries}/jail", "run", "--", "true"],
        "bwrap --unshare-all true": [
            "/usr/bin/bwrap",
            *bubblewrap.split(),
            *"--proc /proc --dev /dev --tmpfs /tmp --unshare-all --die-with-parent true".split(),
        ],
        "firejail --noprofile true": ["/usr/bin/firejail", "--quiet", "--noprofile", "--net=none", "true"],
    }
    return {name: command for name, command in found.items() if os.access(command[0], os.X_OK)}


def main(arguments: list[str]) -> int:
    """Measure and print; 1 when a candidate does not work here."""
    if len(arguments) not in (2, 3) or arguments[1] != "start":
        sys.stderr.write("usage: scripts/bench start [ROUNDS]\n")
        return 2
    rounds = int(arguments[2]) if len(arguments) == 3 else ROUNDS
    commands = candidates(arguments[0])
    times: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory(prefix="jail-bench-") as folder:
        for name, command in list(commands.items()):
            if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode != 0:
                print(f"{name}: does not run here, left out")
                del commands[name]
        for _ in range(rounds):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=folder, capture_output=True, check=False)
                times[name].append(time.perf_counter() - start)
    base = statistics.median(times[BARE])
    print(f"{'start of':28} {'median ms':>10} {'quartiles':>15} {'ratio':>7}   ({rounds} rounds)")
    for name in commands:
        low, middle, high = statistics.quantiles(times[name], n=4)
        print(f"{name:28} {middle * 1e3:10.1f} {low * 1e3:7.1f}-{high * 1e3:<7.1f} {middle / base:7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
