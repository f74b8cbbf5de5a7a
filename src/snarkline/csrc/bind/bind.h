#pragma once

#include <nanobind/nanobind.h>

namespace snarkline {
void bind_ghosts(nanobind::module_& m);
void bind_trace(nanobind::module_& m);
void bind_arena(nanobind::module_& m);
void bind_facts(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_fold(nanobind::module_& m);
void bind_decode(nanobind::module_& m);
void bind_numpy_memory(nanobind::module_& m);
void bind_standin(nanobind::module_& m);
void bind_structured(nanobind::module_& m);
void bind_synthesis(nanobind::module_& m);
}  // namespace snarkline
