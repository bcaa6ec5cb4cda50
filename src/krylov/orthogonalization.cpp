// The methods by which vectors of a Krylov method are made orthonormal, and what goes with what.
//
// Householder's reflections (tsqr) and sketches are not among them. A block is small beside the
// basis that it is projected against, and its triangle comes from a sum over the rows that devices
// form in any case. A tree of reflections would be another kind of task, with triangles and
// reflections of all slabs to be kept, for an orthogonality that wide sums and a second pass have
// too. A sketch stands in for a Gram matrix that costs too much, which one of 30 columns does not.

#include "krylov/orthogonalization.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::array kKrylovMethods{
    KrylovMethod{QrMethod::automatic, true, true, true},
    KrylovMethod{.method = QrMethod::cholqr, .of_blocks = true, .by_gram = true},
    KrylovMethod{.method = QrMethod::cholqr2, .of_blocks = true, .by_gram = true, .passes = 2},
    KrylovMethod{.method = QrMethod::cholqr_wide, .of_blocks = true, .by_gram = true, .wide = true},
    KrylovMethod{.method = QrMethod::cholqr_wide2,
                 .of_blocks = true,
                 .by_gram = true,
                 .wide = true,
                 .passes = 2},
    KrylovMethod{
        .method = QrMethod::svqr, .of_blocks = true, .by_gram = true, .by_eigenvalues = true},
    KrylovMethod{.method = QrMethod::svqr_wide,
                 .of_blocks = true,
                 .by_gram = true,
                 .wide = true,
                 .by_eigenvalues = true},
    KrylovMethod{QrMethod::cgs, true, true},
    KrylovMethod{QrMethod::cgs2, true, true},
    KrylovMethod{QrMethod::mgs, true, true}};

struct NamedBlock {
  BlockOrthogonalization block;
  std::string_view name;
};
constexpr std::array kBlocks{NamedBlock{BlockOrthogonalization::classical, "classical"},
                             NamedBlock{BlockOrthogonalization::pythagorean, "pythagorean"},
                             NamedBlock{BlockOrthogonalization::two_stage, "two-stage"}};

}  // namespace

const KrylovMethod* krylov_method(QrMethod method) noexcept {
  for (const KrylovMethod& one : kKrylovMethods) {
    if (one.method == method) return &one;
  }
  return nullptr;
}

std::string krylov_method_names(BlockOrthogonalization block, std::int64_t s) {
  std::vector<std::string_view> names;
  for (const KrylovMethod& one : kKrylovMethods) {
    if (s == 1 ? one.of_vectors : goes_with(block, one.method))
      names.push_back(to_string(one.method));
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

void require_krylov_method(QrMethod method, std::int64_t s, const char* where) {
  const KrylovMethod* known = krylov_method(method);
  require(known != nullptr && (s == 1 ? known->of_vectors : known->of_blocks), ErrorKind::misuse,
          where, "{} does not orthogonalize blocks of {}: {} do", to_string(method), s,
          krylov_method_names(BlockOrthogonalization::classical, s));
}

bool goes_with(BlockOrthogonalization block, QrMethod method) noexcept {
  const KrylovMethod* known = krylov_method(method);
  if (known == nullptr || !known->of_blocks) return false;
  switch (block) {
    case BlockOrthogonalization::classical: return true;
    case BlockOrthogonalization::pythagorean: return known->by_gram;
    case BlockOrthogonalization::two_stage: break;
  }
  return known->by_gram && known->passes == 1;
}

std::string_view to_string(BlockOrthogonalization block) noexcept {
  for (const NamedBlock& named : kBlocks) {
    if (named.block == block) return named.name;
  }
  return "?";
}

BlockOrthogonalization parse_block_orthogonalization(const std::string& name) {
  std::string names;
  for (const NamedBlock& named : kBlocks) {
    if (named.name == name) return named.block;
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  fail(ErrorKind::misuse, "krylov", "there is no block orthogonalization '{}': {}", name, names);
}

}  // namespace strata
