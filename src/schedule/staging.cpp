// StagingClock: see staging.hpp.
//
// The model leaves out what matters less. Issuing itself takes no time. Filling and emptying do not
// slow each other down, nor do devices those beside them. A part is a buffer of bytes, not of whole
// columns. A block across the end of what is page-locked is staged as a whole. Page-locking delays
// no copy. Blocks that come from a source are as fast as those of memory. That small blocks have
// buffers of their own is left out; so is that parts are filled before their turn, which only makes
// good for the time that issuing takes.

#include "schedule/staging.hpp"

#include <algorithm>
#include <cmath>

#include "schedule/machine_model.hpp"

namespace strata {
namespace {

/// States of a block.
constexpr std::uint8_t kWritten = 1;  // a store of it was issued: it has no need of its source
constexpr std::uint8_t kComing = 2;   // bounce buffers carry it home

}  // namespace

StagingClock::Pinning StagingClock::pinning_of(const Plan& plan, int family) {
  const std::vector<FamilyHome>& homes = plan.options().homes.families;
  const FamilyHome home =
      family < std::ssize(homes) ? homes[static_cast<std::size_t>(family)] : FamilyHome{};
  const std::int64_t bytes = plan.schedule().blocks.total_bytes(family);
  const double rate = plan.machine().pinning_bytes_per_second;
  HostPinning when = home.pinning;
  if (when == HostPinning::automatic)
    when = bytes <= kPinningPieceBytes ? HostPinning::ahead : HostPinning::background;
  Pinning pinning{.from_source = home.from_source, .begun_bytes = home.pinned_bytes};
  if (when == HostPinning::ahead || (when == HostPinning::background && rate <= 0)) {
    pinning.begun_bytes = bytes;
  } else if (when == HostPinning::background) {
    pinning.piece_seconds = static_cast<double>(kPinningPieceBytes) / rate;
    pinning.all_seconds = static_cast<double>(bytes - home.pinned_bytes) / rate;
  }
  return pinning;
}

bool StagingClock::stages(const Pinning& pinning, std::int64_t bytes) {
  return bytes > 0 && (pinning.from_source || pinning.begun_bytes < bytes);
}

bool StagingClock::is_needed(const Plan& plan) {
  const std::vector<DeviceModel>& devices = plan.machine().devices;
  if (std::none_of(devices.begin(), devices.end(),
                   [](const DeviceModel& device) { return device.staging.bytes_per_second > 0; })) {
    return false;
  }
  const BlockTable& blocks = plan.schedule().blocks;
  for (int f = 0; f < blocks.families(); ++f) {
    if (stages(pinning_of(plan, f), blocks.total_bytes(f))) return true;
  }
  return false;
}

StagingClock::StagingClock(const Plan& plan)
    : blocks_(plan.schedule().blocks),
      layout_(plan.layout()),
      begun_(layout_.queues.size(), 0),
      issued_(layout_.queues.size(), 0),
      copies_(layout_.queues.size()),
      state_(static_cast<std::size_t>(blocks_.count()), 0) {
  for (std::size_t d = 0; d < layout_.devices.size(); ++d) {
    Issuer& issuer = issuers_.emplace_back();
    if (static_cast<int>(d) == layout_.host) continue;
    const DeviceModel& model = plan.machine().devices[d];
    issuer.stages = model.staging.bytes_per_second > 0;
    issuer.rate = model.staging;
    issuer.part_bytes = std::max<std::int64_t>(model.bounce_buffer_bytes, 1);
    issuer.free_in = issuer.free_out = std::max(model.bounce_buffers, 1);
  }
  for (int f = 0; f < blocks_.families(); ++f) pinning_.push_back(pinning_of(plan, f));
}

double StagingClock::next() const {
  double next = kForever;
  for (const Issuer& issuer : issuers_)
    next = std::min({next, issuer.filled_at, issuer.emptied_at});
  return next;
}

void StagingClock::advance(double now) {
  bool others = false;  // may wait for what has happened
  for (std::size_t d = 0; d < issuers_.size(); ++d) {
    Issuer& issuer = issuers_[d];
    const bool filled = issuer.filled_at <= now;
    const bool emptied = issuer.emptied_at <= now;
    if (filled) others = part_filled(issuer) || others;
    if (emptied) others = part_emptied(issuer, now) || others;
    if (filled || emptied) others = issue_of(d, now) || others;
  }
  if (others) issue(now);
}

void StagingClock::issue(double now) {
  // What one thread issues may be what another waits for.
  for (bool more = true; more;) {
    more = false;
    for (std::size_t d = 0; d < issuers_.size(); ++d) more = issue_of(d, now) || more;
    more = more && issuers_.size() > 1;
  }
}

/// Issues steps of a device until the thread is busy or held up. Whether there were any.
bool StagingClock::issue_of(std::size_t device, double now) {
  Issuer& issuer = issuers_[device];
  bool any = false;
  while (issuer.filled_at == kForever && !issuer.steps.empty()) {
    const Item item = issuer.steps.front();
    const Step& step = *item.step;
    if (!issuer.amid) {
      if (is_held_up(item)) return any;
      const bool staged = is_staged_at(issuer, item, now);
      if (step.kind == StepKind::store) {
        std::uint8_t& state =
            state_[static_cast<std::size_t>(blocks_.index(item.window->block_of(step)))];
        state |= staged ? kWritten | kComing : kWritten;
      }
      if (!staged) {
        may_begin_now(step);
        issued(issuer, step);
        any = true;
        continue;
      }
      copies_[step.queue].push_back(
          {.sequence = step.sequence, .bytes = step.bytes, .load = step.kind == StepKind::load});
      issuer.amid = true;
    }
    if (!issue_parts(issuer, now)) return any;
    any = true;
  }
  return any;
}

/// A step waits for one that another thread has not issued, or for a block that is not home yet.
bool StagingClock::is_held_up(const Item& item) const {
  for (const Wait& wait : item.window->waits_of(*item.step)) {
    if (issued_[wait.queue] < wait.sequence) return true;
  }
  if (item.step->kind != StepKind::load && item.step->kind != StepKind::store) return false;
  const auto block = static_cast<std::size_t>(blocks_.index(item.window->block_of(*item.step)));
  return (state_[block] & kComing) != 0;
}

bool StagingClock::is_staged_at(const Issuer& issuer, const Item& item, double now) const {
  const Step& step = *item.step;
  const bool load = step.kind == StepKind::load;
  if (!issuer.stages || step.bytes == 0 || (!load && step.kind != StepKind::store)) return false;
  if (step.operand_count > 1) return false;  // between two places, both of which it reaches
  const BlockId id = item.window->block_of(step);
  const Pinning& pinning = pinning_[static_cast<std::size_t>(id.family())];
  if (load && pinning.from_source &&
      (state_[static_cast<std::size_t>(blocks_.index(id))] & kWritten) == 0) {
    return true;
  }
  if (pinning.begun_bytes >= blocks_.total_bytes(id.family())) return false;
  if (pinning.piece_seconds > 0 && now >= pinning.all_seconds) return false;
  std::int64_t pinned = pinning.begun_bytes;
  if (pinning.piece_seconds > 0)
    pinned += static_cast<std::int64_t>(now / pinning.piece_seconds) * kPinningPieceBytes;
  return blocks_.byte_offset(id) + step.bytes > pinned;
}

/// Issues parts of the staged copy that the first step is. False: a buffer is being filled, or
/// there is none.
bool StagingClock::issue_parts(Issuer& issuer, double now) {
  const Item item = issuer.steps.front();
  const Step& step = *item.step;
  Copy& copy = copies_[step.queue].back();
  if (copy.load) {
    if (issuer.free_in == 0) return false;
    --issuer.free_in;
    issuer.filled_at = now + transfer_seconds(issuer.rate, bytes_of_part(issuer, copy, copy.ready));
    return false;
  }
  const std::int64_t parts = parts_of(issuer, copy);
  for (; copy.ready < parts && issuer.free_out > 0; --issuer.free_out) {
    issuer.parcels.push_back({.queue = step.queue,
                              .bytes = bytes_of_part(issuer, copy, copy.ready),
                              .block = blocks_.index(item.window->block_of(step)),
                              .last = copy.ready == parts - 1});
    ++copy.ready;
    may_begin_now(step);
  }
  if (copy.ready < parts) return false;
  issued(issuer, step);
  return true;
}

/// Whether the copy is issued with that.
bool StagingClock::part_filled(Issuer& issuer) {
  const Step& step = *issuer.steps.front().step;
  Copy& copy = copies_[step.queue].back();
  issuer.filled_at = kForever;
  ++copy.ready;
  may_begin_now(step);
  const bool last = copy.ready == parts_of(issuer, copy);
  if (last) issued(issuer, step);
  return last;
}

void StagingClock::may_begin_now(const Step& step) {
  begun_[step.queue] = step.sequence;
  touched_.push_back(step.queue);
}

void StagingClock::issued(Issuer& issuer, const Step& step) {
  issued_[step.queue] = step.sequence;
  issuer.amid = false;
  issuer.steps.pop_front();
}

std::int64_t StagingClock::part_bytes(int queue) const {
  const Copy& copy = copies_[static_cast<std::size_t>(queue)].front();
  if (copy.copied == copy.ready) return 0;
  const std::uint16_t device = layout_.queues[static_cast<std::size_t>(queue)].device;
  return bytes_of_part(issuers_[device], copy, copy.copied);
}

bool StagingClock::part_copied(int queue, double now) {
  std::deque<Copy>& copies = copies_[static_cast<std::size_t>(queue)];
  const std::uint16_t device = layout_.queues[static_cast<std::size_t>(queue)].device;
  Issuer& issuer = issuers_[device];
  Copy& copy = copies.front();
  const bool last = ++copy.copied == parts_of(issuer, copy);
  const bool load = copy.load;
  if (load) {
    ++issuer.free_in;
  } else {
    std::find_if(issuer.parcels.begin(), issuer.parcels.end(), [&](const Parcel& parcel) {
      return parcel.queue == queue && !parcel.copied;
    })->copied = true;
    begin_emptying(issuer, now);
  }
  if (last) copies.pop_front();
  if (load && issue_of(device, now)) issue(now);
  return last;
}

void StagingClock::begin_emptying(Issuer& issuer, double now) {
  if (issuer.emptied_at < kForever || issuer.parcels.empty() || !issuer.parcels.front().copied)
    return;
  issuer.emptied_at = now + transfer_seconds(issuer.rate, issuer.parcels.front().bytes);
}

/// Whether a block is home with that.
bool StagingClock::part_emptied(Issuer& issuer, double now) {
  const Parcel parcel = issuer.parcels.front();
  issuer.parcels.pop_front();
  issuer.emptied_at = kForever;
  ++issuer.free_out;
  if (parcel.last)
    state_[static_cast<std::size_t>(parcel.block)] &= static_cast<std::uint8_t>(~kComing);
  begin_emptying(issuer, now);
  return parcel.last;
}

}  // namespace strata
