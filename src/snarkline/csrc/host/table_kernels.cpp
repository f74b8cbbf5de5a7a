// The table of one curve under one instruction set.
#include "kernels.h"

namespace snarkline {

void SNL_KERNELS(field)(CurveKernels&);
void SNL_KERNELS(ntt)(CurveKernels&);
void SNL_KERNELS(sparse)(CurveKernels&);
void SNL_KERNELS(msm)(CurveKernels&);
void SNL_KERNELS(point)(CurveKernels&);
void SNL_KERNELS(pairing)(CurveKernels&);

const CurveKernels& SNL_KERNELS(table)() {
  static const CurveKernels table = [] {
    CurveKernels k{};
    SNL_KERNELS(field)(k);
    SNL_KERNELS(ntt)(k);
    SNL_KERNELS(sparse)(k);
    SNL_KERNELS(msm)(k);
    SNL_KERNELS(point)(k);
    SNL_KERNELS(pairing)(k);
    return k;
  }();
  return table;
}

}  // namespace snarkline
