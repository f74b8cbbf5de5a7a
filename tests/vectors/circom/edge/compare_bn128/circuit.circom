pragma circom 2.0.0;
include "circomlib/circuits/comparators.circom";
// IsZero of three values and LessThan(16) of two
template T() { signal input x[3]; signal input a; signal input b; signal output z[3]; signal output lt; component q[3];
  for (var i = 0; i < 3; i++) { q[i] = IsZero(); q[i].in <== x[i]; z[i] <== q[i].out; }
  component l = LessThan(16); l.in[0] <== a; l.in[1] <== b; lt <== l.out; }
component main {public [a]} = T();
