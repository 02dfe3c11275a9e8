"""GPU devices: by kind and number, never by name alone. The machine that tests run on need not have one."""

import os
from pathlib import Path

import pytest

from jail.launch import gpu, places
from jail.plan.facts import Gpu


@pytest.fixture
def host(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path))
    for name in ("dev/dri", "sys/class/drm/renderD128", "sys/devices/pci/card", "proc", "sys/class/kfd"):
        (folder / name).mkdir(parents=True)
    (folder / "sys/class/drm/renderD128/device").symlink_to(folder / "sys/devices/pci/card")
    return folder


def look(host: Path) -> Gpu:
    return gpu.look(f"{host}/dev", f"{host}/sys", f"{host}/proc")


def test_a_host_without_one_has_none(host: Path) -> None:
    assert look(host) == Gpu()


def test_a_file_that_has_the_name_of_one_is_none(host: Path) -> None:
    for name in ("nvidia0", "nvidiactl", "kfd", "dri/renderD128"):
        (host / "dev" / name).write_text("no device")
    (host / "dev/nvidia1").symlink_to("/dev/null")
    assert look(host) == Gpu()


def test_a_device_of_another_number_is_none() -> None:
    null = places.look("/dev/null")
    for name in ("nvidia0", "dri/renderD128", "nvidiactl", "null"):
        assert not gpu.is_gpu(null._replace(real="/dev/null"), "/dev"), name


def test_what_is_found_is_named_one_by_one_with_what_its_driver_reads(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps", "sda", "dri/renderD128", "dri/card0"):
        (host / "dev" / name).touch()
    monkeypatch.setattr(gpu, "is_gpu", lambda *_: True)
    found = look(host)
    names = [place.real.removeprefix(f"{host}/dev/") for place in found.devices]
    assert names == ["dri/renderD128", "nvidia-uvm", "nvidia0", "nvidiactl"]
    assert f"{host}/sys/devices/pci/card" in [place.real for place in found.read]
    assert all(place.real.startswith(f"{host}/sys/") for place in found.read)
    assert found.closed == ()


@pytest.mark.root
def test_the_numbers_of_the_kernels_list_are_known(host: Path) -> None:
    import stat

    numbers = {"nvidia0": (195, 0), "dri/renderD128": (226, 128), "kfd": (240, 0), "dri/renderD1": (226, 1)}
    for name, number in numbers.items():
        os.mknod(host / "dev" / name, stat.S_IFCHR | 0o600, os.makedev(*number))
    found = [place.real.removeprefix(f"{host}/dev/") for place in look(host).devices]
    assert found == ["dri/renderD128", "kfd", "nvidia0"]
