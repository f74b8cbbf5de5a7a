//! A constraint system that hashes what it is given, in order, and keeps nothing.
//!
//! The digest of the constraints is SHA-256 over, for each constraint, three little-endian u32 (the numbers of terms of
//! A, B, C) and then the terms: a u32 (inputs: the index; aux: the index with bit 31 set) and the coefficient, 32 bytes
//! little-endian, inputs ascending, then aux ascending, zero coefficients left out. The digest of the assignment is
//! SHA-256 over the values of the inputs (with ONE), then over those of the aux: 32 bytes little-endian each.

use std::collections::BTreeSet;

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar as Fr;
use ff::{Field, PrimeField};
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

pub struct Digester {
    valued: bool,
    constraints: Sha256,
    inputs: Vec<Fr>,
    aux: Sha256,
    n_aux: usize,
    n_constraints: usize,
    terms: [usize; 3],
    buffer: Vec<u8>,
    dense: [BitSet; 2],
    n_inputs: usize,
    dense_inputs: BTreeSet<usize>,
}

#[derive(Default)]
struct BitSet(Vec<u64>);

impl BitSet {
    fn insert(&mut self, i: usize) {
        if self.0.len() <= i / 64 {
            self.0.resize(i / 64 + 1024, 0);
        }
        self.0[i / 64] |= 1 << (i % 64);
    }
    fn count(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }
}

impl Digester {
    /// `valued`: values are asked for and hashed; otherwise the shape alone.
    pub fn start(valued: bool) -> Self {
        Digester {
            valued,
            constraints: Sha256::new(),
            inputs: vec![Fr::ONE],
            aux: Sha256::new(),
            n_aux: 0,
            n_constraints: 0,
            terms: [0; 3],
            buffer: Vec::new(),
            dense: Default::default(),
            n_inputs: 1,
            dense_inputs: BTreeSet::new(),
        }
    }

    pub fn public(&self) -> &[Fr] {
        &self.inputs[1..]
    }

    pub fn report(self, name: &str) -> Value {
        let mut inputs = Sha256::new();
        for v in &self.inputs {
            inputs.update(v.to_repr());
        }
        let mut row = json!({
            "name": name, "inputs": self.n_inputs, "aux": self.n_aux, "constraints": self.n_constraints,
            "terms": self.terms, "constraints_sha256": hex::encode(self.constraints.finalize()),
            "aux_in_a": self.dense[0].count(), "aux_in_b": self.dense[1].count(),
            "inputs_in_b": self.dense_inputs.len(),
        });
        if self.valued {
            row["inputs_sha256"] = hex::encode(inputs.finalize()).into();
            row["aux_sha256"] = hex::encode(self.aux.finalize()).into();
        }
        row
    }

    fn side(&mut self, lc: &LinearCombination<Fr>, side: usize) -> u32 {
        let mut n = 0;
        for (variable, coefficient) in lc.iter() {
            if coefficient.is_zero_vartime() {
                continue;
            }
            n += 1;
            let id = match variable.get_unchecked() {
                Index::Input(i) => {
                    if side == 1 {
                        self.dense_inputs.insert(i);
                    }
                    i as u32
                }
                Index::Aux(i) => {
                    if side < 2 {
                        self.dense[side].insert(i);
                    }
                    i as u32 | 1 << 31
                }
            };
            self.buffer.extend_from_slice(&id.to_le_bytes());
            self.buffer.extend_from_slice(coefficient.to_repr().as_ref());
        }
        self.terms[side] += n as usize;
        n
    }
}

impl ConstraintSystem<Fr> for Digester {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if self.valued {
            self.aux.update(f()?.to_repr());
        }
        self.n_aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.n_aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if self.valued {
            self.inputs.push(f()?);
        }
        self.n_inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.n_inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LB: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LC: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
    {
        let sides = [
            a(LinearCombination::zero()),
            b(LinearCombination::zero()),
            c(LinearCombination::zero()),
        ];
        self.buffer.clear();
        self.buffer.resize(12, 0);
        for (k, lc) in sides.iter().enumerate() {
            let n = self.side(lc, k);
            self.buffer[4 * k..4 * k + 4].copy_from_slice(&n.to_le_bytes());
        }
        self.constraints.update(&self.buffer);
        self.n_constraints += 1;
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
