"""A sealed bid: the circuit that docs/circuits.md builds step by step.

snarkline setup auction.py:sealed_bid -o auction.zkey --vk vk.json
snarkline prove auction.py:sealed_bid --key auction.zkey --input auction.json
snarkline verify vk.json public.json proof.json
"""

from __future__ import annotations

from snarkline.circuit import Bit, Builder, Num, Private, Public, Size, UInt64, circuit, gadget
from snarkline.circuit.gadgets import less_equal, poseidon

N_COINS = Size("n_coins")


@gadget
def count_one(cs: Builder, total: Num, spent: Bit) -> Num:
    """How many coins are spent so far."""
    return total + spent


@circuit
def sealed_bid(
    cs: Builder,
    reserve: Public[UInt64],
    commitment: Public[Num],
    coins: Private[UInt64, N_COINS],
    blinding: Private[Num],
    spend: Private[Bit, N_COINS],
    n_coins: int = 4,
) -> dict[str, Num]:
    """The coins that are spent come to at least the reserve; the commitment is to their sum."""
    bid = cs.constant(0)
    with cs.scope("bid"):
        for coin, spent in zip(coins, spend, strict=True):
            bid = bid + coin.num() * spent
    with cs.scope("reserve"):
        enough = less_equal(cs, reserve.num(), bid, 80)
        cs.equal(enough, 1)
    with cs.scope("commitment"):
        cs.equal(cs.call(poseidon, [bid, blinding]), commitment)
    return {"coins": cs.scan(count_one, cs.constant(0), spend)}
