#include "../common/curves.h"
#include "kernels.h"

namespace snarkline {

void SNL_KERNELS(field)(CurveKernels&) {}

}  // namespace snarkline
