// How a training step is divided among devices, as it is asked for: its constants by a system of
// data parallelism, its operations by the stages of a pipeline. sharding.h and pipeline.h say what
// one of the devices then has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ckplan {

enum class ShardingSystem { kFsdp, kZero1, kZero2, kZero3 };

inline constexpr std::string_view kShardingSystems[] = {"fsdp", "zero1", "zero2", "zero3"};

struct Sharding {
  ShardingSystem system = ShardingSystem::kFsdp;
  int64_t devices = 2;

  bool operator==(const Sharding&) const = default;
};

inline constexpr int64_t kMinShardingDevices = 2;
inline constexpr int64_t kMaxShardingDevices = 1'000'000;

std::string TextOf(const Sharding& sharding);  // For example "fsdp:8".

enum class PipelineSchedule { k1F1B, kGPipe };

inline constexpr std::string_view kPipelineScheduleWords[] = {"1f1b", "gpipe"};
inline std::string_view NameOf(PipelineSchedule schedule) {
  return kPipelineScheduleWords[static_cast<size_t>(schedule)];
}

// Stage number `index`, counted from 0, of a pipeline of `stages` stages.
struct PipelineStage {
  int64_t stages = 1;
  int64_t index = 0;

  bool operator==(const PipelineStage&) const = default;
};

inline constexpr int64_t kMaxStages = 1'000'000;
inline constexpr int64_t kMaxMicroBatches = 1'000'000;

std::string TextOf(const PipelineStage& stage);  // For example "4/1".

}  // namespace ckplan
