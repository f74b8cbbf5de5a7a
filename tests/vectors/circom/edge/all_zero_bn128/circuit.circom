pragma circom 2.0.0;
// witness all zero but wire 0
template T() { signal input a; signal input b; signal output o; signal t; t <== a * b; o <== t * a; }
component main {public [b]} = T();
