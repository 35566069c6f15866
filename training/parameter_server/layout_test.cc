#include "parameter_server/layout.h"

#include <gtest/gtest.h>

namespace muster::parameter_server {
namespace {

constexpr std::int64_t kMany = 1'000'000;

std::uint64_t sum(const std::vector<Slice>& slices) {
  std::uint64_t elements = 0;
  for (const Slice& slice : slices) elements += slice.count;
  return elements;
}

TEST(Layout, DividesAllTensorsIntoEqualParts) {
  const std::vector<Tensor> tensors = {{"a", {2, 3}}, {"b", {}}, {"c", {4}}};  // 6 + 1 + 4
  struct Row {
    std::size_t server;
    std::size_t servers;
    std::vector<Slice> slices;
  };
  for (const Row& row : {
           Row{0, 1, {{0, 0, 6}, {1, 0, 1}, {2, 0, 4}}},
           Row{0, 2, {{0, 0, 6}}},
           Row{1, 2, {{1, 0, 1}, {2, 0, 4}}},
           Row{0, 3, {{0, 0, 4}}},
           Row{1, 3, {{0, 4, 2}, {1, 0, 1}, {2, 0, 1}}},
           Row{2, 3, {{2, 1, 3}}},
           Row{10, 12, {{2, 3, 1}}},
           Row{11, 12, {}},
       }) {
    EXPECT_EQ(part_of(tensors, row.server, row.servers), row.slices)
        << row.server << " of " << row.servers;
  }
}

TEST(Layout, PartsDifferByOneElementAtMost) {
  const std::vector<Tensor> tensors = {{"embedding", {30'000, 128}}, {"w", {999}}, {"b", {7, 11}}};
  const std::uint64_t total = 30'000 * 128 + 999 + 77;
  for (std::size_t servers = 1; servers <= 9; ++servers) {
    std::uint64_t held = 0;
    for (std::size_t server = 0; server < servers; ++server) {
      const std::uint64_t part = sum(part_of(tensors, server, servers));
      EXPECT_GE(part, total / servers);
      EXPECT_LE(part, total / servers + 1);
      held += part;
    }
    EXPECT_EQ(held, total);
  }
}

TEST(Layout, DividesAPartIntoShortSlices) {
  const std::vector<Slice> slices = part_of(std::vector<Tensor>{{"w", {kMany}}}, 0, 1);
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[1], (Slice{0, kSliceElements, kSliceElements}));
  EXPECT_EQ(slices[3], (Slice{0, 3 * kSliceElements, kMany - 3 * kSliceElements}));
}

TEST(Layout, DescribesShapes) {
  EXPECT_EQ(shape_of({"w", {2, 3}}), "2x3");
  EXPECT_EQ(shape_of({"w", {}}), "scalar");
  EXPECT_EQ(elements_of({"w", {2, 3}}), 6U);
  EXPECT_EQ(elements_of({"w", {}}), 1U);
}

TEST(Layout, RejectsAnInvalidModelWithAllItsFaults) {
  EXPECT_EQ(check(std::vector<Tensor>{}).error().message, "the model has no parameters");
  const std::vector<Tensor> odd = {
      {"", {1}}, {"w", {2, 0}}, {"w", {2}}, {"vast", {std::int64_t{1} << 30, 4096}}};
  EXPECT_EQ(check(odd).error().message,
            "a parameter has no name; 'w' has a dimension of 0; 'w' is declared twice; 'vast' has "
            "more than 2^40 elements (1073741824x4096)");
  const std::int64_t half = std::int64_t{1} << 39;
  EXPECT_EQ(check(std::vector<Tensor>{{"a", {half}}, {"b", {half}}, {"c", {}}}).error().message,
            "all parameters together have more than 2^40 elements");
  EXPECT_TRUE(check(std::vector<Tensor>{{"a", {half}}, {"b", {half}}}));
  EXPECT_TRUE(check(std::vector<Tensor>{{"w", {2, 3}}, {"b", {}}}));
}

}  // namespace
}  // namespace muster::parameter_server
