#include "qr/compiled_passes.hpp"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

/// A call of the automatic method has up to six passes.
constexpr std::size_t kPassesMost = 24;
/// Views of blocks in all of them, which bounds their memory by some 50 MB; one pass has at most
/// half: larger ones take long beside their planning.
constexpr std::size_t kViewsMost = std::size_t{1} << 19;

std::size_t views_of(const CompiledPass& pass) {
  std::size_t views = 0;
  for (const Program::Entry& entry : pass.program->entries()) views += entry.views;
  return views;
}

bool alike(const CompiledPass& a, const CompiledPass& b) {
  return a.before == b.before && a.where == b.where && a.problem == b.problem;
}

}  // namespace

CompiledPasses& CompiledPasses::all() {
  static CompiledPasses passes;
  return passes;
}

std::shared_ptr<const CompiledPass> CompiledPasses::find(const CompiledPass& like) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(passes_.begin(), passes_.end(),
                                  [&](const auto& pass) { return alike(*pass, like); });
  if (found == passes_.end()) return nullptr;
  passes_.splice(passes_.begin(), passes_, found);
  return passes_.front();
}

void CompiledPasses::keep(std::shared_ptr<const CompiledPass> pass) {
  if (views_of(*pass) > kViewsMost / 2) return;
  const std::lock_guard lock(mutex_);
  passes_.remove_if([&](const auto& other) { return alike(*other, *pass); });
  passes_.push_front(std::move(pass));
  std::size_t views = 0;
  std::size_t count = 0;
  for (const auto& kept : passes_) {
    views += views_of(*kept);
    if (views > kViewsMost || count == kPassesMost) break;
    ++count;
  }
  passes_.resize(count);
}

}  // namespace strata
