#include "../host/kernels.h"

#include "bind.h"

namespace snarkline {
void bind_kernels(nanobind::module_&) {}
}  // namespace snarkline
