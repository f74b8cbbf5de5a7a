#include "../common/curves.h"
#include "kernels.h"

namespace snarkline {

void SNL_KERNELS(pairing)(CurveKernels&) {}

}  // namespace snarkline
