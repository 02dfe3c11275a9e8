"""The GPU devices of the host, for a run that asks for them.

Rule: imported only then. Each device is named alone, by the kernel's own list of names and numbers; what a
driver asks of /sys is the device's own folder and the links that lead to it.
"""

import os
import stat

from jail.launch import places
from jail.light import Final
from jail.plan.facts import Gpu, Place

DRM_MAJOR: Final = 226
FIRST_RENDER_MINOR: Final = 128
NVIDIA_MAJOR: Final = 195
"""Documentation/admin-guide/devices.txt; include/drm/drm_file.h. /dev/kfd and nvidia-uvm have
numbers that the kernel hands out at boot.
"""
PCI_PARENT_LINKS: Final = ("/sys/class/drm", "/sys/class/kfd", "/sys/dev/char", "/sys/bus/pci/devices")
KFD: Final = ("/sys/devices/virtual/kfd",)


def look(dev: str = "/dev", sys: str = "/sys", proc: str = "/proc") -> Gpu:
    """What this host has; `dev`, `sys` and `proc` are named by tests alone."""
    names = [name for name in _names(dev) if name == "kfd" or _is_nvidia(name)]
    paths = [f"{dev}/{name}" for name in names]
    paths += [f"{dev}/dri/{name}" for name in _names(f"{dev}/dri") if name.startswith("renderD")]
    devices = [place for place in map(places.look, sorted(paths)) if is_gpu(place, dev)]
    if not devices:
        return Gpu()
    read = [*PCI_PARENT_LINKS, *(KFD if f"{dev}/kfd" in paths else ())]
    found = [f"{sys}{path.removeprefix('/sys')}" for path in read]
    for place in devices:
        name = place.real.rpartition("/")[2]
        found.append(os.path.realpath(f"{sys}/class/drm/{name}/device"))
    cards = _names(f"{proc}/driver/nvidia/gpus")
    found += [os.path.realpath(f"{sys}/bus/pci/devices/{card}") for card in cards]
    looked = [places.look(path) for path in dict.fromkeys(found)]
    closed = tuple(place.real for place in devices if not _is_open(place.real))
    return Gpu(tuple(devices), tuple(place for place in looked if place.kind == "folder"), closed)


def _is_open(path: str) -> bool:
    """Whether the command may use a device: started by root, it has none of the groups that may."""
    if os.geteuid() == 0:
        return os.stat(path).st_mode & 0o006 == 0o006
    return os.access(path, os.R_OK | os.W_OK)


def _is_nvidia(name: str) -> bool:
    rest = name.removeprefix("nvidia")
    return rest != name and (rest.isdigit() or rest in ("ctl", "-uvm", "-uvm-tools", "-modeset"))


def is_gpu(place: Place, dev: str = "/dev") -> bool:
    """Whether a path in /dev is the device that its name says: a character device of that number."""
    if place.kind != "special":
        return False
    found = os.lstat(place.real)
    major, minor = os.major(found.st_rdev), os.minor(found.st_rdev)
    name = place.real.removeprefix(f"{dev}/")
    if not stat.S_ISCHR(found.st_mode):
        return False
    if name.startswith("dri/"):
        return major == DRM_MAJOR and minor >= FIRST_RENDER_MINOR
    if name.removeprefix("nvidia").isdigit() or name in ("nvidiactl", "nvidia-modeset"):
        return major == NVIDIA_MAJOR
    return name == "kfd" or name.startswith("nvidia-uvm")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
