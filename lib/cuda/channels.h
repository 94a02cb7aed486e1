// Tensors of samples, channels and positions, whose channels are computed with by themselves.
#pragma once

#include <algorithm>

#include "lib/cuda/index.h"
#include "lib/cuda/launch.h"

namespace ckplan::cuda {

struct Channels {
  int64_t samples = 1, channels = 1, positions = 1;

  static Channels Of(const Operand& x) {
    Channels shape;
    shape.samples = x.dims[0];
    shape.channels = x.dims.size() > 1 ? x.dims[1] : 1;
    shape.positions = x.elements() / std::max<int64_t>(1, shape.samples * shape.channels);
    return shape;
  }
  CKPLAN_DEVICE int64_t channel_size() const { return samples * positions; }
  CKPLAN_DEVICE int64_t count() const { return samples * channels * positions; }
};

// Where element i of a channel is, counted through all samples.
class ChannelIndex {
 public:
  explicit ChannelIndex(const Channels& shape)
      : channels_(shape.channels), positions_(std::max<int64_t>(1, shape.positions)) {}
  CKPLAN_DEVICE int64_t At(int64_t channel, int64_t i) const {
    int64_t place = i;
    const int64_t sample = positions_.Split(place);
    return (sample * channels_ + channel) * positions_.divisor() + place;
  }

 private:
  int64_t channels_;
  Divider positions_;
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
    const int64_t first = group * kVector;
    const bool is_whole = first + kVector <= count;
    Float4 p{}, q{};
    if (is_whole) {
      p = a.Load(group);
      if (!b.is_null()) q = b.Load(group);
    } else {
      for (int64_t k = 0; first + k < count; ++k) {
        p.at[k] = a[first + k];
        if (!b.is_null()) q.at[k] = b[first + k];
      }
    }
    Compute(first, p, q);
    if (is_whole) {
      y.Store(group, p);
    } else {
      for (int64_t k = 0; first + k < count; ++k) y.Set(first + k, p.at[k]);
    }
  }

  CKPLAN_DEVICE void Compute(int64_t first, Float4& p, const Float4& q) const {
    int64_t place = first;
    int64_t channel = positions.Split(place);
    channels.Split(channel);
    auto line = f.LineOf(channel);
    for (int k = 0; k < kVector; ++k) {
      if (place == positions.divisor()) {
        place = 0;
        channel = channel + 1 == channels.divisor() ? 0 : channel + 1;
        line = f.LineOf(channel);
      }
      p.at[k] = line(p.at[k], q.at[k]);
      ++place;
    }
  }
};

}  // namespace detail

// y = line(a, b) for each element, where line = f.LineOf(channel); b may be null.
template <typename F>
void MapChannels(Device& device, const Channels& shape, FloatsOut y, const F& f, FloatsIn a,
                 FloatsIn b = {}) {
  if (shape.count() == 0) return;
  const detail::ChannelMap<F> map{
      shape.count(), Divider(shape.positions), Divider(shape.channels), f, a, b, y};
  ForEach(device, CeilDiv(shape.count(), kVector), map);
}

}  // namespace ckplan::cuda
