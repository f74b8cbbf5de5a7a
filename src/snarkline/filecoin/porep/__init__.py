"""The Proof-of-Replication (SDR): labels, commitments, vanilla proofs and the circuit.

Fisch, "Tight Proofs of Space and Replication", EUROCRYPT 2019 (eprint 2018/702), as Filecoin's specification fixes it.
"""
