// The plan written into the model: the same ONNX file with markers in its metadata_props, which
// docs/onnx-markers.md explains.
//
//   node    ckplan.action           keep, recompute, transient, view
//           ckplan.segment          0-based
//           ckplan.recompute_count  forward runs beyond the first
//           ckplan.backward_reads   what its backward reads, where that is anything
//           ckplan.operations       what runs in it, where it is a call that has been expanded
//   model   ckplan.schema_version   of the markers
//           ckplan.plan             the whole plan.json
//           ckplan.plan_sha256      of that text
//           ckplan.algorithm, ckplan.budget_bytes (if there is one), ckplan.peak_bytes
//           ckplan.steps            where the rule of marker_steps.h gives other steps
//
// Guarantees. Every other byte stays as it was, weights inline or external included: markers are
// appended at wire level, so files above 2 GB work too. Annotating again replaces the markers of
// before. A node without markers is constant: it runs once, outside the step. Where a node is a
// call of a function, its decision is that of the first operation in it. Cost: reading and writing
// the file once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/write_file.h"
#include "lib/model/file_rows.h"
#include "lib/model/model.h"
#include "lib/model/rewrite.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct Annotation {
  std::vector<Markers> nodes;  // One for each node of the file's main graph.
  Markers model;
};

// The version of the markers. 2: nodes say what their backward reads, and models may have steps.
inline constexpr std::string_view kMarkerVersion = "2.0";

// `rows` are those of the file, `graph` is what their nodes and the plan are of: the model's graph
// or a stage of it. `schedule` has the steps of the plan as forward and backward steps, for those
// of a joint graph are runs; `plan_json` is the plan's text.
Annotation MakeAnnotation(const std::vector<FileRow>& rows, const TensorGraph& graph,
                          const Plan& plan, std::string plan_json);

struct AnnotateOutcome {
  std::unique_ptr<PendingFile> file;  // Whole, for the caller to finish and put in its place.
  std::vector<std::string> warnings;  // The output cannot see its external weights from there.
};

// kIo: a file cannot be read or written. kInvalidInput: the model is damaged, or has another
// number of nodes than `annotation`.
Result<AnnotateOutcome> AnnotateModel(const std::string& in_path, const Annotation& annotation,
                                      const std::string& out_path);

// The plan that an annotated model carries; nothing if it carries none.
Result<std::optional<std::string>> ReadEmbeddedPlan(const std::string& path);

}  // namespace ckplan
