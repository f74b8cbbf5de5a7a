// The curves, each as its irreducible facts. Sources: BN254 (alt_bn128), EIP-196 and EIP-197; BLS12-381,
// draft-irtf-cfrg-pairing-friendly-curves-11 section 4.2.1. Both: y^2 = x^3 + b, twist y^2 = x^3 + b2 over Fp2 =
// Fp[u]/(u^2 + 1), Fp6 = Fp2[v]/(v^3 - xi), Fp12 = Fp6[w]/(w^2 - v).
#pragma once

#include "point.h"

namespace snarkline {
inline namespace SNL_ISA {

enum class Family { BN, BLS12 };
enum class Twist { D, M };  // D: b2 = b / xi; M: b2 = b * xi

struct Bn254 {
  struct FrParams {
    static constexpr int limbs = 4;
    static constexpr auto modulus = hex<4>("30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001");
    static constexpr u64 generator = 5;
  };
  struct FpParams {
    static constexpr int limbs = 4;
    static constexpr auto modulus = hex<4>("30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47");
    static constexpr u64 generator = 3;
  };
  using Fr = Field<FrParams>;
  using Fp = Field<FpParams>;
  static constexpr const char* name = "bn254";
  static constexpr u64 seed = 4965661367192848881ull;  // x; p(x), r(x) are the BN polynomials; loop length 6x + 2
  static constexpr bool seed_negative = false;
  static constexpr Family family = Family::BN;
  static constexpr Twist twist = Twist::D;
  static constexpr u64 b = 3;
  static constexpr u64 xi[2] = {9, 1};  // 9 + u
  static constexpr auto g1_x = hex<4>("1");
  static constexpr auto g1_y = hex<4>("2");
  static constexpr Int<4> g2_x[2] = {hex<4>("1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed"),
                                     hex<4>("198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2")};
  static constexpr Int<4> g2_y[2] = {hex<4>("12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa"),
                                     hex<4>("90689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b")};
};

struct Bls12_381 {
  struct FrParams {
    static constexpr int limbs = 4;
    static constexpr auto modulus = hex<4>("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");
    static constexpr u64 generator = 7;
  };
  struct FpParams {
    static constexpr int limbs = 6;
    static constexpr auto modulus =
        hex<6>("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab");
    static constexpr u64 generator = 2;
  };
  using Fr = Field<FrParams>;
  using Fp = Field<FpParams>;
  static constexpr const char* name = "bls12_381";
  static constexpr u64 seed = 0xd201000000010000ull;  // |x|
  static constexpr bool seed_negative = true;
  static constexpr Family family = Family::BLS12;
  static constexpr Twist twist = Twist::M;
  static constexpr u64 b = 4;
  static constexpr u64 xi[2] = {1, 1};  // 1 + u
  static constexpr auto g1_x =
      hex<6>("17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb");
  static constexpr auto g1_y =
      hex<6>("8b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1");
  static constexpr Int<6> g2_x[2] = {
      hex<6>("24aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"),
      hex<6>("13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e")};
  static constexpr Int<6> g2_y[2] = {
      hex<6>("ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"),
      hex<6>("606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be")};
};

// What follows from the facts of a curve C.
template <class C>
struct Derived {
  using Fp = typename C::Fp;
  using Fp2 = snarkline::Fp2<Fp>;

  static constexpr Fp b = Fp::from_u64(C::b);
  static constexpr Fp2 xi = Fp2::from_u64(C::xi[0], C::xi[1]);
  static constexpr Fp2 derive_b2() {
    const Fp2 b = Fp2::from_u64(C::b);
    return C::twist == Twist::D ? b * xi.inverse() : b * xi;
  }
  static constexpr Fp2 b2 = derive_b2();

  static constexpr Affine<Fp> g1{Fp::from_canonical(C::g1_x), Fp::from_canonical(C::g1_y)};
  static constexpr Affine<Fp2> g2{{Fp::from_canonical(C::g2_x[0]), Fp::from_canonical(C::g2_x[1])},
                                  {Fp::from_canonical(C::g2_y[0]), Fp::from_canonical(C::g2_y[1])}};
};

}  // namespace SNL_ISA
}  // namespace snarkline
