"""Groth16: keys, key generation, the prover and the verifier."""
