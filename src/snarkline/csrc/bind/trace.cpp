// Bindings of spans, counters and samples (host/span.h, host/sampler.h).
#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include "../host/sampler.h"
#include "../host/span.h"
#include "bind.h"
#include "gil.h"
#include "span_type.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace snarkline {

namespace {

nb::tuple moment(const Moment& m) {
  return nb::make_tuple(m.ns, m.user_ns, m.system_ns, m.minor_faults, m.major_faults, m.voluntary, m.involuntary,
                        m.blocks, m.arena_taken, m.arena_released, m.run_delay_ns);
}

nb::object known(std::int64_t value) { return value < 0 ? nb::none() : nb::cast(value); }

nb::list drain(std::uint64_t root, std::uint64_t heir) {
  std::vector<SpanRecord> records;
  {
    WithoutGil without;
    records = spans_drain(root, heir);
  }
  nb::list out;
  for (const SpanRecord& r : records)
    out.append(nb::make_tuple(r.id, r.parent, span_name(r.name), r.thread, static_cast<int>(r.kind), moment(r.begin),
                              r.last.ns ? nb::object(moment(r.last)) : nb::none(), moment(r.end), known(r.rss_last),
                              known(r.rss_end), known(r.bytes), known(r.items)));
  return out;
}

nb::list counters_since(std::int64_t ns) {
  nb::list out;
  for (const CounterSample& s : counter_samples(ns))
    out.append(nb::make_tuple(s.ns, known(s.rss), s.arena_live, s.release_pending));
  return out;
}

nb::list waits_since(std::int64_t ns) {
  nb::list out;
  for (const WaitSample& s : wait_samples(ns)) out.append(nb::make_tuple(s.ns, s.thread, s.call, s.io_bytes));
  return out;
}

void forget() {
  spans_forget();
  wait_samples_forget();
}

// Makes the functions of snarkline/trace.h findable by dlsym() in the whole process.
bool promote_symbols() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&promote_symbols), &info) || !info.dli_fname) return false;
  return dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW | RTLD_GLOBAL) != nullptr;
}

}  // namespace

void bind_trace(nb::module_& m) {
  m.attr("span") = nb::steal(make_span_type());
  m.def("set_span_decorator", [](nb::object function) { set_span_decorator(function.ptr()); }, "function"_a);
  m.def("timeline_span", [](nb::str name) { return nb::steal(make_timeline_span(name.ptr())); }, "name"_a);
  m.def("open_span", [] { return nb::steal(open_span()); });
  m.def("span_details", [] { return nb::steal<nb::dict>(span_details()); });
  m.def("span_thread_names", [] { return nb::steal<nb::dict>(span_thread_names()); });
  m.def("next_span_id", next_span_id);
  m.def("spans_drain", drain, "root"_a, "heir"_a);
  m.def("spans_active", [] { return spans_active.load(); });
  m.def("spans_dropped", spans_dropped);
  m.def("spans_forget", forget);
  m.def("counter_samples", counters_since, "since_ns"_a);
  m.def("counters_sample", [] { counters_sample(monotonic_ns(), resident_bytes()); });
  m.def("wait_samples", waits_since, "since_ns"_a);
  m.def("sampler_start", sampler_start, "period_ns"_a);
  m.def("sampler_stop", sampler_stop, nb::call_guard<WithoutGil>());
  m.def("resident_bytes", resident_bytes);
  m.def("promote_trace_symbols", promote_symbols);
}

}  // namespace snarkline
