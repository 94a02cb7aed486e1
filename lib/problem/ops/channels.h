// A tensor seen as samples x channels x positions, for operators that treat each channel
// separately. If the channels lie last, each position is a sample.
#pragma once

#include <cstdint>

namespace ckplan {

struct ChannelView {
  int64_t samples = 1, channels = 1, positions = 1;

  // Index of the first element of `channel` in `sample`.
  int64_t offset(int64_t sample, int64_t channel) const {
    return (sample * channels + channel) * positions;
  }
  int64_t channel_size() const { return samples * positions; }
};

}  // namespace ckplan
