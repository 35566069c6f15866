// The command line of muster-collective-bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/report.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective::bench {

enum class Operation {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendReceive,
  kBarrier,
};

std::string to_string(Operation operation);

/// Whether the operation is a reduction, which has a type and an operator.
bool is_reduction(Operation operation);

struct BenchOptions {
  Operation operation = Operation::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::uint64_t min_bytes = 4;
  std::uint64_t max_bytes = std::uint64_t{64} << 20;
  double factor = 4;
  bool has_sizes = false;  // given on the command line
  int iterations = 0;      // 0: by size
  int warmup = 5;
  std::string transport = {};
  bool in_arena = false;
  bool in_place = false;
  bool explain = false;
  bool json = false;
  bool help = false;
  bool simulate = false;
  model::Request simulation = {};
};

/// Errors: kBadArgument, naming the option and its valid values.
Result<BenchOptions> parse_command_line(int count, char** words);

/// The sizes to measure, ascending, without duplicates, all multiples of `unit`.
std::vector<std::uint64_t> sizes_of(const BenchOptions& options, std::uint64_t unit);

extern const char* const kUsage;

}  // namespace muster::collective::bench
