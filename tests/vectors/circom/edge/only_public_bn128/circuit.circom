pragma circom 2.0.0;
// every wire (but 0) is public: one output, two public inputs, no private signal
template T() { signal input a; signal input b; signal output c; c <== a * b; }
component main {public [a, b]} = T();
