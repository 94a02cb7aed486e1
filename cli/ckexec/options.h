// All options of all ckexec commands. An option means the same in every command that accepts it.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "cli/common/command_line.h"
#include "cli/common/request_flags.h"

namespace ckplan {

struct ExecOptions {
  std::string name;  // A shell (completion) or a command (man).
  std::string model;
  std::optional<std::string> plan;
  RequestFlags request;  // Flags that control how the model is read.

  std::string backend;
  std::optional<std::string> device;  // A GPU that this machine doesn't have.
  bool stores_bfloat16 = false;
  std::optional<std::string> threads;
  std::optional<std::string> workspace_limit;
  std::string tf32 = "none";
  bool allows_tf32 = false;
  std::optional<std::string> memory_limit;
  std::optional<std::string> seed;
  std::string loss;
  std::optional<std::string> runs;
  bool uses_graphs = false;
  std::optional<std::string> steps;
  std::optional<std::string> learning_rate;
  std::optional<std::string> tensors;

  std::optional<std::string> output;
  std::string format = "text";
  std::string color = "auto";
  bool is_quiet = false;
  bool has_no_progress = false;
};

// Formats a measured time with about three digits and a unit: "1.84 s", "12.3 ms", "640 us".
inline std::string DurationText(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} us", seconds * 1e6);
}

}  // namespace ckplan
