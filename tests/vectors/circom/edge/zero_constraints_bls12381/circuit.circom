pragma circom 2.0.0;
// no constraint; one public and one private input, no output
template T() { signal input a; signal input b; }
component main {public [a]} = T();
