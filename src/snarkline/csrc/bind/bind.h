#pragma once

#include <nanobind/nanobind.h>

namespace snarkline {
void bind_kernels(nanobind::module_& m);
}
