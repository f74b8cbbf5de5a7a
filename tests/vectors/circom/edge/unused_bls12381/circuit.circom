pragma circom 2.0.0;
// unused public input u, unused private inputs v[3], an unused hinted signal z, a dead constant output
template T() { signal input u; signal input v[3]; signal input a; signal output o; signal output k; signal z;
  z <-- a + 1; o <== a * a; k <== 5; }
component main {public [u]} = T();
