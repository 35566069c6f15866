#include <gtest/gtest.h>

#include <mutex>

#include "adasum/adasum.h"
#include "tcp/tcp_backend.h"
#include "tcp/test_world.h"

namespace muster::collective {
namespace {

using testing::make_worlds;
using testing::on_all;

using Vector = std::vector<double>;

Piece piece_of(Vector& vector) {
  auto* const bytes = reinterpret_cast<std::byte*>(vector.data());
  return {bytes, bytes, vector.size()};
}

// The results of all ranks, by rank.
std::vector<Vector> adasum_results(const std::vector<Vector>& inputs, const Reduction& reduction) {
  std::vector<Vector> results = inputs;
  on_all(make_worlds({.size = static_cast<int>(inputs.size())}), [&](World& world) {
    tcp::TcpBackend backend(world);
    Vector& own = results[static_cast<std::size_t>(world.rank)];
    const Piece piece = piece_of(own);
    const Call call = {.kind = CallKind::kAllReduce,
                       .type = DataType::kFloat64,
                       .reduction = reduction,
                       .count = own.size(),
                       .sequence = 1};
    EXPECT_TRUE(backend.all_reduce(call, {&piece, 1}));
  });
  return results;
}

TEST(Adasum, AddsOrthogonalVectors) {
  for (const Vector& result : adasum_results({{3, 0}, {0, 4}}, ReduceOp::kAdasum)) {
    EXPECT_EQ(result, (Vector{3, 4}));
  }
}

TEST(Adasum, AveragesParallelVectors) {
  for (const Vector& result : adasum_results({{2, 4}, {2, 4}}, ReduceOp::kAdasum)) {
    EXPECT_EQ(result, (Vector{2, 4}));
  }
}

TEST(Adasum, AVectorOfZerosChangesNothing) {
  for (const Vector& result : adasum_results({{0, 0}, {5, -1}, {0, 0}}, ReduceOp::kAdasum)) {
    EXPECT_EQ(result, (Vector{5, -1}));
  }
}

TEST(Adasum, ScalesBeforeAndAfter) {
  for (const Vector& result :
       adasum_results({{1, 0}, {0, 1}}, Reduction(ReduceOp::kAdasum, 2.0, 10.0))) {
    EXPECT_EQ(result, (Vector{20, 20}));
  }
}

Vector pairwise(const Vector& a, const Vector& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  Vector result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    result[i] = (1 - ab / (2 * aa)) * a[i] + (1 - ab / (2 * bb)) * b[i];
  }
  return result;
}

std::vector<Vector> rough_inputs(int ranks, std::size_t count) {
  std::vector<Vector> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    Vector input(count);
    for (std::size_t i = 0; i < count; ++i) {
      input[i] = static_cast<double>((i * 31 + static_cast<std::size_t>(rank) * 17) % 23) - 9.3;
    }
    inputs.push_back(input);
  }
  return inputs;
}

TEST(Adasum, CombinesInPairsAndFoldsTheRest) {
  const std::vector<Vector> in = rough_inputs(5, 30'001);
  const Vector expected = pairwise(pairwise(pairwise(in[0], in[4]), in[1]), pairwise(in[2], in[3]));
  const std::vector<Vector> results = adasum_results(in, ReduceOp::kAdasum);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(results[0][i], expected[i], 1e-9) << i;
  }
  for (const Vector& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Adasum, TensorsOfAListDoNotMix) {
  const std::vector<Vector> first = {{1, 0}, {0, 1}};
  const std::vector<Vector> second = {{2}, {2}};
  on_all(make_worlds({.size = 2}), [&](World& world) {
    tcp::TcpBackend backend(world);
    const auto rank = static_cast<std::size_t>(world.rank);
    Vector a = first[rank];
    Vector b = second[rank];
    const Piece pieces[] = {piece_of(a), piece_of(b)};
    const Call call = {.kind = CallKind::kAllReduce,
                       .type = DataType::kFloat64,
                       .reduction = ReduceOp::kAdasum,
                       .count = 3,
                       .sequence = 1};
    EXPECT_TRUE(backend.all_reduce(call, pieces));
    EXPECT_EQ(a, (Vector{1, 1}));
    EXPECT_EQ(b, (Vector{2}));
  });
}

TEST(Adasum, RunsOverThePointToPointCallsOfAnyBackend) {
  on_all(make_worlds({.size = 3}), [](World& world) {
    tcp::TcpBackend backend(world);
    Vector own(3, 0.0);
    own[static_cast<std::size_t>(world.rank)] = 2;
    const Piece piece = piece_of(own);
    EXPECT_TRUE(adasum(adasum_links(backend, world.rank, world.size), DataType::kFloat64,
                       ReduceOp::kAdasum, {&piece, 1}));
    EXPECT_EQ(own, (Vector{2, 2, 2}));
  });
}

}  // namespace
}  // namespace muster::collective
