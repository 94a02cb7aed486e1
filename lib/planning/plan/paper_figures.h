// An algorithm's own objective, as its paper defines it.
#pragma once

#include <optional>

#include "lib/base/units.h"

namespace ckplan {

struct PaperFigures {
  std::optional<Bytes> budget;
  Bytes peak;
  Cost overhead;

  bool operator==(const PaperFigures&) const = default;
};

}  // namespace ckplan
