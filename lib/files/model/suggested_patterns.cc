#include "lib/files/model/suggested_patterns.h"

#include <algorithm>
#include <vector>

#include "lib/base/text.h"
#include "lib/files/model/step_part.h"

namespace ckplan {

std::string AsPattern(const std::string& name) {
  std::string pattern = name;
  for (char& c : pattern) {
    if (c == ',' || static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  }
  const bool is_special =
      pattern.starts_with('!') || pattern.starts_with('@') || pattern.starts_with("op:");
  if (is_special) pattern[0] = '?';
  return pattern;
}

std::string PatternFor(const onnx::GraphProto& graph, const std::string& value) {
  std::vector<std::string> names = {value};
  for (const onnx::NodeProto& node : graph.node()) {
    const auto& outputs = node.output();
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) continue;
    if (!node.name().empty()) names.push_back(node.name());
  }
  for (const std::string& name : names) {
    const std::string pattern = AsPattern(name);
    if (pattern.empty() || WellFormedUtf8(pattern) != pattern) continue;
    const Result<StepPart> part = ChoosePart(graph, {pattern}, "");
    if (part.ok() && part->outputs == std::vector<std::string>{value}) return pattern;
  }
  return "";
}

}  // namespace ckplan
