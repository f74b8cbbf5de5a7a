"""File formats, read and written. `circom`: the files of circom and snarkjs."""
