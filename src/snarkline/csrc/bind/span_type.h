// The Python type snarkline.trace.span. Functions that return an object return a reference that the caller owns, or
// null with an exception set.
#pragma once

#include <Python.h>

namespace snarkline {

PyObject* make_span_type();
void set_span_decorator(PyObject* function);  // (span, function) -> function, for span(...)(function)
PyObject* make_timeline_span(PyObject* name);
PyObject* open_span();          // of the current context; None
PyObject* span_details();       // the dict {id of a finished span: (attributes or None, error name or None)}
PyObject* span_thread_names();  // the dict {id of a thread: its name}

}  // namespace snarkline
