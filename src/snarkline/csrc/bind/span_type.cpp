// snarkline.trace.span: a context manager and decorator. Written against the C API, since a span that is off must cost
// less than a Python object with an __init__.
#include "span_type.h"

#include <structmember.h>
#include <unistd.h>

#include <cstddef>

#include "../host/span.h"

namespace snarkline {

namespace {

struct SpanObject {
  // clang-format off
  PyObject_HEAD
      // clang-format on
      vectorcallfunc vectorcall;
  PyObject *name, *bytes, *items;  // str, int or None, int or None
  PyObject* attributes;            // dict, null while there are none
  PyObject* token;                 // of the context variable, while open
  PyObject* watch;                 // code object whose return is the last statement; null
  SpanRecord* record;              // while open and recorded
  SpanContext own, parent;
  SpanKind kind;
};

PyTypeObject* span_type;
PyObject* current_span;  // ContextVar
PyObject* decorator;     // (span, function) -> function
PyObject* thread_names;  // dict: id of a thread that has had a span -> threading's name for it
PyObject* details;       // dict: id of a finished span -> (attributes, name of the error)

SpanObject* as_span(PyObject* self) { return reinterpret_cast<SpanObject*>(self); }

// A span is off most of the time and then lives for one line: dead objects are kept for the next ones (under the GIL).
constexpr int max_spare = 16;
SpanObject* spare[max_spare];
int n_spare = 0;

PyObject* span_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords);

SpanObject* new_span(PyObject* name) {
  SpanObject* self = nullptr;
  if (n_spare) {
    self = spare[--n_spare];
    PyObject_Init(reinterpret_cast<PyObject*>(self), span_type);
  } else {
    self = PyObject_GC_New(SpanObject, span_type);
    if (!self) return nullptr;
  }
  self->vectorcall = span_call;
  self->name = Py_NewRef(name);
  self->bytes = Py_NewRef(Py_None);
  self->items = Py_NewRef(Py_None);
  self->attributes = self->token = self->watch = nullptr;
  self->record = nullptr;
  self->own = self->parent = {};
  self->kind = SpanKind::python;
  return self;
}

// Only the attributes can lead back to the span, so the collector hears of it when they come to be.
PyObject* own_attributes(SpanObject* self) {
  if (!self->attributes && (self->attributes = PyDict_New())) PyObject_GC_Track(self);
  return self->attributes;
}

PyObject* span_vectorcall(PyObject*, PyObject* const* args, size_t flags, PyObject* keywords) {
  const Py_ssize_t n = PyVectorcall_NARGS(flags), n_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  if (n != 1 || !PyUnicode_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "span(name, *, bytes=None, items=None, **attributes): name is a str");
    return nullptr;
  }
  SpanObject* self = new_span(args[0]);
  for (Py_ssize_t i = 0; self && i < n_keywords; i++) {
    PyObject *key = PyTuple_GET_ITEM(keywords, i), *value = args[n + i];
    if (PyUnicode_CompareWithASCIIString(key, "bytes") == 0) {
      Py_SETREF(self->bytes, Py_NewRef(value));
    } else if (PyUnicode_CompareWithASCIIString(key, "items") == 0) {
      Py_SETREF(self->items, Py_NewRef(value));
    } else if (!own_attributes(self) || PyDict_SetItem(self->attributes, key, value) < 0) {
      Py_CLEAR(self);
    }
  }
  return reinterpret_cast<PyObject*>(self);
}

SpanContext open_parent() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(current_span, nullptr, &value) < 0) PyErr_Clear();
  SpanContext parent{};
  if (value && Py_IS_TYPE(value, span_type)) parent = as_span(value)->own;
  Py_XDECREF(value);
  return root_is_open(parent.root) ? parent : span_context();
}

// Threads are gone when their spans are looked at, so their names are kept.
void keep_thread_name() {
  PyObject* threading = PyImport_ImportModule("threading");
  PyObject* thread = threading ? PyObject_CallMethod(threading, "current_thread", nullptr) : nullptr;
  PyObject* name = thread ? PyObject_GetAttrString(thread, "name") : nullptr;
  PyObject* id = PyLong_FromLong(gettid());
  if (!name || !id || PyDict_SetItem(thread_names, id, name) < 0) PyErr_Clear();
  Py_XDECREF(threading);
  Py_XDECREF(thread);
  Py_XDECREF(name);
  Py_XDECREF(id);
}

PyObject* enter(PyObject* object) {
  SpanObject* self = as_span(object);
  const bool timeline = self->kind == SpanKind::timeline;
  if (!spans_enabled() && !timeline) return Py_NewRef(object);
  if (self->record) return PyErr_Format(PyExc_RuntimeError, "span %R is already open", self->name);
  self->parent = open_parent();
  if (!self->parent.root && !timeline) return Py_NewRef(object);
  Py_ssize_t length = 0;
  const char* name = PyUnicode_AsUTF8AndSize(self->name, &length);
  if (!name) return nullptr;
  self->own = {next_span_id(), self->parent.root};
  if (timeline) self->own.root = self->own.id;
  if (timeline && !root_open(self->own.id))
    return PyErr_Format(PyExc_RuntimeError, "too many timelines are open at once");
  self->token = PyContextVar_Set(current_span, object);
  if (!self->token) return nullptr;
  self->record = new SpanRecord;
  self->record->id = self->own.id;
  self->record->parent = self->parent.id;
  self->record->root = self->own.root;
  self->record->kind = self->kind;
  self->record->name = intern_span_name(name, static_cast<std::size_t>(length));
  thread_local bool named = false;
  if (!named) keep_thread_name();
  named = true;
  span_enter(self->own);
  self->record->begin = moment_at_begin();
  return Py_NewRef(object);
}

std::int64_t amount(PyObject* value) {
  if (value == Py_None) return -1;
  PyObject* index = PyNumber_Index(value);
  const long long n = index ? PyLong_AsLongLong(index) : -1;
  Py_XDECREF(index);
  PyErr_Clear();  // a size that is no number must not fail the work that it describes
  return n;
}

void keep_details(SpanObject* self, PyObject* error) {
  const bool failed = PyType_Check(error);
  if (!failed && !(self->attributes && PyDict_GET_SIZE(self->attributes))) return;
  const char* name = failed ? reinterpret_cast<PyTypeObject*>(error)->tp_name : nullptr;
  PyObject* id = PyLong_FromUnsignedLongLong(self->own.id);
  PyObject* pair = Py_BuildValue("(Oz)", self->attributes ? self->attributes : Py_None, name);
  if (!id || !pair || PyDict_SetItem(details, id, pair) < 0) PyErr_Clear();
  Py_XDECREF(id);
  Py_XDECREF(pair);
}

PyObject* leave(PyObject* object, PyObject* error) {
  SpanObject* self = as_span(object);
  if (!self->record) Py_RETURN_FALSE;
  SpanRecord& record = *self->record;
  record.end = moment_at_end();
  if (record.end.ns - record.begin.ns > rss_after_ns || self->kind == SpanKind::timeline) {
    record.rss_end = resident_bytes();
    counters_sample(record.end.ns, record.rss_end);
  }
  record.bytes = amount(self->bytes);
  record.items = amount(self->items);
  keep_details(self, error);
  span_write(record);
  if (self->kind == SpanKind::timeline) root_close(self->own.id);
  span_context_set(self->parent);
  if (PyContextVar_Reset(current_span, self->token) < 0) PyErr_Clear();  // left in another context than entered
  Py_CLEAR(self->token);
  delete self->record;
  self->record = nullptr;
  Py_RETURN_FALSE;
}

PyObject* span_last_statement(PyObject* object, PyObject*) {
  SpanObject* self = as_span(object);
  if (self->record) {
    if (monotonic_ns() - self->record->begin.ns > rss_after_ns) {
      self->record->rss_last = resident_bytes();
      counters_sample(monotonic_ns(), self->record->rss_last);
    }
    self->record->last = moment_at_begin();
  }
  Py_RETURN_NONE;
}

// `with` looks up __enter__ and __exit__ as bound methods, and making those two objects costs more than all the rest of
// a span that is off. So a span is its own bound method: the number of arguments tells entering (0), decorating (1) and
// leaving (3) apart.
PyObject* span_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* keywords) {
  const Py_ssize_t n = keywords ? -1 : PyVectorcall_NARGS(flags);
  if (n == 0) return enter(self);
  if (n == 3) return leave(self, args[0]);
  if (n == 1) return PyObject_CallFunctionObjArgs(decorator, self, args[0], nullptr);
  PyErr_SetString(PyExc_TypeError, "span(...)(function) decorates one function");
  return nullptr;
}

PyObject* get_self(PyObject*, PyObject* instance, PyObject* type) { return Py_NewRef(instance ? instance : type); }

PyType_Slot own_method_slots[] = {{Py_tp_descr_get, reinterpret_cast<void*>(get_self)}, {0, nullptr}};
PyType_Spec own_method_spec = {"snarkline.trace.own_method", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, own_method_slots};

// Puts __enter__ and __exit__ into the type.
bool add_with_methods(PyTypeObject* type) {
  PyObject* method_type = PyType_FromSpec(&own_method_spec);
  PyObject* method = method_type ? PyObject_CallNoArgs(method_type) : nullptr;
  const bool done = method && PyDict_SetItemString(type->tp_dict, "__enter__", method) == 0 &&
                    PyDict_SetItemString(type->tp_dict, "__exit__", method) == 0;
  PyType_Modified(type);
  Py_XDECREF(method);
  Py_XDECREF(method_type);
  return done;
}

PyObject* span_repr(PyObject* self) { return PyUnicode_FromFormat("span(%R)", as_span(self)->name); }

int span_traverse(PyObject* object, visitproc visit, void* arg) {
  SpanObject* self = as_span(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->attributes);
  return 0;
}

int span_clear(PyObject* object) {
  SpanObject* self = as_span(object);
  Py_CLEAR(self->attributes);
  return 0;
}

void span_dealloc(PyObject* object) {
  SpanObject* self = as_span(object);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (self->record && self->kind == SpanKind::timeline) root_close(self->own.id);
  delete self->record;
  span_clear(object);
  Py_XDECREF(self->name);
  Py_XDECREF(self->bytes);
  Py_XDECREF(self->items);
  Py_XDECREF(self->token);
  Py_XDECREF(self->watch);
  if (n_spare < max_spare) {
    spare[n_spare++] = self;
  } else {
    PyObject_GC_Del(object);
  }
  Py_DECREF(type);
}

PyObject* get_name(PyObject* self, void*) { return Py_NewRef(as_span(self)->name); }
PyObject* get_id(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(as_span(self)->own.id); }
PyObject* get_bytes(PyObject* self, void*) { return Py_NewRef(as_span(self)->bytes); }
PyObject* get_items(PyObject* self, void*) { return Py_NewRef(as_span(self)->items); }
PyObject* get_open(PyObject* self, void*) { return PyBool_FromLong(as_span(self)->record != nullptr); }
PyObject* get_attributes(PyObject* self, void*) { return Py_XNewRef(own_attributes(as_span(self))); }

PyObject* get_root(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(as_span(self)->own.root); }
PyObject* get_watch(PyObject* self, void*) { return Py_NewRef(as_span(self)->watch ? as_span(self)->watch : Py_None); }

int set_watch(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(as_span(self)->watch, Py_XNewRef(value));
  return 0;
}
int set_bytes(PyObject* self, PyObject* value, void*) {
  Py_SETREF(as_span(self)->bytes, Py_NewRef(value ? value : Py_None));
  return 0;
}
int set_items(PyObject* self, PyObject* value, void*) {
  Py_SETREF(as_span(self)->items, Py_NewRef(value ? value : Py_None));
  return 0;
}

PyMethodDef methods[] = {{"last_statement", span_last_statement, METH_NOARGS,
                          "Says that the work is done and only teardown follows until the span ends."},
                         {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"name", get_name, nullptr, nullptr, nullptr},
                            {"id", get_id, nullptr, "0 until it is recorded.", nullptr},
                            {"root", get_root, nullptr, "Id of its timeline's own span.", nullptr},
                            {"watch", get_watch, set_watch, "Code whose return is the last statement.", nullptr},
                            {"is_open", get_open, nullptr, "Entered, and recorded.", nullptr},
                            {"bytes", get_bytes, set_bytes, nullptr, nullptr},
                            {"items", get_items, set_items, nullptr, nullptr},
                            {"attributes", get_attributes, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(SpanObject, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

const char* doc =
    "span(name, *, bytes=None, items=None, **attributes)\n\n"
    "A named piece of work: a context manager and a decorator. `bytes` and `items` say how much was worked on; "
    "further\n"
    "keywords are kept as attributes. All three can be set until the span ends.";

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(doc)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {Py_tp_repr, reinterpret_cast<void*>(span_repr)},
                       {Py_tp_traverse, reinterpret_cast<void*>(span_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(span_clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(span_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"snarkline.trace.span", sizeof(SpanObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* make_span_type() {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return nullptr;
  span_type = reinterpret_cast<PyTypeObject*>(type);
  span_type->tp_vectorcall = span_vectorcall;
  current_span = PyContextVar_New("snarkline_span", nullptr);
  details = PyDict_New();
  thread_names = PyDict_New();
  return current_span && details && thread_names && add_with_methods(span_type) ? type : nullptr;
}

void set_span_decorator(PyObject* function) { Py_XSETREF(decorator, Py_NewRef(function)); }

PyObject* make_timeline_span(PyObject* name) {
  SpanObject* self = new_span(name);
  if (self) self->kind = SpanKind::timeline;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* open_span() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(current_span, Py_None, &value) < 0) return nullptr;
  return value;
}

PyObject* span_thread_names() { return Py_NewRef(thread_names); }

PyObject* span_details() { return Py_NewRef(details); }

}  // namespace snarkline
