#include "lib/problem/parallel/division.h"

#include <fmt/format.h>

namespace ckplan {

std::string TextOf(const Sharding& sharding) {
  return fmt::format("{}:{}", kShardingSystems[static_cast<size_t>(sharding.system)],
                     sharding.devices);
}

std::string TextOf(const PipelineStage& stage) {
  return fmt::format("{}/{}", stage.stages, stage.index);
}

}  // namespace ckplan
