"""Fakes that record, and what the kernel says about this process."""

from __future__ import annotations

from pathlib import Path

MIB = 1 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def minor_faults() -> int:
    return int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[7])


def vm_flags(address: int) -> list[str]:
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(part, 16) for part in first.split("-"))
            inside = low <= address < high
        elif inside and first == "VmFlags:":
            return line.split()[1:]
    raise AssertionError("no such mapping")


class RecordingFence:
    """A fence that the test opens; counts what it is asked."""

    def __init__(self) -> None:
        self.open = False
        self.asked = 0
        self.waited = 0.0

    def done(self) -> bool:
        self.asked += 1
        return self.open

    def wait(self, timeout: float) -> bool:
        self.waited += timeout
        return self.open


class RecordingPinner:
    """A pinner that keeps a log and knows what is pinned; refuses from `room` bytes on."""

    def __init__(self, room: int | None = None) -> None:
        self.log: list[tuple[str, int]] = []
        self.pinned: dict[int, int] = {}
        self.room = room
        self.is_alive = True

    def pin(self, address: int, n_bytes: int) -> None:
        if self.room is not None and sum(self.pinned.values()) + n_bytes > self.room:
            raise OSError("out of page-locked memory")
        assert address not in self.pinned, "registered twice"
        self.pinned[address] = n_bytes
        self.log.append(("pin", address))

    def unpin(self, address: int) -> None:
        assert self.is_alive, "the context is gone"
        del self.pinned[address]
        self.log.append(("unpin", address))

    def alive(self) -> bool:
        return self.is_alive
