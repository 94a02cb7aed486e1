#include "cli/ckbench/chainer_graph.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {
namespace {

// x → Convolution (W) → c → ReLU → r
constexpr std::string_view kSmall =
    "4 4\n"
    "0 64 0\n"
    "1 32 _\n"
    "2 7 /conv/W\n"
    "3 32 _\n"
    "forward\n2 1\n0 _\n2 _\n1\nConvolution2DFunction\n{}\n"
    "forward\n1 1\n1 _\n3\nReLU\n{\"rank\": 1}\n"
    "backward\n3 2\n1 gradient\n0 input\n2 input\n0\n2\nConvolution2DFunction\n{}\n"
    "backward\n2 1\n3 gradient\n3 output\n1\nReLU\n{}\n";

std::string Changed(std::string_view from, std::string_view to) {
  std::string text(kSmall);
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string FaultOf(const std::string& text) {
  const auto network = ReadChainerNetwork(text, "cg.txt");
  return network.ok() ? "" : network.error().message;
}

}  // namespace

TEST_CASE("chainer graph: variables, parameters, costs and what backward reads") {
  const auto network = ReadChainerNetwork(kSmall, "cg.txt");
  REQUIRE_MESSAGE(network.ok(), network.error().message);
  const TensorGraph graph = GraphOf(*network, "cg.txt").value();
  REQUIRE(graph.nodes().size() == 2);
  CHECK(graph.constants() == ConstantMemory{Bytes(7), Bytes(7), Bytes(64), Bytes(0)});
  const Node& conv = graph.node(NodeId(0));
  const Node& relu = graph.node(NodeId(1));
  CHECK(conv.op == "Convolution2DFunction");
  CHECK(conv.forward_cost == Cost(10));
  CHECK(relu.forward_cost == Cost(1));
  CHECK(conv.backward_reads == conv.inputs);
  CHECK(relu.backward_reads == relu.outputs);
  CHECK(relu.inputs == conv.outputs);
  CHECK(graph.outputs() == relu.outputs);
  CHECK(graph.is_input(conv.inputs.front()));
}

TEST_CASE("chainer graph: faults name the line") {
  CHECK(FaultOf(std::string(kSmall.substr(0, kSmall.size() - 9))) ==
        "cg.txt: line 32: unexpected end of the file");
  CHECK(FaultOf(Changed("1 32 _", "9 32 _")) ==
        "cg.txt: line 3: \"9\" must be a whole number from 0 to 3");
  CHECK(FaultOf(Changed("forward\n2 1", "sideways\n2 1")) ==
        "cg.txt: line 6: \"sideways\" must be forward or backward");
  CHECK(FaultOf(Changed("backward\n3 2", "forward\n3 2")) ==
        "cg.txt: line 20: a forward function must have one output");
  CHECK(FaultOf(Changed("forward\n1 1\n1 _\n3", "forward\n0 1\n3")) ==
        "cg.txt: line 14: a forward function must have an input");
  CHECK(FaultOf(Changed("1 32 _", "1 2000000000000 _")).find("line 3") != std::string::npos);
  CHECK(FaultOf(Changed("backward\n2 1", "forward\n2 1"))
            .find("3 forward functions, but 1 backward") != std::string::npos);
}

}  // namespace ckplan
