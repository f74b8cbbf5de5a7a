"""Filecoin's proofs of storage: sealing small sectors, and commit phase 2 of the Proof-of-Replication."""
