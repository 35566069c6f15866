#include "bench_options.h"

#include <gtest/gtest.h>

namespace muster::collective::bench {
namespace {

Result<BenchOptions> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return parse_command_line(static_cast<int>(words.size()), pointers.data());
}

TEST(BenchOptions, AreReadFromTheCommandLine) {
  const Result<BenchOptions> options =
      parse({"--op", "reduce_scatter", "--type=bfloat16", "--reduction", "average", "--sizes",
             "64K:1M:2", "--arena", "--in-place", "--iterations", "7", "--json"});
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_EQ(options->operation, Operation::kReduceScatter);
  EXPECT_EQ(options->type, DataType::kBFloat16);
  EXPECT_EQ(options->op, ReduceOp::kAverage);
  EXPECT_EQ(options->min_bytes, 64u << 10);
  EXPECT_EQ(options->max_bytes, 1u << 20);
  EXPECT_EQ(options->factor, 2);
  EXPECT_EQ(options->iterations, 7);
  EXPECT_TRUE(options->in_arena && options->in_place && options->json);
}

TEST(BenchOptions, DescribeASimulation) {
  const Result<BenchOptions> options =
      parse({"--simulate", "--ranks", "8,16", "--gbit=0.1,25", "--network",
             "ranks_per_host=2,latency_us=100,uplink_gbit=40,socket_gb=0"});
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_TRUE(options->simulate);
  EXPECT_EQ(options->simulation.ranks, (std::vector<int>{8, 16}));
  EXPECT_EQ(options->simulation.gbits, (std::vector<double>{0.1, 25}));
  EXPECT_EQ(options->simulation.network.ranks_per_host, 2);
  EXPECT_EQ(options->simulation.network.latency, 100);
  EXPECT_DOUBLE_EQ(options->simulation.network.uplink_byte, 1.0 / 5000);
  EXPECT_EQ(options->simulation.network.touched_byte, 0);

  const Result<BenchOptions> uneven = parse({"--simulate", "--ranks", "6"});
  ASSERT_FALSE(uneven);
  EXPECT_NE(uneven.error().message.find("4 ranks of a host"), std::string::npos);
}

TEST(BenchOptions, ThatAreInvalidAreNamed) {
  const std::vector<std::vector<std::string>> cases = {
      {"--op", "gossip"}, {"--type", "float8"},     {"--sizes", "4M:1M"},  {"--sizes", "1:2:1"},
      {"--sizes", "-4"},  {"--sizes", "9999999G"},  {"--iterations", "0"}, {"--ranks", "8,many"},
      {"--gbit", "0"},    {"--network", "speed=1"}, {"--nonsense"},        {"--type"},
      {"stray"},
  };
  for (const std::vector<std::string>& words : cases) {
    const Result<BenchOptions> options = parse(words);
    ASSERT_FALSE(options) << words[0];
    EXPECT_EQ(options.error().code, ErrorCode::kBadArgument);
    EXPECT_NE(options.error().message.find(words.back()), std::string::npos)
        << options.error().message;
  }
}

TEST(BenchOptions, SizesAreMultiplesOfTheUnitWithoutDuplicates) {
  BenchOptions options;
  options.min_bytes = 4;
  options.max_bytes = 64;
  options.factor = 2;
  EXPECT_EQ(sizes_of(options, 12), (std::vector<std::uint64_t>{12, 24, 60}));
  options.min_bytes = options.max_bytes = 1000;
  EXPECT_EQ(sizes_of(options, 4), (std::vector<std::uint64_t>{1000}));
}

}  // namespace
}  // namespace muster::collective::bench
