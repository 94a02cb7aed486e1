// What `ckplan check --fail-on` asks of a plan, and how a failure is told to programs that run in
// continuous integration.
//
//   peak>16GiB   arena>16GiB   total>16GiB   overhead>5%     absolute; total is with constants
//   peak:+1%     arena:+1%     total:+1%     time:+2%        growth over --against OLD
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/diff.h"

namespace ckplan {

struct Threshold {
  enum class Metric { kPeak, kArena, kTotal, kOverhead, kTime };
  std::string text;  // As it was typed.
  Metric metric = Metric::kPeak;
  bool is_growth = false;
  Bytes most_bytes;         // Of an absolute one on bytes.
  double most_percent = 0;  // Of growth, and of overhead.
};

// kUsage: none of the forms above.
Result<Threshold> ParseThreshold(const std::string& text);

// Something that a check was made for, and how it went.
struct CheckedItem {
  std::string name;     // "peak>16GiB", or "checker"
  std::string message;  // Why it failed; empty if it did not.
};

// `against` must be there for thresholds on growth.
CheckedItem Judge(const Threshold& threshold, const PlanFigures& figures,
                  const PlanFigures* against);

// Workflow commands of GitHub, one line for each failure.
std::string GithubAnnotations(const std::vector<CheckedItem>& items, std::string_view path);
// A Code Quality report of GitLab. Fingerprints stay equal from run to run: no figure is in them.
std::string GitlabReport(const std::vector<CheckedItem>& items, std::string_view path,
                         std::string_view model);
// A JUnit test suite with a case for each item.
std::string JunitReport(const std::vector<CheckedItem>& items, std::string_view path);

}  // namespace ckplan
