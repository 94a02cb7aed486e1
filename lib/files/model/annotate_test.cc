// Tests markers in files, and files whose weights stay in place.
#include "lib/files/model/annotate.h"

#include <doctest/doctest.h>

#include "lib/base/hash.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/testing_proto.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {
namespace {

constexpr const char* kGraph =
    "g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> "
    "{ h = Mul(x, w) v = Identity(h) c = Neg(w) r = Relu(v) y = Mul(r, c) }";

Plan PlanFor(const ModelGraph& lowered) {
  Plan plan;
  plan.request.algorithm = "chen-sqrt";
  plan.request.budget = Budget::Of(Bytes(1000));
  plan.figures.peak = Bytes(900);
  plan.decisions.resize(lowered.graph.nodes().size());
  plan.schedule = KeepAllInOwnOrder(lowered.graph);
  plan.decisions[NodeId(1)] = {NodeAction::kRecompute, 3, 2};
  return plan;
}

Annotation AnnotationWith(const Model& model, const ModelGraph& lowered, const Plan& plan,
                          const std::string& json) {
  return MakeAnnotation(FileRowsOf(model, lowered), lowered.graph, plan, json);
}

std::string MarkerOf(const onnx::NodeProto& node, const std::string& key) {
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "none";
}

onnx::ModelProto ReadProto(const TemporaryFile& file) {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(file.Read()));
  return proto;
}

// Writes the annotated model and commits it; returns whether both succeeded.
bool Annotated(const TemporaryFile& in, const Annotation& annotation, const TemporaryFile& out) {
  const auto outcome = AnnotateModel(in.path(), annotation, out.path());
  return outcome.ok() && outcome->file->Commit().ok();
}

TEST_CASE("annotate: nodes carry their decisions, the model carries the plan") {
  const onnx::ModelProto proto = ParseGraph(kGraph);
  const Model model = LoadProto(proto, BatchOf(2)).value();
  const ModelGraph lowered = LowerProto(proto, BatchOf(2));
  const TemporaryFile in("in.onnx");
  const TemporaryFile out("out.onnx");
  in.Write(proto.SerializeAsString());
  REQUIRE(Annotated(in, AnnotationWith(model, lowered, PlanFor(lowered), "{plan}"), out));

  onnx::ModelProto marked = ReadProto(out);
  const auto& nodes = marked.graph().node();
  CHECK(MarkerOf(nodes[0], "ckplan.action") == "keep");
  CHECK(MarkerOf(nodes[0], "ckplan.segment") == "0");
  CHECK(MarkerOf(nodes[1], "ckplan.action") == "view");
  CHECK(MarkerOf(nodes[2], "ckplan.action") == "none");
  CHECK(MarkerOf(nodes[3], "ckplan.action") == "recompute");
  CHECK(MarkerOf(nodes[3], "ckplan.segment") == "3");
  CHECK(MarkerOf(nodes[3], "ckplan.recompute_count") == "2");
  CHECK(ReadEmbeddedPlan(out.path()).value() == "{plan}");
  CHECK(ReadEmbeddedPlan(in.path()).value() == std::nullopt);
  std::map<std::string, std::string> entries;
  for (const auto& entry : marked.metadata_props()) entries[entry.key()] = entry.value();
  CHECK(entries["ckplan.plan_sha256"] == Sha256Hex("{plan}"));
  CHECK(entries["ckplan.algorithm"] == "chen-sqrt");
  CHECK(entries["ckplan.budget_bytes"] == "1000");
  CHECK(entries["ckplan.peak_bytes"] == "900");

  // Without the markers, it equals the model before.
  marked.clear_metadata_props();
  for (auto& node : *marked.mutable_graph()->mutable_node()) node.clear_metadata_props();
  CHECK(marked.SerializeAsString() == proto.SerializeAsString());
}

TEST_CASE("annotate: doing it again replaces the markers and keeps foreign metadata") {
  onnx::ModelProto proto = ParseGraph(kGraph);
  auto* foreign = proto.mutable_graph()->mutable_node(0)->add_metadata_props();
  foreign->set_key("team");
  foreign->set_value("vision");
  const Model model = LoadProto(proto, BatchOf(2)).value();
  const ModelGraph lowered = LowerProto(proto, BatchOf(2));
  const TemporaryFile in("in.onnx");
  const TemporaryFile once("once.onnx");
  const TemporaryFile twice("twice.onnx");
  in.Write(proto.SerializeAsString());
  Plan plan = PlanFor(lowered);
  REQUIRE(Annotated(in, AnnotationWith(model, lowered, plan, "old"), once));
  plan.decisions[NodeId(0)] = {NodeAction::kTransient, 1, 0};
  const Annotation annotation = AnnotationWith(model, lowered, plan, "new");
  REQUIRE(Annotated(once, annotation, twice));
  const onnx::ModelProto marked = ReadProto(twice);
  CHECK(marked.graph().node(0).metadata_props_size() == 5);
  CHECK(MarkerOf(marked.graph().node(0), "team") == "vision");
  CHECK(MarkerOf(marked.graph().node(0), "ckplan.action") == "transient");
  CHECK(ReadEmbeddedPlan(twice.path()).value() == "new");
  // Annotating in place works, too.
  REQUIRE(Annotated(twice, annotation, twice));
  CHECK(ReadProto(twice).SerializeAsString() == marked.SerializeAsString());
}

TEST_CASE("annotate: an annotated model is the same model, and lowers to the same graph") {
  const TemporaryFile out("out.onnx");
  const std::string path = "testdata/models/resnet18.onnx";
  const Result<Model> before = LoadModel(path, BatchOf(4));
  REQUIRE(before.ok());
  LowerOptions options;
  options.cost = ParseCostModel("unit").value();
  const Result<ModelGraph> lowered = LowerModel(*before, options);
  REQUIRE(lowered.ok());
  Plan plan;
  plan.decisions.resize(lowered->graph.nodes().size());
  plan.schedule = KeepAllInOwnOrder(lowered->graph);
  const auto outcome = AnnotateModel(
      path, AnnotationWith(*before, *lowered, plan, std::string(100'000, '+')), out.path());
  REQUIRE(outcome.ok());
  CHECK(outcome->warnings.size() == 1);  // Its external weights are in another folder.
  CHECK_FALSE(std::filesystem::exists(out.path()));
  REQUIRE(outcome->file->Commit().ok());
  const Result<Model> after = LoadModel(out.path(), BatchOf(4));
  REQUIRE(after.ok());
  CHECK(after->identity().sha256 == before->identity().sha256);
  const Result<ModelGraph> again = LowerModel(*after, options);
  REQUIRE(again.ok());
  CHECK(again->graph.nodes() == lowered->graph.nodes());
}

TEST_CASE("annotate: a model of another size is refused, and nothing is written") {
  const TemporaryFile in("in.onnx");
  const TemporaryFile out("out.onnx");
  in.Write(ParseGraph(kGraph).SerializeAsString());
  const auto refused = AnnotateModel(in.path(), Annotation{}, out.path());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidInput);
  CHECK_FALSE(std::filesystem::exists(out.path()));
  Annotation five;
  five.nodes.resize(5);
  const auto unwritable = AnnotateModel(in.path(), five, "no/such/folder/out.onnx");
  REQUIRE_FALSE(unwritable.ok());
  CHECK(unwritable.error().code == ErrorCode::kIo);
}

// Writes a model with 3 GB of inline weights: its head is written, the weights are a hole in the
// file.
void WriteSparseModel(const TemporaryFile& file, uint64_t weight_bytes) {
  const auto varint = [](uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
  };
  onnx::ModelProto head = ParseGraph("g (float[N,4096] x) => (float[N,K] y) { y = MatMul(x, w) }");
  const std::string graph = head.graph().SerializeAsString();
  head.clear_graph();
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(4096);
  tensor.add_dims(static_cast<int64_t>(weight_bytes / 4 / 4096));
  const std::string raw_header = "\x4a" + varint(weight_bytes);  // raw_data
  const std::string weights = tensor.SerializeAsString() + raw_header;
  const std::string tensor_header = "\x2a" + varint(weights.size() + weight_bytes);  // initializer
  const std::string prefix = graph + tensor_header + weights;
  const std::string whole =
      head.SerializeAsString() + "\x3a" + varint(prefix.size() + weight_bytes) + prefix;  // graph
  file.Write(whole);
  std::filesystem::resize_file(file.path(), whole.size() + weight_bytes);
}

TEST_CASE("load: a file above 2 GB costs what its graph costs") {
  const TemporaryFile file("large.onnx");
  const uint64_t weight_bytes = uint64_t{3} << 30;
  WriteSparseModel(file, weight_bytes);
  const Result<Model> model = LoadModel(file.path(), BatchOf(4));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(model->impl().proto->ByteSizeLong() < 1000);
  LowerOptions options;
  options.cost = ParseCostModel("unit").value();
  const auto lowered = LowerModel(*model, options);
  REQUIRE(lowered.ok());
  CHECK(lowered->graph.constants().parameters == Bytes(static_cast<int64_t>(weight_bytes)));
}

}  // namespace
}  // namespace ckplan
