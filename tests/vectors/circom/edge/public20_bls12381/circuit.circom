pragma circom 2.0.0;
// 20 public inputs, no output
template T(n) { signal input x[n]; signal input w; signal t[n]; t[0] <== w * x[0];
  for (var i = 1; i < n; i++) { t[i] <== t[i-1] * x[i] + x[i]; } signal input s; s === t[n-1]; }
component main {public [x]} = T(20);
