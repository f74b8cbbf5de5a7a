#include "../common/curves.h"
#include "kernels.h"

namespace snarkline {

void SNL_KERNELS(ntt)(CurveKernels&) {}

}  // namespace snarkline
