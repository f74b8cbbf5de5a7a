//! The Proof-of-Replication at 2 KiB, sealed, proven and verified by the reference crates; circuits of every size.

use std::{
    fs::{create_dir_all, read, write, File},
    io::{BufReader, Write},
    path::Path,
};

use anyhow::{ensure, Context, Result};
use bellperson::{
    groth16::{prepare_verifying_key, verify_proof, Parameters, Proof, VerifyingKey},
    Circuit,
};
use blstrs::{Bls12, Scalar as Fr};
use filecoin_hashers::{poseidon::PoseidonHasher, sha256::Sha256Hasher, Domain, Hasher};
use filecoin_proofs::{
    add_piece, generate_piece_commitment, get_seal_inputs,
    parameters::{public_params, setup_params},
    seal_commit_phase1, seal_pre_commit_phase1, seal_pre_commit_phase2, DefaultPieceHasher, PoRepConfig,
    SealCommitPhase1Output, SectorShape2KiB, SectorShape32GiB, SectorShape64GiB, SECTOR_SIZE_2_KIB,
};
use generic_array::typenum::{U0, U2, U4, U8};
use serde_json::{json, Value};
use storage_proofs_core::{
    api_version::ApiVersion,
    compound_proof::CompoundProof,
    gadgets::por::PoRCompound,
    merkle::{DiskTree, MerkleTreeTrait},
    por,
    proof::ProofScheme,
};
use storage_proofs_porep::stacked::{Challenges, PublicInputs, SetupParams, StackedCompound, StackedDrg, Tau};

use crate::digest::Digester;

type Tree = SectorShape2KiB;
type Compound<T> = StackedCompound<T, DefaultPieceHasher>;

/// The porep id whose first byte names the 2 KiB, version 1.1 proof, as in the crates' tests.
fn config(size: u64) -> PoRepConfig {
    let mut porep_id = [0u8; 32];
    porep_id[0] = 5;
    PoRepConfig::new_groth16(size, porep_id, ApiVersion::V1_1_0)
}

fn shape<C: Circuit<Fr>>(name: &str, circuit: C) -> Result<Value> {
    let mut cs = Digester::start(false);
    circuit.synthesize(&mut cs)?;
    Ok(cs.report(name))
}

fn porep_shape<T: 'static + MerkleTreeTrait>(name: &str, size: u64) -> Result<Value> {
    let parameters = public_params::<T>(&config(size))?;
    let circuit = <Compound<T> as CompoundProof<StackedDrg<'_, T, DefaultPieceHasher>, _>>::blank_circuit(&parameters);
    shape(name, circuit)
}

pub fn blank(size: &str) -> Result<Value> {
    match size {
        "2KiB" => porep_shape::<SectorShape2KiB>("porep_2KiB", 2 << 10),
        "8MiB" => porep_shape::<SectorShape2KiB>("porep_8MiB", 8 << 20),
        "512MiB" => porep_shape::<SectorShape2KiB>("porep_512MiB", 512 << 20),
        "32GiB" => porep_shape::<SectorShape32GiB>("porep_32GiB", 32 << 30),
        "64GiB" => porep_shape::<SectorShape64GiB>("porep_64GiB", 64 << 30),
        other => anyhow::bail!("unknown sector size {other}"),
    }
}

fn inclusion<T: 'static + MerkleTreeTrait>(rows: &mut Vec<Value>, name: &str, leaves: usize) -> Result<()> {
    for private in [false, true] {
        let parameters = por::PublicParams { leaves, private };
        let name = format!("por_{name}{}", if private { "_private_root" } else { "" });
        rows.push(shape(&name, PoRCompound::<T>::blank_circuit(&parameters))?);
    }
    Ok(())
}

fn stacked<T: 'static + MerkleTreeTrait>(rows: &mut Vec<Value>, name: &str, nodes: usize) -> Result<()> {
    let setup = SetupParams {
        nodes,
        degree: 6,
        expansion_degree: 8,
        porep_id: [44; 32],
        challenges: Challenges::new_interactive(1),
        num_layers: 2,
        api_version: ApiVersion::V1_1_0,
        api_features: vec![],
    };
    let parameters = StackedDrg::<T, Sha256Hasher>::setup(&setup)?;
    let circuit = StackedCompound::<T, Sha256Hasher>::blank_circuit(&parameters);
    rows.push(shape(&format!("stacked_{name}"), circuit)?);
    Ok(())
}

pub fn shapes() -> Result<Vec<Value>> {
    type P<A, B = U0, C = U0> = DiskTree<PoseidonHasher, A, B, C>;
    let mut rows = Vec::new();
    inclusion::<P<U2>>(&mut rows, "poseidon_2", 64)?;
    inclusion::<P<U4>>(&mut rows, "poseidon_4", 64)?;
    inclusion::<P<U8>>(&mut rows, "poseidon_8", 64)?;
    inclusion::<P<U8, U2>>(&mut rows, "poseidon_8_2", 128)?;
    inclusion::<P<U8, U4, U2>>(&mut rows, "poseidon_8_4_2", 512)?;
    inclusion::<P<U8, U8>>(&mut rows, "poseidon_8_8", 512)?;
    inclusion::<DiskTree<Sha256Hasher, U2, U0, U0>>(&mut rows, "sha256_2", 64)?;
    stacked::<P<U2>>(&mut rows, "2", 8)?;
    stacked::<P<U8>>(&mut rows, "8", 8)?;
    stacked::<P<U8, U4>>(&mut rows, "8_4", 32)?;
    stacked::<P<U8, U4, U2>>(&mut rows, "8_4_2", 64)?;
    Ok(rows)
}

const PROVER: [u8; 32] = [9; 32];
const TICKET: [u8; 32] = [7; 32];
const SEED: [u8; 32] = [8; 32];
const SECTOR: u64 = 777;

/// Byte i of the sector's data before fr32 padding.
fn data_byte(i: usize) -> u8 {
    (i * i + 31 * i + 5) as u8
}

pub fn seal(dir: &Path) -> Result<Vec<Value>> {
    create_dir_all(dir)?;
    let cache = dir.join("cache");
    create_dir_all(&cache)?;
    let config = config(SECTOR_SIZE_2_KIB);
    let n = config.unpadded_bytes_amount();
    let data: Vec<u8> = (0..u64::from(n) as usize).map(data_byte).collect();
    write(dir.join("data"), &data)?;
    let piece = generate_piece_commitment(File::open(dir.join("data"))?, n)?;
    let (staged, sealed) = (dir.join("staged"), dir.join("sealed"));
    let mut staged_file = File::create(&staged)?;
    add_piece(File::open(dir.join("data"))?, &mut staged_file, n, &[])?;
    staged_file.flush()?;
    File::create(&sealed)?;
    let pieces = vec![piece];
    let phase1 = seal_pre_commit_phase1::<_, _, _, Tree>(
        &config,
        &cache,
        &staged,
        &sealed,
        PROVER,
        SECTOR.into(),
        TICKET,
        &pieces,
    )?;
    let labels = json!(&phase1);
    let pre = seal_pre_commit_phase2::<_, _, Tree>(&config, phase1, &cache, &sealed)?;
    let c1 = seal_commit_phase1::<_, Tree>(
        &config,
        &cache,
        &sealed,
        PROVER,
        SECTOR.into(),
        TICKET,
        SEED,
        pre.clone(),
        &pieces,
    )?;
    write(dir.join("c1.json"), serde_json::to_vec(&c1)?)?;
    write(dir.join("precommit1.json"), serde_json::to_vec(&labels)?)?;
    let inputs = inputs(&c1)?;
    let facts = json!({
        "sector_size": SECTOR_SIZE_2_KIB, "porep_id": hex::encode(config.porep_id), "api_version": "1.1.0",
        "prover_id": hex::encode(PROVER), "sector_id": SECTOR, "ticket": hex::encode(TICKET), "seed": hex::encode(SEED),
        "comm_d": hex::encode(pre.comm_d), "comm_r": hex::encode(pre.comm_r),
        "replica_id": hex::encode(c1.replica_id.into_bytes()),
        "public_inputs": inputs.iter().map(|p| p.iter().map(crate::hexadecimal).collect::<Vec<_>>()).collect::<Vec<_>>(),
    });
    write(dir.join("seal.json"), serde_json::to_string_pretty(&facts)?)?;
    let mut rows = Vec::new();
    let parameters = public_params::<Tree>(&config)?;
    for (k, proofs) in c1.vanilla_proofs.iter().enumerate() {
        let circuit =
            Compound::<Tree>::circuit(&public(&c1, Some(k))?, Default::default(), proofs, &parameters, Some(k))?;
        let mut cs = Digester::start(true);
        circuit.synthesize(&mut cs)?;
        ensure!(
            cs.public() == inputs[k],
            "the circuit's inputs are those of the verifier"
        );
        rows.push(cs.report(&format!("porep_2KiB_partition_{k}")));
    }
    Ok(rows)
}

type Inputs<T> =
    PublicInputs<<<T as MerkleTreeTrait>::Hasher as Hasher>::Domain, <DefaultPieceHasher as Hasher>::Domain>;

fn public(c1: &SealCommitPhase1Output<Tree>, k: Option<usize>) -> Result<Inputs<Tree>> {
    Ok(PublicInputs {
        replica_id: c1.replica_id,
        seed: Some(c1.seed),
        tau: Some(Tau {
            comm_d: Domain::try_from_bytes(&c1.comm_d)?,
            comm_r: Domain::try_from_bytes(&c1.comm_r)?,
        }),
        k,
    })
}

fn inputs(c1: &SealCommitPhase1Output<Tree>) -> Result<Vec<Vec<Fr>>> {
    get_seal_inputs::<Tree>(
        &config(SECTOR_SIZE_2_KIB),
        c1.comm_r,
        c1.comm_d,
        PROVER,
        SECTOR.into(),
        TICKET,
        SEED,
    )
}

fn read_c1(dir: &Path) -> Result<SealCommitPhase1Output<Tree>> {
    let path = dir.join("c1.json");
    serde_json::from_slice(&read(&path)?).with_context(|| path.display().to_string())
}

fn check(vk: &VerifyingKey<Bls12>, proofs: &[u8], inputs: &[Vec<Fr>]) -> Result<Vec<bool>> {
    ensure!(
        proofs.len() == 192 * inputs.len(),
        "{} bytes of proofs for {} partitions",
        proofs.len(),
        inputs.len()
    );
    let prepared = prepare_verifying_key(vk);
    proofs
        .chunks(192)
        .zip(inputs)
        .map(|(bytes, public)| Ok(verify_proof(&prepared, &Proof::<Bls12>::read(bytes)?, public)?))
        .collect()
}

pub fn verify(dir: &Path, vk: &Path, proof: &Path) -> Result<Value> {
    let vk = VerifyingKey::<Bls12>::read(BufReader::new(File::open(vk)?))?;
    let verified = check(&vk, &read(proof)?, &inputs(&read_c1(dir)?)?)?;
    Ok(json!({ "verified": verified }))
}

pub fn prove(dir: &Path, params: &Path, out: &Path) -> Result<Value> {
    let c1 = read_c1(dir)?;
    let expected = inputs(&c1)?;
    let vk = VerifyingKey::<Bls12>::read(BufReader::new(File::open(params)?))?;
    let vanilla = StackedDrg::<Tree, DefaultPieceHasher>::setup(&setup_params(&config(SECTOR_SIZE_2_KIB))?)?;
    let mapped = Parameters::<Bls12>::build_mapped_parameters(params.to_path_buf(), false)?;
    let proofs = Compound::<Tree>::circuit_proofs(&public(&c1, None)?, c1.vanilla_proofs, &vanilla, &mapped, false)?;
    let mut bytes = Vec::new();
    for proof in &proofs {
        proof.write(&mut bytes)?;
    }
    write(out, &bytes)?;
    Ok(json!({ "verified": check(&vk, &bytes, &expected)? }))
}

pub fn params(out: &Path) -> Result<Value> {
    let parameters = public_params::<Tree>(&config(SECTOR_SIZE_2_KIB))?;
    let circuit =
        <Compound<Tree> as CompoundProof<StackedDrg<'_, Tree, DefaultPieceHasher>, _>>::blank_circuit(&parameters);
    let generated = bellperson::groth16::generate_random_parameters::<Bls12, _, _>(circuit, &mut rand::rngs::OsRng)?;
    generated.write(File::create(out)?)?;
    Ok(json!({ "bytes": File::open(out)?.metadata()?.len() }))
}
