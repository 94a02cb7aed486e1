#include "lib/planning/algorithms/best/peak_tree.h"

#include <bit>

namespace ckplan {

void PeakTree::Build(std::span<const int64_t> changes) {
  leaf_count_ = std::bit_ceil(changes.size() + 1);
  sums_.assign(2 * leaf_count_, 0);
  maxima_.assign(2 * leaf_count_, 0);
  for (size_t i = 0; i < changes.size(); ++i) SetNode(leaf_count_ + i, {changes[i], changes[i]});
  for (size_t parent = leaf_count_ - 1; parent > 0; --parent) SetNode(parent, Join(parent));
  pending_.clear();
  overwritten_.clear();
}

// Most moves have about ten changes, for which insertion sort is fastest; a few have thousands.
void PeakTree::SortPending() {
  constexpr size_t kFew = 24;
  if (pending_.size() > kFew) {
    std::sort(pending_.begin(), pending_.end());
    return;
  }
  for (size_t i = 1; i < pending_.size(); ++i) {
    const std::pair<int32_t, int64_t> moved = pending_[i];
    size_t to = i;
    for (; to > 0 && pending_[to - 1].first > moved.first; --to) pending_[to] = pending_[to - 1];
    pending_[to] = moved;
  }
}

void PeakTree::ApplyToLeaves() {
  changed_.clear();
  for (size_t i = 0; i < pending_.size();) {
    const int32_t slot = pending_[i].first;
    int64_t change = 0;
    for (; i < pending_.size() && pending_[i].first == slot; ++i) change += pending_[i].second;
    if (change == 0) continue;
    const size_t leaf = leaf_count_ + static_cast<size_t>(slot);
    overwritten_.emplace_back(leaf, NodeAt(leaf));
    SetNode(leaf, {sums_[leaf] + change, sums_[leaf] + change});
    changed_.push_back(leaf);
  }
  pending_.clear();
}

void PeakTree::Apply() {
  applied_ += static_cast<int64_t>(pending_.size());
  SortPending();
  ApplyToLeaves();
  while (!changed_.empty() && changed_.front() > 1) {
    size_t kept = 0;
    size_t last = 0;
    for (const size_t node : changed_) {
      const size_t parent = node / 2;
      if (parent == last) continue;
      last = parent;
      const Node joined = Join(parent);
      const Node before = NodeAt(parent);
      if (joined == before) continue;
      overwritten_.emplace_back(parent, before);
      SetNode(parent, joined);
      changed_[kept++] = parent;
    }
    changed_.resize(kept);
  }
}

void PeakTree::Revert() {
  for (size_t i = overwritten_.size(); i-- > 0;) {
    SetNode(overwritten_[i].first, overwritten_[i].second);
  }
  overwritten_.clear();
}

int32_t PeakTree::ArgMax() const {
  size_t node = 1;
  while (node < leaf_count_) {
    const size_t left = 2 * node;
    node = maxima_[left] == MaxOfBoth(left) ? left : left + 1;
  }
  return static_cast<int32_t>(node - leaf_count_);
}

}  // namespace ckplan
