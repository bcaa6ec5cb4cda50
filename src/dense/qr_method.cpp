// The names of the methods.

#include <array>

#include "base/check.hpp"
#include "strata/error.hpp"
#include "strata/qr_method.hpp"

namespace strata {
namespace {

struct MethodName {
  QrMethod method;
  std::string_view name;
};
constexpr std::array kMethodNames{MethodName{QrMethod::automatic, "auto"},
                                  MethodName{QrMethod::cholqr, "cholqr"},
                                  MethodName{QrMethod::cholqr2, "cholqr2"},
                                  MethodName{QrMethod::shifted_cholqr3, "shifted-cholqr3"},
                                  MethodName{QrMethod::svqr, "svqr"},
                                  MethodName{QrMethod::cholqr_wide, "cholqr-wide"},
                                  MethodName{QrMethod::cholqr_wide_solve, "cholqr-wide-solve"},
                                  MethodName{QrMethod::cholqr_wide2, "cholqr-wide2"},
                                  MethodName{QrMethod::svqr_wide, "svqr-wide"},
                                  MethodName{QrMethod::cgs, "cgs"},
                                  MethodName{QrMethod::cgs2, "cgs2"},
                                  MethodName{QrMethod::mgs, "mgs"},
                                  MethodName{QrMethod::tsqr, "tsqr"},
                                  MethodName{QrMethod::tsqr_flat, "tsqr-flat"},
                                  MethodName{QrMethod::rand_cholqr, "rand-cholqr"},
                                  MethodName{QrMethod::multi_sketch, "multi-sketch"},
                                  MethodName{QrMethod::mrcqr, "mrcqr"},
                                  MethodName{QrMethod::mrcqr_fp64, "mrcqr-fp64"},
                                  MethodName{QrMethod::mrcqr_fp16, "mrcqr-fp16"}};

}  // namespace

std::string_view to_string(QrMethod method) noexcept {
  for (const MethodName& named : kMethodNames) {
    if (named.method == method) return named.name;
  }
  return "?";
}

const std::vector<QrMethod>& qr_methods() {
  static const std::vector<QrMethod> methods = [] {
    std::vector<QrMethod> all;
    for (const MethodName& named : kMethodNames) all.push_back(named.method);
    return all;
  }();
  return methods;
}

QrMethod parse_qr_method(const std::string& name) {
  std::string names;
  for (const MethodName& named : kMethodNames) {
    if (named.name == name) return named.method;
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  fail(ErrorKind::misuse, "qr", "there is no method '{}': {}", name, names);
}

}  // namespace strata
