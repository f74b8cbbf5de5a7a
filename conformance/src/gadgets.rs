//! Each gadget by itself, over inputs that anybody can make again: bit i of a message is bit 7 - i % 8 of byte
//! (37 (i / 8) + 11) mod 256; number i is (1000003 i + 17)^5.

use bellpepper_core::{ConstraintSystem, SynthesisError};
use bellperson::gadgets::{
    boolean::{AllocatedBit, Boolean},
    lookup::{lookup3_xy, lookup3_xy_with_conditional_negation},
    multieq::MultiEq,
    multipack,
    num::{AllocatedNum, Num},
    sha256::{sha256, sha256_compression_function},
    uint32::UInt32,
};
use blstrs::Scalar as Fr;
use ff::Field;
use generic_array::typenum::{U11, U2, U4, U8};
use neptune::{circuit::poseidon_hash, poseidon::PoseidonConstants, Arity};
use serde_json::Value;
use storage_proofs_core::gadgets::{constraint, insertion, uint64::UInt64};

use crate::digest::Digester;

type Done = Result<(), SynthesisError>;

pub fn bit(i: usize) -> bool {
    (37 * (i / 8) + 11) as u8 >> (7 - i % 8) & 1 == 1
}

pub fn number(i: u64) -> Fr {
    Fr::from(1_000_003 * i + 17).pow_vartime([5])
}

fn bits<CS: ConstraintSystem<Fr>>(cs: &mut CS, n: usize) -> Result<Vec<Boolean>, SynthesisError> {
    (0..n)
        .map(|i| {
            Ok(Boolean::from(AllocatedBit::alloc(
                cs.namespace(|| format!("bit {i}")),
                Some(bit(i)),
            )?))
        })
        .collect()
}

fn numbers<CS: ConstraintSystem<Fr>>(cs: &mut CS, n: u64) -> Result<Vec<AllocatedNum<Fr>>, SynthesisError> {
    (0..n)
        .map(|i| AllocatedNum::alloc(cs.namespace(|| format!("num {i}")), || Ok(number(i))))
        .collect()
}

/// The four kinds of a Boolean over a bit of its own: the bit, its negation, true, false.
fn kinds<CS: ConstraintSystem<Fr>>(cs: &mut CS, value: bool) -> Result<[Boolean; 4], SynthesisError> {
    let b = Boolean::from(AllocatedBit::alloc(cs.namespace(|| "kind"), Some(value))?);
    Ok([b.clone(), b.not(), Boolean::constant(true), Boolean::constant(false)])
}

fn boolean_pairs(cs: &mut Digester) -> Done {
    let (x, y) = (kinds(cs, true)?, kinds(cs, false)?);
    for a in &x {
        for b in &y {
            Boolean::xor(cs.namespace(|| "xor"), a, b)?;
            Boolean::and(cs.namespace(|| "and"), a, b)?;
        }
    }
    Boolean::enforce_equal(cs.namespace(|| "equal"), &x[0], &y[1])?;
    Boolean::enforce_equal(cs.namespace(|| "equal"), &x[2], &y[1])
}

fn choices(cs: &mut Digester) -> Done {
    let (x, y, z) = (kinds(cs, true)?, kinds(cs, false)?, kinds(cs, true)?);
    for a in &x {
        for b in &y {
            for c in &z {
                Boolean::sha256_ch(cs.namespace(|| "ch"), a, b, c)?;
                Boolean::sha256_maj(cs.namespace(|| "maj"), a, b, c)?;
            }
        }
    }
    Ok(())
}

fn sums(cs: &mut Digester) -> Done {
    let words: Vec<UInt32> = bits(cs, 320)?.chunks(32).map(UInt32::from_bits_be).collect();
    let mut cs = MultiEq::new(cs);
    for k in 2..=10 {
        let mut operands = words[..k].to_vec();
        UInt32::addmany(cs.namespace(|| "sum"), &operands)?;
        operands[1] = UInt32::constant(0xdead_beef);
        operands[0] = operands[0].rotr(7).xor(cs.namespace(|| "xor"), &words[9].shr(3))?;
        UInt32::addmany(cs.namespace(|| "sum with a constant"), &operands)?;
    }
    Ok(())
}

fn hash(cs: &mut Digester, n: usize) -> Done {
    let message = bits(cs, n)?;
    sha256(cs.namespace(|| "sha256"), &message)?;
    Ok(())
}

fn compression(cs: &mut Digester) -> Done {
    let all = bits(cs, 768)?;
    let state: Vec<UInt32> = all[512..].chunks(32).map(UInt32::from_bits_be).collect();
    sha256_compression_function(cs.namespace(|| "compress"), &all[..512], &state)?;
    Ok(())
}

fn packing(cs: &mut Digester) -> Done {
    let message = bits(cs, 300)?;
    multipack::pack_into_inputs(cs.namespace(|| "inputs"), &message)?;
    multipack::pack_bits(cs.namespace(|| "bits"), &message)?;
    multipack::pack_bits(cs.namespace(|| "few bits"), &message[..40])?;
    Ok(())
}

fn nums(cs: &mut Digester) -> Done {
    let n = numbers(cs, 3)?;
    n[0].mul(cs.namespace(|| "mul"), &n[1])?
        .square(cs.namespace(|| "square"))?;
    n[1].inputize(cs.namespace(|| "input"))?;
    n[2].assert_nonzero(cs.namespace(|| "nonzero"))?;
    n[0].to_bits_le(cs.namespace(|| "bits"))?;
    n[1].to_bits_le_strict(cs.namespace(|| "strict bits"))?;
    for b in kinds(cs, true)? {
        AllocatedNum::conditionally_reverse(cs.namespace(|| "reverse"), &n[0], &n[1], &b)?;
    }
    let mut sum = Num::from(n[0].clone());
    for (i, b) in kinds(cs, false)?.iter().enumerate() {
        sum = sum.add_bool_with_coeff(Digester::one(), b, Fr::from(3 + i as u64));
    }
    let lc = sum.lc(Fr::from(5));
    cs.enforce(|| "num", |_| lc, |b| b + Digester::one(), |c| c);
    let s = constraint::add(cs.namespace(|| "add"), &n[0], &n[1])?;
    let d = constraint::sub(cs.namespace(|| "sub"), &s, &n[2])?;
    constraint::equal(cs, || "equal", &d, &d);
    let word = UInt64::alloc(cs.namespace(|| "word"), Some(0x0123_4567_89ab_cdef))?;
    word.pack_into_input(cs.namespace(|| "word input"))
}

fn lookups(cs: &mut Digester) -> Done {
    let b = bits(cs, 3)?;
    let table: Vec<(Fr, Fr)> = (0..8).map(|i| (number(i), number(8 + i))).collect();
    lookup3_xy(cs.namespace(|| "lookup"), &b, &table)?;
    lookup3_xy_with_conditional_negation(cs.namespace(|| "negation"), &b, &table[..4])?;
    Ok(())
}

fn insertions(cs: &mut Digester, log: usize) -> Done {
    let b = bits(cs, log)?;
    let n = numbers(cs, 1 << log)?;
    insertion::insert(cs, &n[0], &b, &n[1..])?;
    Ok(())
}

fn selection(cs: &mut Digester) -> Done {
    let b = bits(cs, 3)?;
    let n = numbers(cs, 8)?;
    insertion::select(cs, &n, &b)?;
    Ok(())
}

fn poseidon<A: Arity<Fr>>(cs: &mut Digester) -> Done {
    let n = numbers(cs, A::to_usize() as u64)?;
    let constants = PoseidonConstants::<Fr, A>::new();
    let digest = poseidon_hash(cs.namespace(|| "poseidon"), n, &constants)?;
    digest.inputize(cs.namespace(|| "digest"))
}

pub fn all() -> Vec<Value> {
    let mut rows = Vec::new();
    let mut run = |name: &str, gadget: &dyn Fn(&mut Digester) -> Done| {
        let mut cs = Digester::start(true);
        gadget(&mut cs).unwrap_or_else(|e| panic!("{name}: {e}"));
        let public: Vec<String> = cs.public().iter().map(crate::hexadecimal).collect();
        let mut row = cs.report(name);
        row["public"] = public.into();
        rows.push(row);
    };
    run("boolean", &boolean_pairs);
    run("ch_maj", &choices);
    run("addmany", &sums);
    for n in [0, 8, 440, 448, 512, 1024] {
        run(&format!("sha256_{n}"), &|cs| hash(cs, n));
    }
    run("sha256_compress", &compression);
    run("multipack", &packing);
    run("num", &nums);
    run("lookup", &lookups);
    for log in [1, 2, 3] {
        run(&format!("insert_{}", 1 << log), &|cs| insertions(cs, log));
    }
    run("select_8", &selection);
    run("poseidon_2", &poseidon::<U2>);
    run("poseidon_4", &poseidon::<U4>);
    run("poseidon_8", &poseidon::<U8>);
    run("poseidon_11", &poseidon::<U11>);
    rows
}
