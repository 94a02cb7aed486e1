#include "lib/planning/runtimes/blocks.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/testing/layered_graph.h"

namespace ckplan {
namespace {

// A joint graph with one forward operation for each path.
JointGraph WithPaths(const std::vector<std::string>& paths) {
  JointGraphParts parts;
  for (size_t i = 0; i < paths.size(); ++i) {
    Value value;
    value.file_id = static_cast<int64_t>(i);
    parts.values.push_back(value);
    Operation op;
    op.file_id = static_cast<int64_t>(i);
    op.module = paths[i];
    op.writes = {ValueId(i)};
    if (i > 0) op.reads = {ValueId(i - 1)};
    parts.ops.push_back(op);
  }
  parts.results = {ValueId(paths.size() - 1)};
  return JointGraph::Create(std::move(parts)).value();
}

std::vector<std::string> PathsOf(const std::vector<Block>& blocks) {
  std::vector<std::string> paths;
  for (const Block& block : blocks)
    paths.push_back(block.ops.path + (block.is_repeated ? "*" : ""));
  return paths;
}

}  // namespace

TEST_CASE("blocks: elements of a list, and the modules around them") {
  const JointGraph graph =
      WithPaths({"", "model.embed", "model.layers.0.attn", "model.layers.0.mlp.1", "model.layers.0",
                 "model.layers.1.mlp.1", "model.norm", "head.out"});
  const std::vector<Block> blocks = FindBlocks(graph).value();
  CHECK(PathsOf(blocks) == std::vector<std::string>{"model.embed", "model.layers.0*",
                                                    "model.layers.1*", "model.norm", "head"});
  REQUIRE(blocks[1].parts.size() == 2);
  CHECK(blocks[1].parts[0].path == "model.layers.0.attn");
  CHECK(blocks[1].parts[1].path == "model.layers.0.mlp");
  CHECK(blocks[1].ops.forward == std::vector<OpId>{OpId(2), OpId(3), OpId(4)});
}

TEST_CASE("blocks: of nested lists, the innermost one whose elements are large enough") {
  std::vector<std::string> paths;
  for (const char* const block : {"stages.0.0", "stages.0.1", "stages.1.0"}) {
    for (int i = 0; i < 8; ++i) paths.push_back(std::string(block) + ".convs." + std::to_string(i));
  }
  CHECK(PathsOf(FindBlocks(WithPaths(paths)).value()) ==
        std::vector<std::string>{"stages.0.0*", "stages.0.1*", "stages.1.0*"});
  paths.resize(20);
  CHECK(PathsOf(FindBlocks(WithPaths(paths)).value()) ==
        std::vector<std::string>{"stages.0*", "stages.1*"});
}

TEST_CASE("blocks: a module that is called twice is left out") {
  const JointGraph graph = WithPaths({"layers.0", "layers.1", "layers.0", "layers.2"});
  CHECK(PathsOf(FindBlocks(graph).value()) == std::vector<std::string>{"layers.1*", "layers.2*"});
}

TEST_CASE("blocks: equal layers are of one kind, and have their backward operations") {
  Rng rng(1);
  const JointGraph graph = WithLayers(RandomLayers(rng, 3, 4), 3, 4);
  const std::vector<Block> blocks = FindBlocks(graph).value();
  REQUIRE(blocks.size() == 4);
  CHECK(blocks[1].kind == blocks[2].kind);
  CHECK(blocks[1].kind != blocks[3].kind);
  CHECK(blocks[1].ops.forward.size() == 4);
  CHECK(blocks[1].ops.backward.size() == 4);
}

TEST_CASE("blocks: a graph that names no modules is refused") {
  const Result<std::vector<Block>> found = FindBlocks(WithPaths({"", ""}));
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().code == ErrorCode::kUnsupported);
}

}  // namespace ckplan
