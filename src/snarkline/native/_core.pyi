"""Types of the compiled core. Arrays are C-ordered; U64 is uint64 limbs, least significant first, shape (n, limbs).

Every method releases the GIL, runs on the executor's threads, raises ValueError for shapes that do not fit, and ends
with KeyboardInterrupt soon after Ctrl-C (outputs are then undefined). Outputs are arrays that the caller hands in.
`curve` is "bn254" or "bls12_381", `field` "fr" or "fp", `group` 0 for G1 and 1 for G2. Points are affine, Montgomery
form, infinity all zero.
"""

from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U8 = NDArray[np.uint8]
Csr = tuple[U64, U32, U32]
F = TypeVar("F", bound=Callable[..., Any])

def curve_facts(curve: str) -> dict[str, Any]: ...
def instruction_sets() -> list[str]:
    """The sets that this build has and this processor can run, slowest first: portable, adx, ifma."""

def fold_windows(curve: str, group: int, out: U64, sums: U64, starts: U32) -> None:
    """out = sum of 2^starts[i] * sums[i]; sums in XYZZ coordinates (twice the point limbs), starts ascending."""

class ClassicAssignment:
    """What `synthesize_sha256_chain` leaves behind, Montgomery form.

    Arrays are views, which end with `close`: it gives their memory back.
    """

    @property
    def a(self) -> U64: ...
    @property
    def b(self) -> U64: ...
    @property
    def c(self) -> U64: ...
    @property
    def inputs(self) -> U64: ...
    @property
    def aux(self) -> U64: ...
    @property
    def allocations(self) -> int: ...
    @property
    def bytes_freed(self) -> int: ...
    def close(self) -> None: ...

def synthesize_sha256_chain(curve: str, bits: U8, add_to_lc: bool, recycle: bool, prefetch: bool) -> ClassicAssignment:
    """A circuit run constraint by constraint: one compression for each 512 bits (host/synthesis.h)."""

def flat_published(curve: str, threads: int, out: U64, row_start: U64, column: U32, values: U64, w: U64) -> None: ...
def flat_classes(
    curve: str, threads: int, out: U64, row_start: U64, column: U32, classes: U8, integers: U64, w: U8
) -> None:
    """Classes of one byte: host/synthesis.h."""

def poseidon_rows(curve: str, threads: int, parameters: U64, rows: U64, out: U64) -> None:
    """out[i] = the hash of the i-th of as many groups of `rows`; canonical, below r. Raises ValueError for parameters
    that are none (circuit/gadgets/poseidon.py writes them) or for another number of inputs."""

class StructuredSystem:
    """A structured constraint system as it is executed (host/structured.h). `isa` is an instruction set or "auto";
    `lanes` is "base", "avx2", "avx512" or "auto". Arrays `publics`, `bits` and `wides` are the values of a witness.
    """

    def __init__(self, curve: str, n_wires: int, n_public: int, isa: str = "auto", lanes: str = "auto") -> None: ...
    @property
    def sizes(self) -> tuple[int, int, int]:
        """Words of `bits`, elements of `wides`, and elements beside the codes of a, b and c."""

    @property
    def nbytes(self) -> int: ...
    def form(self, first_program: int = -1, warps: int = 1) -> dict[str, bytes]:
        """The members of SystemForm (host/structured_form.h), by name. Programs are those of runs from `first_program`
        on (-1: none), for blocks of `warps` warps."""

    def add_template(
        self,
        n_ports: int,
        n_aux: int,
        bits: U8,
        matrices: list[tuple[U64, U32, U32, U64]],
        code: U32,
        native: str,
        native_inputs: U32,
        native_outputs: U32,
        native_parameters: U64,
    ) -> None: ...
    def add_run(
        self, template: int, count: int, first_row: int, first_wire: int, base: U64, stride: U64, table: U32
    ) -> None:
        """base and stride are int64 by their bits; the table is flat, and empty for arithmetic wiring."""

    def sizes_of(self, n_runs: int) -> tuple[int, int]:
        """Words of bits and field elements of the first runs."""

    def give(
        self, threads: int, publics: U64, bits: U64, wides: U64, wires: U32, are_bits: U8, given: U64, n_runs: int = -1
    ) -> int:
        """Index of the first value that is out of range, -1 if there is none. With `n_runs`, here and for `run`, bits
        and wides are those of the first runs, and wires are theirs."""

    def run(self, threads: int, publics: U64, bits: U64, wides: U64, n_runs: int = -1) -> None: ...
    def pack(self, threads: int, publics: U64, bits: U64, wides: U64, wires: U64) -> int:
        """From the values of all wires. The first wire that is a bit and neither 0 nor 1, -1 if there is none."""

    def expand(self, threads: int, publics: U64, bits: U64, wides: U64, out: U64) -> None: ...
    def read(self, publics: U64, bits: U64, wides: U64, wires: U32, out: U64) -> None: ...
    def evaluate(self, threads: int, witnesses: list[tuple[U64, U64, U64]], out: list[tuple[U64, U64, U64]]) -> None:
        """Of each witness (publics, bits, wides) a, b and c: one element a constraint, Montgomery form."""

    def evaluate_codes(self, threads: int, publics: U64, bits: U64, wides: U64, codes: U8, sums: U64) -> None:
        """codes, shape (3, constraints): a value of -127 ... 127 as a signed byte, 128 for one that is in `sums`."""

    def expand_codes(self, threads: int, codes: U8, sums: U64, a: U64, b: U64, c: U64) -> None: ...
    def first_violation(self, threads: int, publics: U64, bits: U64, wides: U64) -> int:
        """The first constraint that does not hold, -1 if all do."""

    def transposed(self, threads: int, v: U64, a: U64, b: U64, c: U64) -> None:
        """a, b, c: for each wire the sum of v[row] * coefficient."""

class Executor:
    """Where kernels run: a number of threads and an instruction set ("auto" is the fastest)."""

    def __init__(self, threads: int, isa: str = "auto") -> None: ...
    @property
    def threads(self) -> int: ...
    @property
    def isa(self) -> str: ...
    def from_canonical(self, curve: str, field: str, out: U64, a: U64) -> None: ...
    def to_canonical(self, curve: str, field: str, out: U64, a: U64) -> None: ...
    def first_not_below_modulus(self, curve: str, field: str, a: U64) -> int:
        """Index of the first element that is not below the modulus, -1 if there is none."""

    def pointwise(self, curve: str, field: str, op: str, out: U64, a: U64, b: U64) -> None:
        """op is add, sub or mul; b of shape (1, limbs) is used for every element; out may be a or b."""

    def mul_sub(self, curve: str, out: U64, a: U64, b: U64, c: U64) -> None: ...
    def batch_inverse(self, curve: str, field: str, a: U64) -> None: ...
    def powers(self, curve: str, out: U64, first: U64, ratio: U64) -> None:
        """out[i] = first * ratio^i, Montgomery form."""

    def ntt(self, curve: str, data: U64, root: U64, shift: U64 | None, inverse: bool) -> None:
        """In place, natural order. root and shift have shape (1, 4), Montgomery form; root has order len(data)."""

    def coset_evaluations(self, curve: str, data: U64, root: U64, shift: U64) -> None: ...
    def spmv(
        self, curve: str, out: U64, row_start: U64, column: U32, value: U32, coefficients: U64, w: U64, w_form: str
    ) -> None:
        """out[row] = sum of value * w[column], Montgomery form; w_form, "canonical" or "montgomery", is that of w."""

    def spmv_transposed(
        self, curve: str, out: U64, row_start: U64, column: U32, value: U32, coefficients: U64, v: U64
    ) -> None:
        """out[column] = sum of value * v[row], in the form of v."""

    def msm(self, curve: str, tables: list[tuple[int, U64]], scalars: U64, montgomery: bool) -> list[U64]:
        """For each (group, points): sum of scalars[i] * points[i], as an array of shape (1, point limbs)."""

    def fixed_base(self, curve: str, group: int, out: U64, base: U64, scalars: U64) -> None:
        """out[i] = scalars[i] * base, scalars canonical."""

    def first_bad_point(self, curve: str, group: int, points: U64, subgroup: bool) -> int:
        """Index of the first point with a coordinate not below q, off its curve, or (if asked) outside the subgroup
        of order r; -1 if there is none."""

    def pairing_product_is_one(self, curve: str, p: U64, q: U64) -> bool:
        """Product of e(p[i], q[i]) == 1 with one final exponentiation."""

    def pairing(self, curve: str, p: U64, q: U64) -> U64:
        """One pairing: shape (12, limbs), Montgomery form; over (1, u), (1, v, v^2), (1, w), innermost first."""

class Lease:
    """Memory that an arena lends, as a buffer of bytes. It goes its way when the last reference is dropped."""

    def release(self) -> None:
        """Sends the memory its way. The caller knows that nobody looks at it any more."""

    def set_registered(self, registered: bool) -> None:
        """Marks the memory as known to a device: pooled from here on, never emptied or unmapped, not inherited."""

    @property
    def registered(self) -> bool: ...
    @property
    def zero(self) -> bool:
        """The memory read as zero when it was taken."""

    @property
    def fd(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def n_bytes(self) -> int: ...
    @property
    def mapped_bytes(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Arena:
    """`way` is here, empty, empty_lazily, detached or pool (csrc/host/arena.h)."""

    @staticmethod
    def create(budget_bytes: int, backlog_bytes: int, idle_s: float, huge: bool) -> Arena: ...
    def take(self, n_bytes: int, way: str, secret: bool, shared: bool, registered: bool, threads: int) -> Lease | str:
        """A lease, first touched on `threads` threads (0: not at all). Or why there is none: "budget", "backlog", or
        the kernel's words."""

    @staticmethod
    def wait(timeout_s: float) -> None:
        """Until some memory was given or released."""

    def trim(self, keep_bytes: int) -> None: ...
    def close(self) -> None: ...
    def drain(self, timeout_s: float) -> bool: ...
    def take_idle_registered(self) -> Lease | None: ...
    def forget(self, address: int) -> None:
        """Unmarks a registered block that is lent or pooled."""

    def stats(self) -> dict[str, Any]: ...

def lock_pages(address: int, n_bytes: int, locked: bool) -> None:
    """mlock or munlock; OSError when the kernel refuses."""

def numpy_handler(arena: Arena, way: str, threshold_bytes: int, threads: int) -> object:
    """A handler for NumPy's memory (NEP 49) as a capsule."""

class KeptVectors:
    """Vectors that a stand-in's control hands to its caller."""

class MapProbe:
    """A thread that maps, touches and unmaps 64 KiB again and again."""

    def __init__(self, interval_ns: int) -> None: ...
    def stop(self) -> list[tuple[int, int]]:
        """(begin, duration) of every round, nanoseconds of CLOCK_MONOTONIC."""

def standin_call(
    arena: Arena,
    way: str,
    clear: str,
    secret: bool,
    n_bytes: int,
    vectors: int,
    work_s: float,
    threads: int,
    keep: bool,
) -> tuple[int, int, int, KeptVectors]:
    """Fills vectors, works, clears them as told (nothing, size, capacity), and destroys them on return unless they are
    kept. When it was entered, had done its work, and began to return: nanoseconds of CLOCK_MONOTONIC."""

def set_numpy_handler(api: object, handler: object) -> object:
    """Puts a handler in force for this context; `api` is NumPy's capsule _ARRAY_API. The handler before."""

# Decoding of circuit files (csrc/host/decode.h). A Csr is (row_start, column, value), to be filled; the distinct values
# come back as an array of shape (n, 4), as they stand in the data. A fault is named by one word, "" for none.

def scan_coefficients(
    threads: int, records: U8, max_rows: int, n_columns: int
) -> tuple[int, int, int, bool, str, int, int]:
    """(entries of A, entries of B, rows, whether sorted by row, fault, index of the faulty record, what it held).

    Faults: matrix, row, column.
    """

def gather_coefficients(threads: int, records: U8, sorted: bool, n_columns: int, a: Csr, b: Csr) -> U64: ...
def scan_constraints(data: U8, a: U64, b: U64, c: U64) -> tuple[str, int, int, int, int]:
    """Fills the three row_start. (fault, row, combination 0 to 2, offset, what was found).

    Faults: truncated, trailing.
    """

def gather_constraints(
    threads: int, data: U8, n_columns: int, a: Csr, b: Csr, c: Csr
) -> tuple[U64, tuple[str, int, int, int, int]]:
    """Fills column and value; fault: column."""

# Spans (csrc/host/span.h). Times are CLOCK_MONOTONIC nanoseconds; moments and samples are tuples in the order of
# snarkline.trace.model.

class span:
    """A named piece of work: a context manager and a decorator.

    `bytes` and `items` say how much was worked on; further keywords are kept as attributes. All three can be set until
    the span ends.
    """

    bytes: int | None
    items: int | None
    watch: CodeType | None
    def __init__(self, name: str, *, bytes: int | None = None, items: int | None = None, **attributes: Any) -> None: ...
    def __enter__(self) -> span: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __call__(self, function: F, /) -> F: ...
    def last_statement(self) -> None:
        """Says that the work is done and only teardown follows until the span ends."""

    @property
    def name(self) -> str: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def id(self) -> int: ...
    @property
    def root(self) -> int:
        """Id of its timeline's own span."""

    @property
    def is_open(self) -> bool:
        """Entered, and recorded."""

def set_span_decorator(function: Callable[..., Any]) -> None: ...
def timeline_span(name: str) -> span: ...
def open_span() -> span | None: ...
def span_details() -> dict[int, Any]:
    """{id of a finished span: (attributes or None, error name or None)}, the live dict."""

def span_thread_names() -> dict[int, str]: ...
def next_span_id() -> int: ...
def spans_drain(root: int, heir: int) -> list[tuple[Any, ...]]: ...
def spans_active() -> int: ...
def spans_dropped() -> int: ...
def spans_forget() -> None: ...
def counters_sample() -> None: ...
def counter_samples(since_ns: int) -> list[tuple[int, int | None, int, int]]: ...
def wait_samples(since_ns: int) -> list[tuple[int, int, int, int]]: ...
def sampler_start(period_ns: int) -> None: ...
def sampler_stop() -> None: ...
def resident_bytes() -> int: ...
def promote_trace_symbols() -> bool: ...

# Ghosts (csrc/host/ghosts.h, csrc/bind/ghosts.cpp).

def ghosts_set_up(disable: object, calls: list[int], pop_except: int, samples: bool) -> None: ...
def ghosts_next_window(restart_events: Callable[[], None]) -> None: ...
def ghosts_set_slack(bytes: int) -> None: ...
def ghosts_last_distance() -> int: ...
def ghosts_results() -> list[tuple[CodeType, int, int, int, int, int]]:
    """(code, calls, those with teardown, its ns, the longest one's ns, bytes released) of functions that had any."""

def ghosts_forget() -> None: ...
def ghosts_watchdog_start() -> bool: ...
def ghosts_watchdog_stop() -> None: ...
def ghosts_on_return(code: CodeType, offset: int, value: object, /) -> object: ...
def ghosts_on_unwind(code: CodeType, offset: int, error: BaseException, /) -> object: ...
def ghosts_on_instruction(code: CodeType, offset: int, /) -> object: ...
def ghosts_attach() -> None:
    """Python 3.11: listens to the calling thread; the three above are for later versions."""

def ghosts_detach() -> None: ...
def release_shim_loaded() -> bool: ...
def release_events(since_ns: int) -> list[tuple[int, int, int, str, int]]: ...
