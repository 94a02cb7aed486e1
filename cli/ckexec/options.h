// All options of all commands of ckexec: a name means the same wherever it is accepted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/command_line.h"

namespace ckplan {

struct ExecOptions {
  std::string model;
  std::optional<std::string> plan;
  std::optional<std::string> cost;
  std::vector<std::string> dims;
  std::vector<std::string> input_shapes;

  std::string backend;
  bool stores_bfloat16 = false;
  std::optional<std::string> threads;
  std::optional<std::string> workspace_limit;
  bool allows_tf32 = false;
  std::optional<std::string> memory_limit;
  std::optional<std::string> seed;
  std::string loss;
  std::optional<std::string> runs;
  std::optional<std::string> steps;
  std::optional<std::string> learning_rate;
  std::optional<std::string> tensors;

  std::optional<std::string> output;
  std::string format = "text";
  std::string color = "auto";
  bool is_quiet = false;
  bool has_no_progress = false;
};

}  // namespace ckplan
