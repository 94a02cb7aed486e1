#include "lib/schedule/replay.h"

namespace ckplan {

Replay::Replay(const StepTable& table) : table_(table) {}

// Follows only the versions: where each is read last, and where it dies.
std::optional<ReplayFault> Replay::Read(std::span<const int32_t> steps, FreePolicy frees) {
  steps_ = steps;
  versions_.clear();
  newest_.assign(table_.bytes.size(), kNone);
  for (size_t k = 0; k < steps.size(); ++k) {
    if (auto fault = ReadStep(static_cast<int32_t>(k), frees)) return fault;
  }
  for (size_t value = 0; value < newest_.size(); ++value) {
    if (newest_[value] == kNone) continue;
    const auto number = static_cast<int32_t>(value);
    if (frees == FreePolicy::kExplicit) {
      return ReplayFault{ReplayFault::Kind::kNeverFreed, steps.size(), number};
    }
    if (table_.is_result[value]) NewestOf(number).dies_at = static_cast<int32_t>(steps.size());
  }
  return std::nullopt;
}

std::optional<ReplayFault> Replay::ReadStep(int32_t step, FreePolicy frees) {
  using Kind = ReplayFault::Kind;
  const auto k = static_cast<size_t>(step);
  const int32_t kind = steps_[k];
  if (kind < 0) {
    int32_t& newest = newest_[static_cast<size_t>(FreeOf(kind))];
    if (newest == kNone) return ReplayFault{Kind::kAbsentFree, k, FreeOf(kind)};
    versions_[static_cast<size_t>(newest)].dies_at = step;
    newest = kNone;
    return std::nullopt;
  }
  const bool is_explicit = frees == FreePolicy::kExplicit;
  for (const int32_t read : table_.reads[kind]) {
    if (newest_[static_cast<size_t>(read)] == kNone) {
      return ReplayFault{Kind::kAbsentRead, k, read};
    }
    Version& version = NewestOf(read);
    version.last_read = step;
    if (!is_explicit) version.dies_at = step;
  }
  for (const int32_t write : table_.writes[kind]) {
    int32_t& newest = newest_[static_cast<size_t>(write)];
    if (is_explicit && newest != kNone) return ReplayFault{Kind::kStillThere, k, write};
    newest = static_cast<int32_t>(versions_.size());
    versions_.push_back({is_explicit ? kNone : step, step, kNone});
  }
  return std::nullopt;
}

// Returns whether the value's version dies at this step and is alone in its memory. A write that
// has taken over the memory would be a second version in it.
bool Replay::CanBeTaken(int32_t value, int32_t step) {
  const Version& version = NewestOf(value);
  return version.dies_at == step && buffers_[static_cast<size_t>(version.buffer)].living == 1;
}

Replay::Takers Replay::TakersOf(int32_t kind, int32_t step) {
  const Takers pairs = table_.in_place[kind];
  if (!table_.has_one_taker) return pairs;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (CanBeTaken(pairs[i + 1], step)) return pairs.subspan(i, 2);
  }
  return {};
}

// Returns the buffer that the write takes over, or kNone. It advances past the pairs of the write,
// which come next in `takers` if there are any.
int32_t Replay::TakenBy(int32_t write, int32_t step, Takers* takers) {
  int32_t buffer = kNone;
  for (; !takers->empty() && takers->front() == write; *takers = takers->subspan(2)) {
    if (buffer != kNone || !CanBeTaken((*takers)[1], step)) continue;
    buffer = NewestOf((*takers)[1]).buffer;
  }
  return buffer;
}

}  // namespace ckplan
