// A limit on memory, as users state it.
#pragma once

#include <optional>
#include <string>

#include "lib/base/units.h"

namespace ckplan {

struct Budget {
  enum class Kind {
    kNone,     // No limit: the algorithm uses its paper's choice.
    kBytes,    // At most `bytes`.
    kPercent,  // At most `percent` of the keep-all peak in the graph's own order.
    kMin,      // The smallest peak that the algorithm can reach.
    // No limit: the smallest product of peak and time (balance.h).
    kBalanced,
  };
  Kind kind = Kind::kNone;
  Bytes bytes;
  double percent = 0;
  // The device preset that `bytes` comes from; empty if the user gave bytes.
  std::string device = {};

  static Budget Of(Bytes bytes) { return {Kind::kBytes, bytes, 0}; }
  bool is_given() const { return kind != Kind::kNone; }
  // The bytes of a kBytes budget; nullopt for other kinds.
  std::optional<Bytes> in_bytes() const {
    return kind == Kind::kBytes ? std::optional(bytes) : std::nullopt;
  }
  bool operator==(const Budget&) const = default;
};

}  // namespace ckplan
