"""What tests on a real GPU share."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np

from snarkline import Prover
from snarkline.backend.cuda import Gpu
from snarkline.backend.cuda.driver import Driver, DriverFault
from snarkline.groth16.keys import Proof
from snarkline.r1cs.witness import Witness

BLINDING = (11, 13)
MIB, GIB = 1 << 20, 1 << 30

SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds, const unsigned* source, unsigned n, unsigned* out) {
  unsigned long long begin, t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); } while (t - begin < nanoseconds);
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += ((volatile const unsigned*)source)[i];
  *out = sum;
}
extern "C" __global__ void trap() { asm("trap;"); }
"""


@cache
def spin_kernel(name: str = "spin") -> object:
    import cupy

    return cupy.RawModule(code=SPIN, options=("-std=c++17",)).get_function(name)


def spin(gpu: Gpu, seconds: float, source: int = 0, n: int = 0) -> object:
    """A kernel that waits and then adds up n words; returns where the sum will be."""
    out = gpu.zeros(1, "u4")
    spin_kernel()((1,), (1,), (np.int64(seconds * 1e9), np.uint64(source), np.uint32(n), out))  # type: ignore[operator]
    return out


def prove(prover: Prover, witness: Witness) -> Proof:
    return prover.prove(witness, blinding_for_tests=BLINDING)


def script(text: str, *arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", text, *map(str, arguments)],
        capture_output=True, text=True, timeout=110, env={**os.environ, **(env or {})}, check=False,
    )  # fmt: skip


PROVE = """
import sys, warnings
from pathlib import Path
import snarkline.backend
from snarkline import Prover, load_proving_key, load_witness
from snarkline.formats.circom import proof_to_json
snarkline.backend.GPU_LEAST_DOMAIN = 1
folder = Path(sys.argv[1])
key = load_proving_key(folder / "key.zkey")
witness = load_witness(folder / "witness.wtns", curve=key.curve)
def prove(prover):
    return prover.prove(witness, blinding_for_tests=(11, 13))
"""


def require_wiped(device: Gpu) -> None:
    """Reads all idle memory of the device."""
    import cupy

    device.await_wiping()
    with cupy.cuda.Device(device.driver.ordinal):
        device.synchronize()
        assert device.pool._dirty == [] and len(device.pool._clean) > 10
        for block in device.pool._clean:
            memory = cupy.cuda.UnownedMemory(block.address, block.n_bytes, device, device.driver.ordinal)
            there = cupy.ndarray(block.n_bytes // 8, "u8", memptr=cupy.cuda.MemoryPointer(memory, 0))
            assert not there.get().any(), block


class FaultyDriver:
    """Another driver, whose call number `at` fails with `code`; all from then on if `sticky`. `calls` counts them, and
    `failed` is the first that did."""

    NEVER_FAIL = ("alive", "owns", "array", "close", "leave")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.calls, self.at, self.code, self.sticky = 0, -1, 0, False
        self.failed = ""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._driver, name)
        if not callable(method) or name in self.NEVER_FAIL:
            return method

        def call(*arguments: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if 0 <= self.at <= number if self.sticky else number == self.at:
                self.failed = self.failed or name
                raise DriverFault(name, self.code, "injected")
            return method(*arguments)

        return call
