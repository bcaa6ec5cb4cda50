#pragma once
// The columns of an array of any strides, as a MatrixView of a type.
//
// Contract: where an array has elements of T that lie by columns, its own memory; else a copy,
// which the adapter owns. ReadColumns widens: fp32 may be read as fp64, real numbers as complex
// ones. What does not fit is Error{misuse}.

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/check.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"
#include "strata/array_ref.hpp"

namespace strata {

/// Throws unless the array has an element of BLAS's, extents that are not negative, and memory.
void check_array(ConstArrayRef a, const char* where);

/// Whether elements of T lie by columns, where a MatrixView can see them. A leading dimension that
/// is not negative and too small is left to those who use it.
template <class T>
[[nodiscard]] bool lies_by_columns(ConstArrayRef a) noexcept {
  if (a.element != element_of<T>) return false;
  if (reinterpret_cast<std::uintptr_t>(a.data) % alignof(T) != 0) return false;
  return (a.row_stride == 1 && a.col_stride >= 0) || (a.rows <= 1 && a.col_stride > 0);
}

/// Element (i, j), which may not be aligned.
template <class T, class Void>
[[nodiscard]] auto* address_of(StridedArray<Void> a, std::int64_t i, std::int64_t j) noexcept {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
  return static_cast<Byte*>(a.data) +
         (i * a.row_stride + j * a.col_stride) * std::int64_t{sizeof(T)};
}

/// An array that is read. T: the elements that are wanted.
template <class T>
class ReadColumns {
 public:
  ReadColumns(ConstArrayRef a, const char* where) {
    check_array(a, where);
    if (lies_by_columns<T>(a)) {
      view_ = {static_cast<const T*>(a.data), a.rows, a.cols, a.col_stride};
      return;
    }
    require(is_complex_v<T> || !is_complex(a.element), ErrorKind::misuse, where,
            "{} where {} is needed", to_string(a.element), to_string(element_of<T>));
    copy_.resize(static_cast<std::size_t>(a.rows * a.cols));
    view_ = {copy_.data(), a.rows, a.cols, std::max<std::int64_t>(a.rows, 1)};
    dispatch_blas(a.element, [&]<class From>(std::type_identity<From>) {
      if constexpr (is_complex_v<T> || !is_complex_v<From>) {
        for (std::int64_t j = 0; j < a.cols; ++j)
          for (std::int64_t i = 0; i < a.rows; ++i) {
            From value;
            std::memcpy(&value, address_of<From>(a, i, j), sizeof value);
            copy_[static_cast<std::size_t>(i + j * a.rows)] = static_cast<T>(value);
          }
      }
    });
  }
  ReadColumns(const ReadColumns&) = delete;
  ReadColumns& operator=(const ReadColumns&) = delete;

  [[nodiscard]] MatrixView<const T> view() const noexcept { return view_; }

 private:
  std::vector<T> copy_;
  MatrixView<const T> view_;
};

/// An array of T that is read and written. A copy begins with what the array has, and goes back by
/// write_back().
template <class T>
class FilledColumns {
 public:
  FilledColumns(ArrayRef a, const char* where) : array_(a) {
    check_array(a, where);
    require(a.element == element_of<T>, ErrorKind::misuse, where, "{} where {} is needed",
            to_string(a.element), to_string(element_of<T>));
    if (lies_by_columns<T>(a)) {
      view_ = {static_cast<T*>(a.data), a.rows, a.cols, a.col_stride};
      return;
    }
    require((a.rows <= 1 || a.row_stride != 0) && (a.cols <= 1 || a.col_stride != 0),
            ErrorKind::misuse, where, "an array that is filled has one place for several elements");
    copy_.resize(static_cast<std::size_t>(a.rows * a.cols));
    view_ = {copy_.data(), a.rows, a.cols, std::max<std::int64_t>(a.rows, 1)};
    for_each([&](T& own, std::byte* element) { std::memcpy(&own, element, sizeof own); });
  }
  FilledColumns(const FilledColumns&) = delete;
  FilledColumns& operator=(const FilledColumns&) = delete;

  [[nodiscard]] MatrixView<T> view() const noexcept { return view_; }
  void write_back() {
    if (copy_.empty()) return;
    for_each([&](const T& own, std::byte* element) { std::memcpy(element, &own, sizeof own); });
  }

 private:
  template <class F>
  void for_each(const F& f) {
    for (std::int64_t j = 0; j < view_.cols; ++j)
      for (std::int64_t i = 0; i < view_.rows; ++i) f(view_(i, j), address_of<T>(array_, i, j));
  }

  ArrayRef array_;
  std::vector<T> copy_;
  MatrixView<T> view_;
};

/// Calls f(view) with the columns of an array that is written, of its own element; returns what f
/// does.
template <class F>
auto with_filled(ArrayRef a, const char* where, F&& f) {
  check_array(a, where);
  return dispatch_blas(a.element, [&]<class T>(std::type_identity<T>) {
    FilledColumns<T> columns(a, where);
    if constexpr (std::is_void_v<decltype(f(columns.view()))>) {
      f(columns.view());
      columns.write_back();
    } else {
      auto result = f(columns.view());
      columns.write_back();
      return result;
    }
  });
}

/// The same of an array that is read.
template <class F>
auto with_columns(ConstArrayRef a, const char* where, F&& f) {
  check_array(a, where);
  return dispatch_blas(a.element, [&]<class T>(std::type_identity<T>) {
    const ReadColumns<T> columns(a, where);
    return f(columns.view());
  });
}

/// Calls f(b, x) with B widened to W and X, which is in W.
template <class W, class F>
auto with_wide(ConstArrayRef b, ArrayRef x, F&& f) {
  const ReadColumns<W> right(b, "solve");
  FilledColumns<W> out(x, "solve");
  auto result = f(right.view(), out.view());
  out.write_back();
  return result;
}
/// W is complex128 where X is complex, else fp64.
template <class F>
auto with_wide(ConstArrayRef b, ArrayRef x, F&& f) {
  return is_complex(x.element) ? with_wide<std::complex<double>>(b, x, f)
                               : with_wide<double>(b, x, f);
}

/// Calls f(a, b, x) for a system A·X = B: A in its element, B in fp64 or complex128, X in its own,
/// real or complex as A is. The three extents are not compared.
template <class F>
auto with_system(ConstArrayRef a, ConstArrayRef b, ArrayRef x, F&& f) {
  check_array(x, "solve");
  check_array(b, "solve");
  return with_columns(a, "solve", [&]<class A>(MatrixView<const A> of) {
    require(is_complex(x.element) == is_complex_v<A>, ErrorKind::misuse, "solve",
            "a matrix of {} does not have solutions of {}", to_string(a.element),
            to_string(x.element));
    const ReadColumns<WideOf<A>> right(b, "solve");
    const auto run = [&]<class T>(std::type_identity<T>) {
      FilledColumns<T> out(x, "solve");
      auto result = f(of, right.view(), out.view());
      out.write_back();
      return result;
    };
    return element_of_parts(x.element) == Element::fp64 ? run(std::type_identity<WideOf<A>>{})
                                                        : run(std::type_identity<NarrowOf<A>>{});
  });
}

}  // namespace strata
