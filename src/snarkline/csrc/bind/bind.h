#pragma once

#include <nanobind/nanobind.h>

namespace snarkline {
void bind_arena(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
}
