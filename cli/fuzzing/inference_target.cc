// Loads a model of one node, with any ONNX operator, operands and attributes.
#include <fstream>

#include "cli/fuzzing/choices.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/files/model/model.h"
#include "lib/files/model/testing/any_node.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {

void FuzzInference(FuzzInput input) {
  static const TemporaryFolder folder;
  const std::string path = folder / "node.onnx";
  Choices choices(input);
  const std::string bytes = AnyNodeModel({[&choices](size_t count) { return choices.Below(count); },
                                          [&choices] { return choices.Line(); }});
  std::ofstream(path, std::ios::binary) << bytes;
  const Result<Model> model = LoadModel(path, {});
  if (model.ok()) return;
  CKPLAN_CHECK(model.error().message.find('\n') == std::string::npos,
               "an error message is one line");
}

}  // namespace ckplan
