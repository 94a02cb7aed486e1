// ONNX files: everything that ckplan and ckexec do with a model before running it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/files/model/annotate.h"
#include "lib/files/model/step_graph.h"
#include "lib/files/model/weights.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/ops/families.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

constexpr size_t kMaxPlannedModelNodes = 300;
constexpr int64_t kMaxReadBytes = 1 << 20;

// Does what an error suggests: it names dimensions to bind, as "N=..." or "x=?,8", inputs whose
// contents decide, as "n=...", and where the step could end. Returns false if that changes nothing.
bool FollowRemedy(const Error& error, PlanRequest* request) {
  bool is_changed = false;
  for (const Remedy::Setting& setting : error.remedy.settings) {
    const std::string name = setting.value.substr(0, setting.value.rfind('='));
    if (setting.name == "dims") is_changed |= request->dims.emplace(name, 2).second;
    if (setting.name == "outputs" && request->outputs.empty()) {
      std::istringstream list(setting.value);
      for (std::string output; std::getline(list, output, ',');) request->outputs.push_back(output);
      is_changed = true;
    }
    auto& sets = request->set_inputs;
    const std::string contents = name + "=1";
    if (setting.name == "set_inputs" &&
        std::find(sets.begin(), sets.end(), contents) == sets.end()) {
      sets.push_back(contents);
      is_changed = true;
    }
  }
  return is_changed;
}

Result<ModelSource> Load(const std::string& path, PlanRequest* request) {
  Result<ModelSource> source = LoadModelSource(path, *request);
  while (!source.ok() && FollowRemedy(source.error(), request)) {
    source = LoadModelSource(path, *request);
  }
  return source;
}

// Loads the model with another batch size, which must succeed or give an error.
void ReadWithBatch(const std::string& path, const ModelSource& source, PlanRequest request) {
  if (!source.model.constant_batch()) return;
  request.batch = *source.model.constant_batch() == 1 ? 3 : 1;
  static_cast<void>(LoadModelSource(path, request).ok());
}

void ReadWeights(const std::string& path, const StepGraph& step) {
  const Result<WeightFile> weights = WeightFile::Open(path);
  if (!weights.ok()) return;
  for (const StepConstant& constant : step.constants) {
    if (!constant.is_leaf_in_file || constant.operand.bytes() > kMaxReadBytes) continue;
    const Result<WeightContents> read = weights->Read(constant.name, constant.operand);
    if (!read.ok() || !read->bytes) continue;
    CKPLAN_CHECK(static_cast<int64_t>(read->bytes->size()) == constant.operand.bytes(),
                 "a weight has as many bytes as its operand");
  }
}

void ValidateOperators(const std::string& path, const ModelSource& source) {
  const Result<StepGraph> step =
      BuildStepGraph(source.model, source.lowered, source.request.autograd);
  if (!step.ok()) return;
  for (const StepNode& node : step->nodes) static_cast<void>(ValidateOp(node.spec).ok());
  for (const ConstantOp& op : step->constant_ops) static_cast<void>(ValidateOp(op.spec).ok());
  ReadWeights(path, *step);
}

void PlanAndAnnotate(const std::string& path, const ModelSource& source, PlanRequest request) {
  request.algorithm = "chen-sqrt";
  const TensorGraph& graph = source.lowered.graph;
  if (graph.nodes().size() > kMaxPlannedModelNodes) return;
  const Result<Plan> plan = MakePlan(graph, request, {});
  if (!plan.ok()) return;
  // The copy keeps the file name, because a graph is named after its file.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path() / "annotated";
  std::filesystem::create_directory(folder);
  const std::string out = folder / std::filesystem::path(path).filename();
  const std::string json = WritePlanJson(*plan, graph);
  const Annotation annotation =
      MakeAnnotation(FileRowsOf(source.model, source.lowered), graph, *plan, json);
  const auto written = AnnotateModel(path, annotation, out);
  if (!written.ok() || !written->file->Commit().ok()) return;
  const auto embedded = ReadEmbeddedPlan(out);
  CKPLAN_CHECK(embedded.ok() && *embedded == json, "the plan in an annotated model can be read");
  const auto markers = ReadMarkers(out);
  CKPLAN_CHECK(markers.ok() && FindMarkerFaults(*markers, annotation).empty(),
               "an annotated model contains the markers that were written");
  PlanRequest again = request;
  const Result<ModelSource> annotated = Load(out, &again);
  CKPLAN_CHECK(annotated.ok(), "an annotated model can be loaded");
  CKPLAN_CHECK(annotated->lowered.graph == graph, "annotating a model doesn't change its graph");
  std::filesystem::remove(out);
}

}  // namespace

void FuzzModel(FuzzInput input) {
  static const TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  std::ofstream(path, std::ios::binary)
      .write(TextOf(input).data(), static_cast<int64_t>(input.size()));
  static_cast<void>(ReadEmbeddedPlan(path).ok());
  static_cast<void>(ReadMarkers(path).ok());
  PlanRequest request;
  const Result<ModelSource> source = Load(path, &request);
  if (!source.ok()) return;
  ValidateOperators(path, *source);
  ReadWithBatch(path, *source, request);
  PlanAndAnnotate(path, *source, request);
}

}  // namespace ckplan
