// Writes the plan into its model: the same ONNX file with markers in its metadata_props, which
// docs/onnx-markers.md explains.
//
//   node    ckplan.action           keep, recompute, transient, offload, view
//           ckplan.segment          0-based
//           ckplan.recompute_count  forward runs beyond the first
//           ckplan.backward_reads   the values that its backward reads, if there are any
//           ckplan.operations       the operations in it, if it is a call that has been expanded
//   model   ckplan.schema_version   the version of the markers
//           ckplan.plan             the whole plan.json
//           ckplan.plan_sha256      the hash of that text
//           ckplan.algorithm, ckplan.budget_bytes (if there is one), ckplan.peak_bytes
//           ckplan.steps            only if the rule of marker_steps.h gives other steps
//
// Guarantees. Every other byte stays as it was, weights inline or external included: markers are
// appended at wire level, so files above 2 GB work too. Annotating again replaces the earlier
// markers. A node without markers is constant: it runs once, outside the step. If a node is a call
// of a function, its decision is that of the first operation in it. Cost: reading and writing the
// file once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/result.h"
#include "lib/files/model/file_rows.h"
#include "lib/files/model/model.h"
#include "lib/files/model/rewrite.h"

namespace ckplan {

struct Plan;

struct Annotation {
  std::vector<Markers> nodes;  // The markers of each node of the file's main graph.
  Markers model;
};

// The version of the markers. In version 2, nodes list the values that their backward reads, and
// models may have steps. In version 3, steps may be copies to the host and back; plans without
// copies have version 2, so that its readers can still use them.
inline constexpr std::string_view kMarkerVersion = "2.0";
inline constexpr std::string_view kMarkerVersionWithCopies = "3.0";

// `rows` are those of the file. `graph` is the graph of their nodes and of the plan: the model's
// graph or a stage of it. The steps of `plan` are forward and backward steps and copies (a plan of
// a joint graph: see lib/planning/planner/model_form.h); `plan_json` is the text of the plan.
Annotation MakeAnnotation(const std::vector<FileRow>& rows, const TensorGraph& graph,
                          const Plan& plan, std::string plan_json);

struct AnnotateOutcome {
  std::unique_ptr<PendingFile> file;  // Complete; the caller finishes and commits it.
  std::vector<std::string> warnings;  // For example: the output's external weights are not in its
                                      // folder.
};

// kIo: a file cannot be read or written. kInvalidInput: the model is damaged, or its number of
// nodes differs from that of `annotation`.
Result<AnnotateOutcome> AnnotateModel(const std::string& in_path, const Annotation& annotation,
                                      const std::string& out_path);

// Returns the plan that an annotated model contains, or nothing.
Result<std::optional<std::string>> ReadEmbeddedPlan(const std::string& path);

}  // namespace ckplan
