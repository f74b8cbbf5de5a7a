//! Prints what the reference crates make of Filecoin's circuits, for tests to compare with.
mod digest;
mod gadgets;
mod porep;

use std::{env::args, fs::write, path::Path};

use anyhow::{bail, Result};
use blstrs::Scalar as Fr;
use ff::PrimeField;
use serde_json::{to_string_pretty, Value};

/// A field element in hexadecimal, most significant digit first.
pub fn hexadecimal(v: &Fr) -> String {
    let mut bytes = v.to_repr();
    bytes.as_mut().reverse();
    hex::encode(bytes)
}

const USAGE: &str = "usage: conformance COMMAND
  vectors DIR            writes gadgets.json, circuits.json and seal_2KiB/ (minutes: circuits up to 32 GiB are streamed)
  circuit SIZE           the digest of the PoRep circuit of a sector size, without values
  verify DIR VK PROOF    checks 192-byte proofs of the sector sealed in DIR under a verifying key
  prove DIR PARAMS OUT   proves the sector sealed in DIR with bellperson's prover and a parameter file, and verifies
  params OUT             bellperson's own generator, for the 2 KiB circuit";

fn main() -> Result<()> {
    let a: Vec<String> = args().skip(1).collect();
    let words: Vec<&str> = a.iter().map(String::as_str).collect();
    let shown = match words.as_slice() {
        ["vectors", dir] => return vectors(dir.as_ref()),
        ["circuit", size] => porep::blank(size)?,
        ["verify", dir, vk, proof] => porep::verify(dir.as_ref(), vk.as_ref(), proof.as_ref())?,
        ["prove", dir, params, out] => porep::prove(dir.as_ref(), params.as_ref(), out.as_ref())?,
        ["params", out] => porep::params(out.as_ref())?,
        _ => bail!(USAGE),
    };
    println!("{}", to_string_pretty(&shown)?);
    Ok(())
}

fn vectors(dir: &Path) -> Result<()> {
    write(dir.join("gadgets.json"), to_string_pretty(&gadgets::all())?)?;
    let mut circuits: Vec<Value> = porep::shapes()?;
    circuits.extend(porep::seal(&dir.join("seal_2KiB"))?);
    for size in ["2KiB", "8MiB", "512MiB", "32GiB"] {
        circuits.push(porep::blank(size)?);
    }
    Ok(write(dir.join("circuits.json"), to_string_pretty(&circuits)?)?)
}
