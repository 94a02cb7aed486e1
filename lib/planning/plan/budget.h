// A limit on memory as people state it.
#pragma once

#include <optional>
#include <string>

#include "lib/base/units.h"

namespace ckplan {

struct Budget {
  enum class Kind {
    kNone,     // No limit; the algorithm makes the choice of its paper.
    kBytes,    // At most `bytes`.
    kPercent,  // At most `percent` of the peak of keeping everything, in the graph's own order.
    kMin,      // The smallest peak that the algorithm can reach.
    // No limit, but the least product of peak and time: see balance.h.
    kBalanced,
  };
  Kind kind = Kind::kNone;
  Bytes bytes;
  double percent = 0;
  // The device preset whose memory `bytes` is; empty if the bytes were given.
  std::string device = {};

  static Budget Of(Bytes bytes) { return {Kind::kBytes, bytes, 0}; }
  bool is_given() const { return kind != Kind::kNone; }
  // The bytes of a kBytes budget; nothing for the other kinds.
  std::optional<Bytes> in_bytes() const {
    return kind == Kind::kBytes ? std::optional(bytes) : std::nullopt;
  }
  bool operator==(const Budget&) const = default;
};

}  // namespace ckplan
