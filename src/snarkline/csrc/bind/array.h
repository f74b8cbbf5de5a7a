// Arrays as Python hands them in, checked at the door: every message names what was expected and what was found.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace snarkline {

[[noreturn]] inline void refuse(const std::string& name, const std::string& expected, const std::string& found) {
  throw nanobind::value_error((name + ": expected " + expected + ", found " + found).c_str());
}

inline constexpr Py_ssize_t any_length = -1;

// Whether an array may lie at any address, as one mapped from a file does; its kernel then reads it by memcpy.
enum class Align { Natural, Any };

// A C-contiguous array of T (std::uint64_t, std::uint32_t, std::uint8_t), held by the buffer protocol while this lives.
// `shape` is what is expected; any_length matches everything.
template <class T>
class Array {
 public:
  Array(nanobind::handle object, const char* name, std::initializer_list<Py_ssize_t> shape, bool writable,
        Align align = Align::Natural) {
    const int flags = PyBUF_ND | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
      PyErr_Clear();
      refuse(name, std::string(writable ? "a writable" : "an") + " array, C-contiguous",
             nanobind::type_name(object.type()).c_str());
    }
    try {
      check(name, shape, align);
    } catch (...) {
      PyBuffer_Release(&view_);
      throw;
    }
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { PyBuffer_Release(&view_); }

  T* data() const { return static_cast<T*>(view_.buf); }
  std::size_t length(int axis = 0) const { return static_cast<std::size_t>(view_.shape[axis]); }

 private:
  void check(const char* name, std::initializer_list<Py_ssize_t> shape, Align align) const {
    // NumPy marks an unaligned array by a byte order sign before the letter.
    std::string format = view_.format ? view_.format : "B";
    if (align == Align::Any && format.size() == 2 && format[0] == '=') format.erase(0, 1);
    const bool unsigned_letter = format.size() == 1 && std::string("BHILQ").find(format) != std::string::npos;
    if (!unsigned_letter || view_.itemsize != Py_ssize_t{sizeof(T)}) {
      refuse(name, "aligned uint" + std::to_string(8 * sizeof(T)) + " items",
             "items of " + std::to_string(view_.itemsize) + " bytes, format '" + format + "'");
    }
    bool fits = view_.ndim == static_cast<int>(shape.size());
    int axis = 0;
    for (const Py_ssize_t wanted : shape) {
      if (!fits) break;
      fits = wanted == any_length || view_.shape[axis] == wanted;
      axis++;
    }
    if (!fits)
      refuse(name, "shape " + text(shape.begin(), static_cast<int>(shape.size())), text(view_.shape, view_.ndim));
  }

  static std::string text(const Py_ssize_t* shape, int n) {
    std::string out = "(";
    for (int i = 0; i < n; i++) {
      out += (i ? ", " : "") + (shape[i] == any_length ? std::string("n") : std::to_string(shape[i]));
    }
    return out + (n == 1 ? ",)" : ")");
  }

  Py_buffer view_{};
};

}  // namespace snarkline
