#include "lib/problem/schedule/replay.h"

namespace ckplan {

Replay::Replay(const StepTable& table) : table_(table) {}

// Finds only the versions, with the steps where each is last read and where it dies.
std::optional<ReplayFault> Replay::Read(std::span<const int32_t> steps, FreePolicy frees) {
  steps_ = steps;
  versions_.clear();
  newest_.assign(table_.bytes.size(), kNone);
  if (table_.has_transfers()) {
    places_.assign(table_.bytes.size(), {});
    loads_.clear();
    revivals_.clear();
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    const auto step = static_cast<int32_t>(k);
    auto fault = steps[k] >= table_.first_transfer ? ReadTransfer(step) : ReadStep(step, frees);
    if (fault) return fault;
  }
  if (auto fault = FaultAtEnd()) return fault;
  for (size_t value = 0; value < newest_.size(); ++value) {
    if (newest_[value] == kNone) continue;
    const auto number = static_cast<int32_t>(value);
    if (frees == FreePolicy::kExplicit) {
      return ReplayFault{ReplayFault::Kind::kNeverFreed, steps.size(), number};
    }
    if (table_.is_result[value])
      NewestVersionOf(number).dies_at = static_cast<int32_t>(steps.size());
  }
  return std::nullopt;
}

std::optional<ReplayFault> Replay::ReadStep(int32_t step, FreePolicy frees) {
  using Kind = ReplayFault::Kind;
  const auto k = static_cast<size_t>(step);
  const int32_t kind = steps_[k];
  if (kind < 0) {
    if (IsOfGradient(kind)) return std::nullopt;
    int32_t& newest = newest_[static_cast<size_t>(FreeOf(kind))];
    if (newest == kNone) return ReplayFault{Kind::kFreesAbsent, k, FreeOf(kind)};
    versions_[static_cast<size_t>(newest)].dies_at = step;
    newest = kNone;
    return std::nullopt;
  }
  const bool is_explicit = frees == FreePolicy::kExplicit;
  for (const int32_t read : table_.reads[kind]) {
    if (newest_[static_cast<size_t>(read)] == kNone) {
      return ReplayFault{Kind::kReadsAbsent, k, read};
    }
    Version& version = NewestVersionOf(read);
    version.last_read = step;
    if (!is_explicit) version.dies_at = step;
  }
  for (const int32_t write : table_.writes[kind]) {
    int32_t& newest = newest_[static_cast<size_t>(write)];
    if (is_explicit && newest != kNone) return ReplayFault{Kind::kNotFreed, k, write};
    newest = static_cast<int32_t>(versions_.size());
    versions_.push_back({is_explicit ? kNone : step, step, kNone});
  }
  return places_.empty() ? std::nullopt : PlaceRun(step);
}

// Updates the places of the values of a run, for later transfers.
std::optional<ReplayFault> Replay::PlaceRun(int32_t step) {
  const int32_t kind = steps_[static_cast<size_t>(step)];
  for (const int32_t read : table_.reads[kind]) {
    const int32_t load = PlaceOf(read).load;
    if (load != kNone) loads_[static_cast<size_t>(load)].is_read = true;
  }
  for (const int32_t write : table_.writes[kind]) {
    Place& place = PlaceOf(write);
    if (place.is_copied) {
      return ReplayFault{ReplayFault::Kind::kCopyUnderWay, static_cast<size_t>(step), write};
    }
    const int32_t base = table_.alias_of[static_cast<size_t>(write)];
    place.block = base == kNone ? newest_[static_cast<size_t>(write)] : PlaceOf(base).block;
    place.load = kNone;
    place.is_away = false;
  }
  return std::nullopt;
}

std::optional<ReplayFault> Replay::ReadTransfer(int32_t step) {
  using Kind = ReplayFault::Kind;
  const auto k = static_cast<size_t>(step);
  const StepKind kind = table_.TransferOf(steps_[k]);
  const int32_t value = table_.MovedBy(steps_[k]);
  Place& place = PlaceOf(value);
  if (kind == StepKind::kDrop ? !place.is_copied : place.is_copied) {
    return ReplayFault{kind == StepKind::kDrop ? Kind::kNoCopy : Kind::kCopyUnderWay, k, value};
  }
  if (kind == StepKind::kIn) {
    if (!place.is_on_host) return ReplayFault{Kind::kNotOnHost, k, value};
    BringBack(value, step);
    return std::nullopt;
  }
  if (newest_[static_cast<size_t>(value)] == kNone)
    return ReplayFault{Kind::kReadsAbsent, k, value};
  Version& version = NewestVersionOf(value);
  version.last_read = version.dies_at = step;
  place.is_copied = kind == StepKind::kOut;
  if (kind == StepKind::kDrop) DropVersion(value);
  return std::nullopt;
}

void Replay::MakeVersion(int32_t value, int32_t step) {
  newest_[static_cast<size_t>(value)] = static_cast<int32_t>(versions_.size());
  versions_.push_back({step, step, kNone});
}

// Drops the value's version, and with it all aliases that share its memory.
void Replay::DropVersion(int32_t value) {
  const int32_t block = newest_[static_cast<size_t>(value)];
  PlaceOf(value).is_on_host = true;
  const auto drop = [&](int32_t gone) {
    newest_[static_cast<size_t>(gone)] = kNone;
    PlaceOf(gone).is_away = true;
  };
  drop(value);
  for (const int32_t alias : table_.aliases[value]) {
    const bool is_there = newest_[static_cast<size_t>(alias)] != kNone;
    if (is_there && PlaceOf(alias).block == block) drop(alias);
  }
}

// Creates versions of the value, and of each alias that is away, in the same memory.
void Replay::BringBack(int32_t value, int32_t step) {
  const auto load = static_cast<int32_t>(loads_.size());
  loads_.push_back({step, value, false});
  const size_t first_revival = revivals_.size();
  for (const int32_t alias : table_.aliases[value]) {
    if (PlaceOf(alias).is_away) revivals_.push_back({step, alias});
  }
  // The value's own version comes last and identifies the memory.
  const auto block = static_cast<int32_t>(versions_.size() + revivals_.size() - first_revival);
  const auto bring = [&](int32_t back) {
    MakeVersion(back, step);
    Place& place = PlaceOf(back);
    place.block = block;
    place.load = load;
    place.is_away = false;
  };
  for (size_t i = first_revival; i < revivals_.size(); ++i) bring(revivals_[i].alias);
  bring(value);
}

// Returns the fault of transfers that are incomplete after the last step.
std::optional<ReplayFault> Replay::FaultAtEnd() const {
  using Kind = ReplayFault::Kind;
  for (size_t value = 0; value < places_.size(); ++value) {
    if (!places_[value].is_copied) continue;
    return ReplayFault{Kind::kNeverDropped, steps_.size(), static_cast<int32_t>(value)};
  }
  for (const Load& load : loads_) {
    if (load.is_read) continue;
    return ReplayFault{Kind::kUnreadLoad, static_cast<size_t>(load.step), load.value};
  }
  return std::nullopt;
}

// Returns true if the value's version dies at this step and is the only one in its memory. A write
// that already reused the memory would be a second version.
bool Replay::CanReuseMemory(int32_t value, int32_t step) {
  const Version& version = NewestVersionOf(value);
  return version.dies_at == step && buffers_[static_cast<size_t>(version.buffer)].living == 1;
}

Replay::InPlacePairs Replay::PairsToTry(int32_t kind, int32_t step) {
  const InPlacePairs pairs = table_.in_place[kind];
  if (!table_.has_one_taker) return pairs;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (CanReuseMemory(pairs[i + 1], step)) return pairs.subspan(i, 2);
  }
  return {};
}

// Returns the buffer that the write reuses, or kNone. Removes the write's pairs from the front of
// `pairs_left`.
int32_t Replay::FindReusedBuffer(int32_t write, int32_t step, InPlacePairs* pairs_left) {
  int32_t buffer = kNone;
  for (; !pairs_left->empty() && pairs_left->front() == write;
       *pairs_left = pairs_left->subspan(2)) {
    if (buffer != kNone || !CanReuseMemory((*pairs_left)[1], step)) continue;
    buffer = NewestVersionOf((*pairs_left)[1]).buffer;
  }
  return buffer;
}

}  // namespace ckplan
