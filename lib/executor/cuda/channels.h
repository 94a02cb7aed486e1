// Tensors of samples, channels and positions, and computations on each channel separately.
#pragma once

#include <algorithm>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

struct Channels {
  int64_t samples = 1, channels = 1, positions = 1;

  static Channels Of(const ChannelView& view) {
    return {view.samples, view.channels, view.positions};
  }
  CKPLAN_DEVICE int64_t channel_size() const { return samples * positions; }
  CKPLAN_DEVICE int64_t count() const { return samples * channels * positions; }
};

// Divides a one-position tensor, a table of rows of channels, into blocks of kWide channels by
// kRows rows. A thread reads its channels' shared values once per block.
struct ChannelBlocks {
  static constexpr int64_t kRows = 8;

  int64_t rows = 0;
  Divider groups;  // Groups of kWide channels.

  // True if blocks cover the tensor.
  static bool Cover(const Channels& shape) {
    return shape.positions == 1 && shape.channels % kWide == 0 && shape.count() > 0;
  }
  ChannelBlocks() = default;
  explicit ChannelBlocks(const Channels& shape)
      : rows(shape.samples), groups(shape.channels / kWide) {}

  CKPLAN_DEVICE int64_t count() const { return CeilDiv(rows, kRows) * groups.divisor(); }
  struct Block {
    int64_t group, first, end;  // The block's rows are [first, end).
    CKPLAN_DEVICE int64_t channel() const { return group * kWide; }
  };
  CKPLAN_DEVICE Block Find(int64_t index) const {
    const int64_t first = groups.Split(index) * kRows;
    return {index, first, Min(rows, first + kRows)};
  }
  // Returns which kWide elements of the tensor are in this row of the block.
  CKPLAN_DEVICE int64_t At(const Block& block, int64_t row) const {
    return row * groups.divisor() + block.group;
  }
};

namespace detail {

template <typename F>
struct ChannelBlockMap {
  ChannelBlocks blocks;
  F f;
  FloatsIn a, b;
  FloatsOut y;

  CKPLAN_DEVICE void operator()(int64_t index) const {
    const auto block = blocks.Find(index);
    typename F::Line lines[kWide];
    CKPLAN_UNROLL
    for (int k = 0; k < kWide; ++k) lines[k] = f.LineOf(block.channel() + k);
    for (int64_t row = block.first; row < block.end; ++row) {
      const int64_t at = blocks.At(block, row);
      Float8 p = a.LoadWide(at);
      Float8 q{};
      if (!b.is_null()) q = b.LoadWide(at);
      CKPLAN_UNROLL
      for (int k = 0; k < kWide; ++k) p.at[k] = lines[k](p.at[k], q.at[k]);
      y.StoreWide(at, p);
    }
  }
};

template <typename F>
struct ChannelMap {
  int64_t count;
  Divider positions, channels;
  F f;
  FloatsIn a, b;
  FloatsOut y;

  CKPLAN_DEVICE void operator()(int64_t group) const {
    const int64_t first = group * kWide;
    if (first + kWide > count) return Tail(first);
    Float8 p = a.LoadWide(group);
    Float8 q{};
    if (!b.is_null()) q = b.LoadWide(group);
    int64_t place = first;
    int64_t channel = positions.Split(place);
    channels.Split(channel);
    auto line = f.LineOf(channel);
    CKPLAN_UNROLL
    for (int k = 0; k < kWide; ++k) {
      if (place == positions.divisor()) {
        place = 0;
        channel = channel + 1 == channels.divisor() ? 0 : channel + 1;
        line = f.LineOf(channel);
      }
      p.at[k] = line(p.at[k], q.at[k]);
      ++place;
    }
    y.StoreWide(group, p);
  }

  // Handles the last elements, fewer than kWide.
  CKPLAN_DEVICE void Tail(int64_t first) const {
    for (int64_t i = first; i < count; ++i) {
      int64_t channel = positions.Quotient(i);
      channels.Split(channel);
      y.Set(i, f.LineOf(channel)(a[i], b.is_null() ? 0.0F : b[i]));
    }
  }
};

}  // namespace detail

// Computes y = line(a, b) for each element, where line = f.LineOf(channel) is an F::Line. b may be
// null.
template <typename F>
void MapChannels(Device& device, const Channels& shape, FloatsOut y, const F& f, FloatsIn a,
                 FloatsIn b = {}) {
  if (shape.count() == 0) return;
  if (ChannelBlocks::Cover(shape)) {
    const ChannelBlocks blocks(shape);
    ForEach(device, blocks.count(), detail::ChannelBlockMap<F>{blocks, f, a, b, y});
    return;
  }
  const detail::ChannelMap<F> map{
      shape.count(), Divider(shape.positions), Divider(shape.channels), f, a, b, y};
  ForEach(device, CeilDiv(shape.count(), kWide), map);
}

namespace detail {

// How many elements of a channel one step of a ChannelReduction combines.
enum class ChannelSteps : uint8_t {
  kElements,  // One.
  kVectors,   // kVector neighbouring positions.
  kRows,      // kVector neighbouring samples, if there is only one position.
};

// The term of one step of a ChannelReduction. A Term may have a method OfGroup(channel, p, q) that
// combines kVector elements faster than one by one.
template <typename Value, typename Term, typename Combine>
struct ChannelTerms {
  int64_t channels;
  Divider steps;  // Steps per channel of one sample.
  ChannelSteps way;
  Term term;
  Combine combine;
  FloatsIn a, b;

  CKPLAN_DEVICE Float4 LoadRows(const FloatsIn& from, int64_t first) const {
    Float4 values;
    CKPLAN_UNROLL
    for (int k = 0; k < kVector; ++k) values.at[k] = from[first + k * channels];
    return values;
  }

  CKPLAN_DEVICE Value operator()(int64_t channel, int64_t step) const {
    const int64_t sample = steps.Split(step);
    const int64_t at = (sample * channels + channel) * steps.divisor() + step;
    if (way == ChannelSteps::kElements) return term(channel, a[at], b.is_null() ? 0 : b[at]);
    Float4 p{}, q{};
    if (way == ChannelSteps::kVectors) {
      p = a.Load(at);
      if (!b.is_null()) q = b.Load(at);
    } else {
      const int64_t first = sample * kVector * channels + channel;
      p = LoadRows(a, first);
      if (!b.is_null()) q = LoadRows(b, first);
    }
    if constexpr (requires { term.OfGroup(channel, p, q); }) {
      return term.OfGroup(channel, p, q);
    } else {
      Value value = term(channel, p.at[0], q.at[0]);
      for (int k = 1; k < kVector; ++k) value = combine(value, term(channel, p.at[k], q.at[k]));
      return value;
    }
  }
};

}  // namespace detail

// The term of plain sums: the element itself.
struct ElementItself {
  CKPLAN_DEVICE float operator()(int64_t, float x, float) const { return x; }
};

// Channel-wise reductions of one or two tensors. Reads kVector elements at once if the number of
// positions (or of samples, with one position) is a multiple of kVector.
class ChannelReduction {
 public:
  explicit ChannelReduction(const Channels& shape)
      : channels_(shape.channels),
        way_(WayOf(shape)),
        steps_(std::max<int64_t>(
            1, shape.positions / (way_ == detail::ChannelSteps::kVectors ? kVector : 1))),
        shape_(ReduceShape::Of(
            channels_, shape.samples / (way_ == detail::ChannelSteps::kRows ? kVector : 1) * steps_,
            steps_ < kFewSteps)) {}

  template <typename Value>
  int64_t workspace() const {
    return shape_.workspace<Value>();
  }
  // True if several thread blocks share a channel.
  bool is_cut() const { return shape_.parts > 1; }

  // Calls finish(channel, combination of term(channel, a, b) over its elements), like Reduce.
  // `term` is a functor; b may be null.
  template <typename Value, typename Term, typename Combine, typename Finish>
  void Run(Device& device, Value identity, const Term& term, const Combine& combine,
           const Finish& finish, void* workspace, FloatsIn a, FloatsIn b = {}) const {
    const detail::ChannelTerms<Value, Term, Combine> terms{
        channels_, Divider(steps_), way_, term, combine, a, b};
    Reduce(device, shape_, identity, terms, combine, finish, workspace);
  }

 private:
  static constexpr int64_t kFewSteps = 8;  // With fewer steps, threads read across channels.

  static detail::ChannelSteps WayOf(const Channels& shape) {
    if (shape.positions % kVector == 0) return detail::ChannelSteps::kVectors;
    const bool has_rows = shape.positions == 1 && shape.samples % kVector == 0;
    return has_rows ? detail::ChannelSteps::kRows : detail::ChannelSteps::kElements;
  }

  int64_t channels_;
  detail::ChannelSteps way_;
  int64_t steps_;
  ReduceShape shape_;
};

}  // namespace ckplan::cuda
