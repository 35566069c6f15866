// Lists of tensors have the results of separate calls.
#include <gtest/gtest.h>

#include <array>

#include "tcp/tcp_backend.h"
#include "tcp/test_values.h"
#include "tcp/test_world.h"

namespace muster::collective::tcp {
namespace {

using testing::input_value;
using testing::make_worlds;
using testing::on_all;

struct Tensors {
  std::vector<std::vector<float>> in;
  std::vector<std::vector<float>> out;
  std::vector<Piece> pieces;
};

// Every other tensor is reduced in place.
Tensors tensors_of(int rank, std::span<const std::uint64_t> counts) {
  Tensors tensors;
  tensors.in.resize(counts.size());
  tensors.out.resize(counts.size());
  for (std::size_t t = 0; t < counts.size(); ++t) {
    for (std::uint64_t i = 0; i < counts[t]; ++i) {
      tensors.in[t].push_back(static_cast<float>(input_value(rank, i + t)));
    }
    tensors.out[t].resize(counts[t]);
    auto* const in = reinterpret_cast<std::byte*>(tensors.in[t].data());
    auto* const out = reinterpret_cast<std::byte*>(tensors.out[t].data());
    tensors.pieces.push_back({in, t % 2 == 0 ? in : out, counts[t]});
  }
  return tensors;
}

void expect_sums(const Tensors& tensors, int ranks) {
  for (std::size_t t = 0; t < tensors.in.size(); ++t) {
    const std::vector<float>& result = t % 2 == 0 ? tensors.in[t] : tensors.out[t];
    for (std::size_t i = 0; i < result.size(); ++i) {
      double expected = 0;
      for (int rank = 0; rank < ranks; ++rank) expected += input_value(rank, i + t);
      ASSERT_EQ(static_cast<double>(result[i]), expected) << "tensor " << t << " element " << i;
    }
  }
}

void reduce_list(const std::string& algorithm, int ranks, std::span<const std::uint64_t> counts) {
  on_all(make_worlds({.size = ranks, .algorithm = algorithm}), [&](World& world) {
    TcpBackend backend(world);
    Tensors tensors = tensors_of(world.rank, counts);
    std::uint64_t count = 0;
    for (const std::uint64_t length : counts) count += length;
    const Status reduced = backend.all_reduce({.kind = CallKind::kAllReduce,
                                               .type = DataType::kFloat32,
                                               .reduction = ReduceOp::kSum,
                                               .count = count,
                                               .shape = hash_of(counts),
                                               .sequence = 1},
                                              tensors.pieces);
    ASSERT_TRUE(reduced);
    expect_sums(tensors, world.size);
  });
}

TEST(TcpList, TensorsOfUnequalLengthsAreReducedLikeOneBuffer) {
  const std::array<std::uint64_t, 7> counts = {1, 0, 50'003, 7, 200'000, 3, 32'768};
  for (const int ranks : {2, 3, 4}) {
    for (const char* algorithm : {"auto", "direct", "ring", "rabenseifner", "doubling"}) {
      SCOPED_TRACE(algorithm);
      reduce_list(algorithm, ranks, counts);
    }
  }
}

TEST(TcpList, ManyTinyTensorsAreSentTogether) {
  const std::vector<std::uint64_t> counts(500, 3);
  reduce_list("auto", 3, counts);
}

TEST(TcpList, AnEmptyListIsANoOperation) {
  reduce_list("auto", 3, {});
}

}  // namespace
}  // namespace muster::collective::tcp
