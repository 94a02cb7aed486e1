// Tensors of samples, channels and positions, and computations that treat each channel separately.
#pragma once

#include <algorithm>

#include "lib/cuda/index.h"
#include "lib/cuda/launch.h"
#include "lib/cuda/reduce.h"
#include "lib/ops/channels.h"

namespace ckplan::cuda {

struct Channels {
  int64_t samples = 1, channels = 1, positions = 1;

  static Channels Of(const ChannelView& view) {
    return {view.samples, view.channels, view.positions};
  }
  CKPLAN_DEVICE int64_t channel_size() const { return samples * positions; }
  CKPLAN_DEVICE int64_t count() const { return samples * channels * positions; }
};

namespace detail {

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

  // The last elements, if they are fewer than kWide.
  CKPLAN_DEVICE void Tail(int64_t first) const {
    for (int64_t i = first; i < count; ++i) {
      int64_t channel = positions.Quotient(i);
      channels.Split(channel);
      y.Set(i, f.LineOf(channel)(a[i], b.is_null() ? 0.0F : b[i]));
    }
  }
};

}  // namespace detail

// Computes y = line(a, b) for each element, where line = f.LineOf(channel); b may be null.
template <typename F>
void MapChannels(Device& device, const Channels& shape, FloatsOut y, const F& f, FloatsIn a,
                 FloatsIn b = {}) {
  if (shape.count() == 0) return;
  const detail::ChannelMap<F> map{
      shape.count(), Divider(shape.positions), Divider(shape.channels), f, a, b, y};
  ForEach(device, CeilDiv(shape.count(), kWide), map);
}

namespace detail {

// The term of one step of a ChannelReduction: an element, or kVector neighbouring elements
// combined. A Term may have a method OfGroup(channel, p, q) that combines them more cheaply than
// one by one.
template <typename Value, typename Term, typename Combine>
struct ChannelTerms {
  int64_t channels;
  Divider steps;  // Steps per channel of one sample.
  bool is_by_vectors;
  Term term;
  Combine combine;
  FloatsIn a, b;

  CKPLAN_DEVICE Value operator()(int64_t channel, int64_t step) const {
    const int64_t sample = steps.Split(step);
    const int64_t at = (sample * channels + channel) * steps.divisor() + step;
    if (!is_by_vectors) return term(channel, a[at], b.is_null() ? 0 : b[at]);
    const Float4 p = a.Load(at);
    Float4 q{};
    if (!b.is_null()) q = b.Load(at);
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
// positions is a multiple of it.
class ChannelReduction {
 public:
  explicit ChannelReduction(const Channels& shape)
      : channels_(shape.channels),
        is_by_vectors_(shape.positions % kVector == 0),
        steps_(std::max<int64_t>(1, shape.positions / (is_by_vectors_ ? kVector : 1))),
        shape_(ReduceShape::Of(channels_, shape.samples * steps_, steps_ < kFewSteps)) {}

  template <typename Value>
  int64_t workspace() const {
    return shape_.workspace<Value>();
  }
  // Returns whether several blocks of threads share a channel.
  bool is_cut() const { return shape_.parts > 1; }

  // Calls finish(channel, combination of term(channel, a, b) over its elements), as in Reduce.
  // `term` is a functor; b may be null.
  template <typename Value, typename Term, typename Combine, typename Finish>
  void Run(Device& device, Value identity, const Term& term, const Combine& combine,
           const Finish& finish, void* workspace, FloatsIn a, FloatsIn b = {}) const {
    const detail::ChannelTerms<Value, Term, Combine> terms{
        channels_, Divider(steps_), is_by_vectors_, term, combine, a, b};
    Reduce(device, shape_, identity, terms, combine, finish, workspace);
  }

 private:
  static constexpr int64_t kFewSteps = 8;  // With fewer steps, threads read across channels.

  int64_t channels_;
  bool is_by_vectors_;
  int64_t steps_;
  ReduceShape shape_;
};

}  // namespace ckplan::cuda
