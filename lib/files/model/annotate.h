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
//           ckplan.steps            only if the rule below gives other steps
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
#include "lib/files/model/wire.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The order in which an annotated model's nodes run: the rule of docs/onnx-markers.md, and the
// marker for plans that the rule does not describe.
//
//   rule     nodes forward by segment, and within a segment in the order of the file; the loss; the
//            same backward in reverse. Before a backward run, all values that it reads and that
//            must be remade are remade, each node after the nodes that it needs itself.
//   marker   "forward 0 1 2 loss backward 2 forward 1 backward 1 0": numbers of nodes in the file's
//            main graph, "4.0" and "4.1" for the operations of an expanded call; after "free", the
//            outputs that are freed, as "1:o0", or "1:s" for a statistic; after "out", "drop" and
//            "in", what is copied to the host or back, where "1:g0" is the gradient of "1:o0".
//
// The rule uses only what the file says, so every reader of the markers derives the same steps.
// Cost: O(steps x reads).

// Returns "i0" for an input, "o0" for an output, "s" for the statistic that the node saves for its
// backward.
std::string TextOf(const ValuePlace& place);

// Returns the value of the marker, or nothing if the rule gives these steps. The schedule consists
// of forward and backward steps, maybe with copies (lib/problem/schedule/transfers.h), and
// is valid for `graph`, to whose nodes the rows refer.
std::optional<std::string> StepsMarker(const std::vector<FileRow>& rows,
                                       const IdVector<NodeId, NodeDecision>& decisions,
                                       const TensorGraph& graph, const Schedule& schedule);

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

// Checks the markers of an annotated model: each must be as the plan says and occur once, and there
// must be no others.

// kIo: the file cannot be read. kInvalidInput, kUnsupported: its encoding is damaged.
Result<FoundMarkers> ReadMarkers(const std::string& path);

// Returns one line for each fault, and none if the markers are those of `expected`. Markers of
// another version are a single fault.
std::vector<std::string> FaultsOfMarkers(const FoundMarkers& found, const Annotation& expected);

}  // namespace ckplan
