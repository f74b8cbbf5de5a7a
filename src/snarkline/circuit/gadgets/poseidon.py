"""Poseidon over numbers: three constraints for each S-box, none for the linear layers."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.circuit.batch import Batch
from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.poseidon_parameters import PoseidonParameters, parameters_for
from snarkline.circuit.recorder import ONE
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Num
from snarkline.curves.vector import Form, FrVector


@gadget
def poseidon(cs: Builder, inputs: Sequence[Num]) -> Num:
    """The hash of numbers: circom's `Poseidon` over BN254, neptune's for Merkle trees over BLS12-381.

    Over BN254 it takes 1 to 16 inputs, and two cost 241 constraints. Raises CircuitError for another number of them.
    """
    if not isinstance(inputs, Sequence | Batch):
        raise cs.error(f"poseidon takes a list of numbers, as in poseidon(cs, [x]); found a {type(inputs).__name__}")
    try:
        parameters = parameters_for(cs.curve, len(inputs))
    except KeyError:
        raise cs.error(f"no Poseidon for {len(inputs)} inputs over {cs.curve.name}") from None
    return permute(cs, parameters, inputs)


def permute(cs: Builder, parameters: PoseidonParameters, inputs: Sequence[Num]) -> Num:
    """The hash with the given parameters, as one wire."""
    state = [cs.constant(parameters.tag), *inputs]
    for number in range(parameters.full_rounds + parameters.partial_rounds):
        state = [x + k for x, k in zip(state, parameters.round_constants(number), strict=True)]
        n_boxes = parameters.width if parameters.is_full(number) else 1
        state[:n_boxes] = [_fifth_power(x) for x in state[:n_boxes]]
        last = number == parameters.full_rounds + parameters.partial_rounds - 1
        rows = [parameters.matrix[parameters.output]] if last else parameters.matrix
        state = [_product(cs, row, state) for row in rows]
    output = state[0].allocated() if state[0].constant is None else state[0]
    name_native(cs, parameters, inputs, output)
    return output


def name_native(cs: Builder, parameters: PoseidonParameters, inputs: Sequence[Num], output: Num) -> None:
    """Names the native implementation, where all inputs are wires."""
    columns = [number.column for number in (*inputs, output)]
    known = [column for column in columns if column is not None]
    if len(known) == len(columns):
        cs.set_native("poseidon", known[:-1], known[-1:], native_parameters(parameters))


def native_parameters(parameters: PoseidonParameters) -> FrVector:
    """What the native implementation takes: width, full and partial rounds, output element, tag, constants, matrix.

    The constants are in the order of rounds, the matrix is row by row; Montgomery form.
    """
    p = parameters
    head = (p.width, p.full_rounds, p.partial_rounds, p.output, p.tag)
    return FrVector.from_ints(p.curve, [*head, *p.constants, *(m for row in p.matrix for m in row)], Form.MONTGOMERY)


def _fifth_power(x: Num) -> Num:
    if x.constant is not None:
        return Num(x.cs, {ONE: pow(x.constant, 5, x.cs.r)})
    square = x * x
    return square * square * x


def _product(cs: Builder, row: Sequence[int], state: Sequence[Num]) -> Num:
    """A row of the matrix times the state."""
    terms: dict[int, int] = {}
    for factor, number in zip(row, state, strict=True):
        for column, coefficient in number.terms.items():
            terms[column] = (terms.get(column, 0) + factor * coefficient) % cs.r
    return Num(cs, terms)
