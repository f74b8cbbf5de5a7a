pragma circom 2.0.0;
// no public signal at all: nPubOut = nPubIn = 0
template T() { signal input a; signal input b; signal input s; signal c; c <== a * b; c * a === s; }
component main = T();
