// Tests real models as exporters write them: testdata/models says where each came from.
#include "lib/files/model/testing/models.h"

#include <doctest/doctest.h>

#include <optional>

#include "lib/files/model/facts.h"
#include "lib/files/model/model_impl.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/ops/work.h"

namespace ckplan {
namespace {

Model LoadNamed(const std::string& name, int64_t batch) {
  const std::string path = "testdata/models/" + name + ".onnx";
  Result<Model> model = LoadModel(path, BatchOf(batch));
  if (!model.ok() && model.error().code == ErrorCode::kUsage) model = LoadModel(path, {});
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return std::move(model).value();
}

ModelGraph LowerNamed(const std::string& name, int64_t batch, Autograd autograd) {
  LowerOptions options;
  options.autograd = autograd;
  options.cost = ParseCostModel("flops").value();
  Result<ModelGraph> lowered = LowerModel(LoadNamed(name, batch), options);
  REQUIRE_MESSAGE(lowered.ok(), lowered.error().message);
  return std::move(lowered).value();
}

// Multiply-adds count as two.
double ForwardGigaFlops(const std::string& name) {
  const Model model = LoadNamed(name, 1);
  const Model::Impl& impl = model.impl();
  const ModelFacts facts = FindFacts(impl);
  double flops = 0;
  for (size_t i = 0; i < impl.operations.size(); ++i) {
    if (!facts.operations[i].is_live || facts.operations[i].is_view) continue;
    flops += static_cast<double>(WorkOf(facts.operations[i].spec, {}, Bytes(0)).forward_flops);
  }
  return flops / 1e9;
}

TEST_CASE("models: nothing unknown is left in any of them") {
  struct Row {
    const char* name;
    size_t nodes;
    int64_t trained_bytes;  // As the exporting framework counts them, if it does.
  };
  const Row rows[] = {
      {"alexnet", 21, 244403360},
      {"vgg16", 39, 553430176},
      {"vgg19", 45, 574668960},
      {"resnet18", 68, 46758048},
      {"resnet50", 174, 102228128},
      {"resnet152", 514, 240771232},
      {"googlenet", 196, 26499616},
      {"inception_v3", 309, 95338272},
      {"unet_572", 58, 124122632},
      {"mobilenet_v2", 152, 14019488},
      {"densenet121", 426, 31915424},
      {"squeezenet1_1", 65, 4941984},
      {"shufflenet_v2_x1_0", 210, 9114416},
      {"efficientnet_b0", 333, 21154192},
      {"bert_base_512", 396, 438057192},
      {"gpt2_small", 389, 497759232},
      {"vit_b_16", 343, 346270624},
      {"lstm_4x1024x64_op", 6, 138448800},
      {"resnet50.dynamo_train", 174, 102228128},
      {"resnet50.dynamo", 121, 102121888},
      {"llama_1b_opset23", 371, 5993930752},
      {"timm_swin_base", 960, 351072896},
      {"light_zfnet512", 21, 349002144},
      {"light_densenet121", 668, 32250016},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const ModelGraph lowered = LowerNamed(row.name, 4, Autograd::kMinimal);
    CHECK(lowered.graph.nodes().size() == row.nodes);
    CHECK(lowered.graph.constants().parameter_gradients == Bytes(row.trained_bytes));
    CHECK(lowered.warnings.empty());
  }
}

TEST_CASE("models: with torch, saved bytes equal those measured in PyTorch") {
  struct Row {
    const char* name;
    int64_t batch;
    int64_t saved_bytes;
  };
  const Row rows[] = {{"alexnet", 8, 29929472},
                      {"vgg16", 2, 146710528},
                      {"resnet18", 8, 177477120},
                      {"resnet50", 4, 343850496},
                      {"unet_572", 1, 733802560}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(SavedForBackward(LowerNamed(row.name, row.batch, Autograd::kTorch).graph) ==
          Bytes(row.saved_bytes));
    CHECK(SavedForBackward(LowerNamed(row.name, row.batch, Autograd::kMinimal).graph) <
          Bytes(row.saved_bytes));
  }
}

TEST_CASE("models: forward FLOPs are those of the literature") {
  struct Row {
    const char* name;
    double giga_flops;  // Twice the multiply-adds in the papers, within 4 %.
  };
  const Row rows[] = {{"resnet50", 8.2},      {"resnet18", 3.64},    {"vgg16", 31.0},
                      {"alexnet", 1.43},      {"vit_b_16", 35.1},    {"densenet121", 5.75},
                      {"mobilenet_v2", 0.62}, {"inception_v3", 11.4}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(ForwardGigaFlops(row.name) == doctest::Approx(row.giga_flops).epsilon(0.04));
  }
}

TEST_CASE("models: a folded batch normalisation gives a warning, a trained one does not") {
  CHECK(LoadNamed("resnet50.dynamo", 4).warnings().size() == 1);
  for (const char* name :
       {"resnet50", "resnet50.dynamo_train", "vgg16", "googlenet", "squeezenet1_1"}) {
    CAPTURE(name);
    CHECK(LoadNamed(name, 4).warnings().empty());
  }
}

TEST_CASE(
    "models: with eight times the batch of the file, each activation has eight times the bytes") {
  const auto lower = [](const std::string& name, int64_t batch) {
    LoadOptions options;
    options.batch = batch;
    const Result<Model> model = LoadModel("testdata/models/" + name + ".onnx", options);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(model->constant_batch() == (batch == 0 ? std::optional<int64_t>(1) : std::nullopt));
    LowerOptions lowering;
    lowering.cost = ParseCostModel("flops").value();
    return LowerModel(*model, lowering).value().graph;
  };
  for (const char* name :
       {"light_shufflenet", "light_zfnet512", "light_densenet121", "light_inception_v1"}) {
    CAPTURE(name);
    const TensorGraph one = lower(name, 0);
    const TensorGraph eight = lower(name, 8);
    CHECK(eight.constants().parameters == one.constants().parameters);
    REQUIRE(eight.tensors().size() == one.tensors().size());
    for (const TensorId id : one.tensors().ids()) {
      const Tensor& tensor = eight.tensor(id);
      CAPTURE(tensor.name);
      CHECK(tensor.name == one.tensor(id).name);
      // The statistics of a BatchNormalization are of channels.
      const bool is_of_samples = tensor.kind == TensorKind::kActivation;
      if (is_of_samples) CHECK(tensor.bytes == 8 * one.tensor(id).bytes);
    }
  }
}

TEST_CASE("models: reading and lowering twice gives the same graph") {
  for (const char* name : {"googlenet", "bert_base_512"}) {
    CAPTURE(name);
    CHECK(LowerNamed(name, 4, Autograd::kTorch).graph ==
          LowerNamed(name, 4, Autograd::kTorch).graph);
  }
}

}  // namespace
}  // namespace ckplan
