// Face of the release experiment's native half.
#include "../host/standin.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array.h"
#include "bind.h"
#include "gil.h"
#include "lease.h"

namespace nb = nanobind;

namespace snarkline {

namespace {

// Holds the control's vectors.
struct KeptVectors {
  std::shared_ptr<std::vector<StandinVector>> vectors;
};

Clear parse_clear(const std::string& name) {
  if (name == "nothing") return Clear::nothing;
  if (name == "size") return Clear::size;
  if (name == "capacity") return Clear::capacity;
  refuse("clear", "nothing, size or capacity", name);
}

nb::tuple call(std::shared_ptr<Arena> arena, const std::string& way, const std::string& clear, bool secret,
               std::size_t bytes, std::size_t vectors, double work_s, unsigned threads, bool keep) {
  if (vectors == 0 || threads == 0) refuse("vectors and threads", "at least 1", "0");
  const StandinCall standin{
      std::move(arena), parse_way(way), parse_clear(clear), secret, bytes, vectors, work_s, threads, keep};
  StandinTimes times;
  {
    const WithoutGil no_gil;
    times = standin_call(standin);
  }
  return nb::make_tuple(times.entered, times.work_done, times.last_statement, KeptVectors{std::move(times.kept)});
}

}  // namespace

void bind_standin(nb::module_& m) {
  nb::class_<KeptVectors>(m, "KeptVectors");
  nb::class_<MapProbe>(m, "MapProbe")
      .def(nb::init<std::int64_t>(), nb::arg("interval_ns"))
      .def("stop", &MapProbe::stop, nb::call_guard<WithoutGil>());
  m.def("standin_call", call, nb::arg("arena"), nb::arg("way"), nb::arg("clear"), nb::arg("secret"), nb::arg("n_bytes"),
        nb::arg("vectors"), nb::arg("work_s"), nb::arg("threads"), nb::arg("keep"));
}

}  // namespace snarkline
