"""Witnesses from circom's own calculator: the WebAssembly module that `circom --wasm` writes beside a circuit.

Interface (circom 2): field elements pass through a shared buffer, eight 32-bit words, least significant first.

    getVersion, getFieldNumLen32, getRawPrime     the major version of circom, words of an element, r to the buffer
    init(check)                                   before the inputs
    getInputSize, getInputSignalSize(hi, lo)      values of all input signals, of one (0 or -1: there is none)
    writeSharedRWMemory(i, word), setInputSignal(hi, lo, i)      after the last value the circuit runs
    getWitnessSize, getWitness(i), readSharedRWMemory(i)         the values of the wires
    getMessageChar                                characters of a message, up to a 0

A signal goes by the two halves of the 64-bit FNV-1a hash of its name. The module imports `exceptionHandler(code)`,
`printErrorMessage()` and, for the circuit's log(), `writeBufferMessage()` and `showSharedRWMemory()`.

wasmtime (the extra `wasm`) runs it, in an instance of its own for every witness.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from snarkline.curves.curve import Curve, curve_by_scalar_modulus
from snarkline.curves.vector import Limbs, ints_to_limbs
from snarkline.errors import FormatError, InputError
from snarkline.formats import _native
from snarkline.formats.binary import read_file
from snarkline.formats.circom.inputs import Inputs, read_inputs, value_modulo
from snarkline.formats.circom.strict_json import Node
from snarkline.formats.circom.sym import load_symbols
from snarkline.formats.circom.wtns import load_witness
from snarkline.r1cs.witness import Witness
from snarkline.trace import span

if TYPE_CHECKING:
    import wasmtime

MAX_MEMORY = 1 << 32
MAX_MESSAGE = 1 << 16
WORDS = 8
BLOCK = 2048  # elements that cross at a time: one page of WebAssembly memory
EXPORTS = (
    "getFieldNumLen32", "getRawPrime", "init", "getInputSize", "getInputSignalSize", "writeSharedRWMemory",
    "setInputSignal", "getWitnessSize", "getWitness", "readSharedRWMemory", "getMessageChar",
)  # fmt: skip
INDICES = re.compile(r"(?:\[[0-9]+\])+$", re.ASCII)
FAULTS = {
    1: "a signal was not found",
    2: "too many signals were set",
    3: "a signal was set twice",
    4: "an assertion of the circuit failed",
    5: "it has not enough memory",
    6: "an input array has fewer values than were given",
}

# A trap must end the module's function; a Python exception would cross wasmtime in a variable that threads share.
GUARD = """(module
  (global $code (export "code") (mut i32) (i32.const 0))
  (func (export "exceptionHandler") (param i32)
    (global.set $code (local.get 0))
    unreachable))"""

# Blocks of elements in and out, so that Python makes one call for 2048 elements in place of nine for each.
FERRY = """(module
  (import "circuit" "readSharedRWMemory" (func $read (param i32) (result i32)))
  (import "circuit" "writeSharedRWMemory" (func $write (param i32 i32)))
  (import "circuit" "setInputSignal" (func $set (param i32 i32 i32)))
  (import "circuit" "getWitness" (func $get (param i32)))
  (memory (export "memory") 1 1)
  (func (export "set") (param $hi i32) (param $lo i32) (param $first i32) (param $n i32)
    (local $i i32) (local $word i32)
    (loop $elements
      (if (i32.lt_u (local.get $i) (local.get $n)) (then
        (local.set $word (i32.const 0))
        (loop $words
          (call $write (local.get $word) (i32.load (i32.add
            (i32.shl (local.get $i) (i32.const 5)) (i32.shl (local.get $word) (i32.const 2)))))
          (br_if $words (i32.lt_u
            (local.tee $word (i32.add (local.get $word) (i32.const 1))) (i32.const 8))))
        (call $set (local.get $hi) (local.get $lo) (i32.add (local.get $first) (local.get $i)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $elements)))))
  (func (export "get") (param $first i32) (param $n i32)
    (local $i i32) (local $word i32)
    (loop $elements
      (if (i32.lt_u (local.get $i) (local.get $n)) (then
        (call $get (i32.add (local.get $first) (local.get $i)))
        (local.set $word (i32.const 0))
        (loop $words
          (i32.store
            (i32.add (i32.shl (local.get $i) (i32.const 5)) (i32.shl (local.get $word) (i32.const 2)))
            (call $read (local.get $word)))
          (br_if $words (i32.lt_u
            (local.tee $word (i32.add (local.get $word) (i32.const 1))) (i32.const 8))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $elements))))))"""


class WitnessCalculator:
    """A circuit's calculator, compiled once. `witness` may be called by several threads at once.

    Raises InputError without wasmtime, OSError, and FormatError for what is not a module of circom 2.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        runtime = _runtime()
        self.path = os.fspath(path)
        code = read_file(path).tobytes()
        if code[:4] != b"\0asm":
            raise FormatError(self.path, "offset 0 (magic)", r"b'\x00asm'", repr(code[:4]) if code else "no bytes")
        self._engine = runtime.Engine()
        with span("compile wasm", bytes=len(code)):
            try:
                self._module = runtime.Module(self._engine, code)
            except runtime.WasmtimeError as error:
                raise FormatError(self.path, "module", "valid WebAssembly", _first_line(error)) from None
        missing = [name for name in EXPORTS if name not in {export.name for export in self._module.exports}]
        if missing:
            expected = f"an export {missing[0]}, as in modules of circom 2"
            raise FormatError(self.path, "module", expected, "none of that name")
        self._guard = runtime.Module(self._engine, GUARD)
        self._ferry = runtime.Module(self._engine, FERRY)

    @span("calculate witness")
    def witness(self, inputs: Inputs, *, log: Callable[[str], None] | None = None) -> Witness:
        """The witness for a file (a path object), JSON text, or a mapping of input values; `inputs.py` says which.

        `log` receives the lines that the circuit logs. Raises FormatError for signals and values that are not the
        circuit's, and InputError, with the circuit's own message, where it refuses them.
        """
        signals = read_inputs(inputs)
        run = _Run(self.path, self._engine, (self._module, self._guard, self._ferry), log)
        curve = run.curve()
        run.set_inputs({name: _values(nodes, curve) for name, nodes in run.matched(signals).items()})
        return load_witness(run.witness_values(curve), curve)


def calculate_witness(
    wasm: str | os.PathLike[str], inputs: Inputs, *, log: Callable[[str], None] | None = None
) -> Witness:
    """`WitnessCalculator(wasm).witness(inputs, log=log)`."""
    return WitnessCalculator(wasm).witness(inputs, log=log)


class _Run:
    """One instance of a module. Its memory is its own and is unmapped with it."""

    def __init__(
        self, path: str, engine: wasmtime.Engine, modules: Sequence[wasmtime.Module], log: Callable[[str], None] | None
    ) -> None:
        runtime = _runtime()
        self._path, self._log = path, log
        self._errors: list[str] = []
        self._line: list[str] = []
        self._failures = (runtime.WasmtimeError, runtime.Trap)
        self._store = runtime.Store(engine)
        self._store.set_limits(memory_size=min(MAX_MEMORY, _memory_bytes()), table_elements=1 << 20)
        linker = runtime.Linker(engine)
        module, guard, ferry = modules
        try:
            self._guard = linker.instantiate(self._store, guard).exports(self._store)
            linker.define(self._store, "runtime", "exceptionHandler", self._guard["exceptionHandler"])
            plain = runtime.FuncType([], [])
            linker.define_func("runtime", "printErrorMessage", plain, self._keep_error)
            linker.define_func("runtime", "writeBufferMessage", plain, self._keep_message)
            linker.define_func("runtime", "showSharedRWMemory", plain, self._keep_value)
            circuit = linker.instantiate(self._store, module)
            self._exports = circuit.exports(self._store)
            linker.define_instance(self._store, "circuit", circuit)
            self._ferry = linker.instantiate(self._store, ferry).exports(self._store)
        except self._failures as error:
            raise FormatError(path, "module", "a witness calculator that can start", _first_line(error)) from None
        self._buffer: wasmtime.Memory = self._ferry["memory"]

    def curve(self) -> Curve:
        words = self._call("getFieldNumLen32")
        prime = 0
        if words == WORDS:
            self._call("getRawPrime")
            prime = self._shared_value()
        curve = curve_by_scalar_modulus(prime)
        if curve is None:
            found = f"{prime:#x}" if prime else f"a field of {words} words"
            raise FormatError(self._path, "getRawPrime", "the scalar field of bn254 or bls12_381", found)
        return curve

    def matched(self, signals: dict[str, list[Node]]) -> dict[str, list[Node]]:
        """The same signals. Raises unless they are the circuit's, with as many values as the circuit has."""
        self._call("init", 0)
        total = self._call("getInputSize")
        for name, nodes in signals.items():
            path = nodes[0].path if nodes else None
            size = self._call("getInputSignalSize", *_name_hash(name))
            if size < 0 or (size == 0 and nodes):
                raise FormatError(path, f"signal {name}", f"an input signal of {self._path}", "none of that name")
            if size != len(nodes):
                raise FormatError(path, f"signal {name}", f"an array of {size}", f"one of {len(nodes)}")
        given = sum(map(len, signals.values()))
        if given < total:
            path = next((nodes[0].path for nodes in signals.values() if nodes), None)
            missing = self._missing(signals)
            if missing:
                several = len(missing) > 1
                where = f"signal{'s' * several} {', '.join(missing)}"
                raise FormatError(path, where, "values for each" if several else "values", "none")
            names = ", ".join(signals) or "no signal"
            raise FormatError(path, "input signals", f"{total} values in all", f"{given}, in {names}")
        return signals

    def _missing(self, signals: Container[str]) -> list[str]:
        """The names of input signals other than these.

        A module has hashes of names only: the names come from the .sym that circom writes beside the module's folder.
        Without it there are none.
        """
        wasm = Path(self._path)
        names: dict[str, None] = {}
        for folder in (wasm.parent, wasm.absolute().parent.parent):
            with suppress(OSError, FormatError):
                symbols = load_symbols(folder / f"{wasm.stem}.sym").values()
                names = dict.fromkeys(INDICES.sub("", name.removeprefix("main.")) for name in symbols)
                break
        return [n for n in names if n not in signals and self._call("getInputSignalSize", *_name_hash(n)) > 0]

    def set_inputs(self, values: dict[str, Limbs]) -> None:
        """Sets every signal; with the last value the circuit runs."""
        for name, limbs in values.items():
            for first in range(0, len(limbs), BLOCK):
                block = limbs[first : first + BLOCK]
                self._buffer.write(self._store, bytearray(block.tobytes()), 0)
                self._call("set", *_name_hash(name), first, len(block), of=self._ferry)

    def witness_values(self, curve: Curve) -> Limbs:
        n = self._call("getWitnessSize") & 0xFFFFFFFF
        memory: Any = self._exports["memory"]
        if 4 * n > memory.data_len(self._store):  # the module keeps four bytes for every wire
            raise FormatError(self._path, "getWitnessSize", "a size that fits its memory", n)
        out: Limbs = _native.arena().empty((n, curve.fr_limbs), secret=True)
        for first in range(0, n, BLOCK):
            count = min(BLOCK, n - first)
            self._call("get", first, count, of=self._ferry)
            block = self._buffer.read(self._store, 0, 4 * WORDS * count)
            out[first : first + count] = np.frombuffer(block, dtype="<u8").reshape(count, -1)
        return out

    def _call(self, name: str, *arguments: int, of: Any = None) -> int:
        function = (self._exports if of is None else of)[name]
        try:
            result: int = function(self._store, *map(_signed, arguments))
        except self._failures as error:
            self._fail(error)
        return result

    def _fail(self, error: Exception) -> NoReturn:
        code: int = self._guard["code"].value(self._store)
        what = FAULTS.get(code, f"fault {code}") if code else _last_line(error)
        detail = f": {'; '.join(self._errors)}" if self._errors else ""
        raise InputError(f"{self._path}: {what}{detail}") from None

    def _shared_value(self) -> int:
        return sum((self._call("readSharedRWMemory", i) & 0xFFFFFFFF) << (32 * i) for i in range(WORDS))

    def _message(self) -> str:
        characters = bytearray()
        while len(characters) < MAX_MESSAGE and (code := self._call("getMessageChar")) != 0:
            characters.append(code & 0xFF)
        return characters.decode(errors="replace")

    def _keep_error(self) -> None:
        self._errors.append(self._message().strip())

    def _keep_message(self) -> None:
        text = self._message()
        if text != "\n":
            self._line.append(text)
            return
        if self._log is not None:
            self._log(" ".join(self._line))
        self._line.clear()

    def _keep_value(self) -> None:
        self._line.append(str(self._shared_value()))


def _runtime() -> Any:
    try:
        import wasmtime
    except ImportError:
        raise InputError("a witness calculator needs wasmtime: pip install 'snarkline[wasm]'") from None
    return wasmtime


def _values(nodes: list[Node], curve: Curve) -> Limbs:
    return ints_to_limbs((value_modulo(node, curve.r) for node in nodes), curve.fr_limbs)


def _name_hash(name: str) -> tuple[int, int]:
    """The upper and lower half of the 64-bit FNV-1a hash (Fowler, Noll, Vo) of a name."""
    state = 0xCBF29CE484222325
    for byte in name.encode(errors="replace"):
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state >> 32, state & 0xFFFFFFFF


def _signed(word: int) -> int:
    """A 32-bit word as wasmtime takes it."""
    return word - (1 << 32) if word >> 31 else word


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _last_line(error: Exception) -> str:
    """The cause, which wasmtime puts below its backtrace."""
    return str(error).strip().splitlines()[-1].strip()
