#include "bench_options.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace muster::collective::bench {
namespace {

constexpr std::array kOperations = {
    std::pair{Operation::kAllReduce, "all_reduce"},
    std::pair{Operation::kReduceScatter, "reduce_scatter"},
    std::pair{Operation::kAllGather, "all_gather"},
    std::pair{Operation::kBroadcast, "broadcast"},
    std::pair{Operation::kReduce, "reduce"},
    std::pair{Operation::kAllToAll, "all_to_all"},
    std::pair{Operation::kSendReceive, "send_receive"},
    std::pair{Operation::kBarrier, "barrier"},
};

// Options without a short form.
enum Long : int {
  kOp = 256,
  kReduction,
  kType,
  kSizes,
  kTransport,
  kIterations,
  kWarmup,
  kArena,
  kInPlace,
  kExplain,
  kJson,
  kSimulate,
  kRanks,
  kGbit,
  kNetwork,
  kHelp
};

constexpr std::array kOptions = {
    option{"op", required_argument, nullptr, kOp},
    option{"reduction", required_argument, nullptr, kReduction},
    option{"type", required_argument, nullptr, kType},
    option{"sizes", required_argument, nullptr, kSizes},
    option{"transport", required_argument, nullptr, kTransport},
    option{"iterations", required_argument, nullptr, kIterations},
    option{"warmup", required_argument, nullptr, kWarmup},
    option{"arena", no_argument, nullptr, kArena},
    option{"in-place", no_argument, nullptr, kInPlace},
    option{"explain", no_argument, nullptr, kExplain},
    option{"json", no_argument, nullptr, kJson},
    option{"simulate", no_argument, nullptr, kSimulate},
    option{"ranks", required_argument, nullptr, kRanks},
    option{"gbit", required_argument, nullptr, kGbit},
    option{"network", required_argument, nullptr, kNetwork},
    option{"help", no_argument, nullptr, kHelp},
    option{nullptr, 0, nullptr, 0},
};

Error wrong(const std::string& name, const std::string& value, const std::string& expected) {
  return {ErrorCode::kBadArgument, "--" + name + " is '" + value + "', not " + expected,
          "see --help"};
}

template <typename Enum, int First, int Last>
std::optional<Enum> named(const std::string& name) {
  for (int number = First; number <= Last; ++number) {
    if (muster::collective::to_string(static_cast<Enum>(number)) == name) {
      return static_cast<Enum>(number);
    }
  }
  return std::nullopt;
}

std::optional<Operation> operation_named(const std::string& name) {
  for (const auto& [operation, text] : kOperations) {
    if (name == text) return operation;
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "64", "64K", "16M", "1G".
std::optional<std::uint64_t> bytes_of(std::string text) {
  constexpr std::string_view kUnits = "KMG";
  int shift = 0;
  if (!text.empty()) {
    const std::size_t unit = kUnits.find(text.back());
    if (unit != std::string_view::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      text.pop_back();
    }
  }
  const std::optional<std::uint64_t> value = number<std::uint64_t>(text);
  if (!value || *value > (std::uint64_t{1} << 42) >> shift) return std::nullopt;
  return *value << shift;
}

// MIN[:MAX[:FACTOR]]
bool read_sizes(const std::string& text, BenchOptions& options) {
  options.has_sizes = true;
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  const std::optional<std::uint64_t> min = bytes_of(text.substr(0, first));
  if (!min) return false;
  options.min_bytes = options.max_bytes = *min;
  if (first == std::string::npos) return true;
  const std::optional<std::uint64_t> max = bytes_of(text.substr(first + 1, second - first - 1));
  if (!max || *max < *min) return false;
  options.max_bytes = *max;
  if (second == std::string::npos) return true;
  const std::optional<double> factor = number<double>(text.substr(second + 1));
  if (!factor || !(*factor > 1)) return false;
  options.factor = *factor;
  return true;
}

template <typename T>
bool keep(const std::optional<T>& value, T& into) {
  if (value) into = *value;
  return value.has_value();
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// A,B,C: numbers of at least `least`.
template <typename T>
bool read_list(const std::string& text, T least, T most, std::vector<T>& list) {
  list.clear();
  for (const std::string& word : words_of(text)) {
    const std::optional<T> value = number<T>(word);
    if (!value || !(*value >= least && *value <= most)) return false;
    list.push_back(*value);
  }
  return true;
}

// KEY=VALUE,... Rates are read in Gbit/s or GB/s.
bool read_network(const std::string& text, model::Network& network) {
  for (const std::string& word : words_of(text)) {
    const std::size_t middle = word.find('=');
    if (middle == std::string::npos) return false;
    const std::string key = word.substr(0, middle);
    const std::optional<double> value = number<double>(word.substr(middle + 1));
    if (!value || !(*value >= 0 && *value <= 1e9)) return false;
    const double byte = *value == 0 ? 0 : 1 / (*value * 1000);  // of a rate in GB/s
    if (key == "ranks_per_host" && *value >= 1 && *value <= 1024) {
      network.ranks_per_host = static_cast<int>(*value);
    } else if (key == "hosts_per_switch" && *value <= 4096) {
      network.hosts_per_switch = static_cast<int>(*value);
    } else if (key == "latency_us") {
      network.latency = *value;
    } else if (key == "hop_us") {
      network.hop = *value;
    } else if (key == "message_us") {
      network.message = *value;
    } else if (key == "burst") {
      network.burst = *value;
    } else if (key == "uplink_gbit") {
      network.uplink_byte = 8 * byte;
    } else if (key == "memory_gb") {
      network.local_byte = byte;
    } else if (key == "socket_gb") {
      network.touched_byte = byte;
    } else if (key == "reduce_gb") {
      network.reduced_byte = byte;
    } else {
      return false;
    }
  }
  return true;
}

// Reads one option. Returns false if its argument is invalid.
bool take(int which, const std::string& value, BenchOptions& options) {
  switch (which) {
    case kOp:
      return keep(operation_named(value), options.operation);
    case kReduction:
      return keep(named<ReduceOp, 1, 6>(value), options.op);
    case kType:
      return keep(named<DataType, 1, 13>(value), options.type);
    case kSizes:
      return read_sizes(value, options);
    case kTransport:
      options.transport = value;
      return true;
    case kIterations:
      return keep(number<int>(value), options.iterations) && options.iterations > 0;
    case kWarmup:
      return keep(number<int>(value), options.warmup) && options.warmup >= 0;
    case kArena:
      return options.in_arena = true;
    case kInPlace:
      return options.in_place = true;
    case kExplain:
      return options.explain = true;
    case kJson:
      return options.json = true;
    case kSimulate:
      return options.simulate = true;
    case kRanks:
      return read_list(value, 2, 1 << 14, options.simulation.ranks);
    case kGbit:
      return read_list(value, 1e-3, 1e6, options.simulation.gbits);
    case kNetwork:
      return read_network(value, options.simulation.network);
    default:
      return options.help = true;
  }
}

std::string expected_of(int which) {
  switch (which) {
    case kOp:
      return "an operation (all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, "
             "send_receive, barrier)";
    case kReduction:
      return "a reduction (sum, average, min, max, product, adasum)";
    case kType:
      return "a type (float32, float64, float16, bfloat16, int8 .. uint64, bool)";
    case kSizes:
      return "MIN[:MAX[:FACTOR]] in bytes, for example 4:64M:4";
    case kRanks:
      return "a list of numbers of ranks, for example 8,64,512";
    case kGbit:
      return "a list of bandwidths in Gbit/s, for example 10,100";
    case kNetwork:
      return "a list of KEY=VALUE; see --help for the keys";
    default:
      return "a whole number";
  }
}

}  // namespace

const char* const kUsage =
    "usage: muster-collective-bench [options], under mpirun, srun, torchrun or MUSTER_*\n"
    "\n"
    "Measures one collective over all ranks, size by size, and checks its results.\n"
    "\n"
    "  --op NAME           all_reduce (default), reduce_scatter, all_gather, broadcast, reduce,\n"
    "                      all_to_all, send_receive (rank 0 to rank 1 and back), barrier\n"
    "  --reduction NAME    sum (default), average, min, max, product, adasum\n"
    "  --type NAME         float32 (default), float64, float16, bfloat16, int8 .. uint64, bool\n"
    "  --sizes MIN:MAX:F   bytes from MIN to MAX, each F times the one before (4:64M:4)\n"
    "  --in-place          write results into the input buffers\n"
    "  --arena             buffers from Communicator::allocate_shared\n"
    "  --transport NAME    auto, shm, tcp, mpi, nccl\n"
    "  --iterations N      measured calls for each size (default: fewer for larger sizes)\n"
    "  --warmup N          calls before the measured calls (5)\n"
    "  --explain           print the algorithm for each size and why, without measuring\n"
    "  --json              one JSON object per line instead of a table\n"
    "\n"
    "  --simulate          measure nothing; print the times of an all_reduce on a simulated "
    "network,\n"
    "                      by algorithm, and the scaling of training\n"
    "  --ranks LIST        of the simulation (8,32,128,512,4096)\n"
    "  --gbit LIST         bandwidths of a host's network port in Gbit/s (10,100,400)\n"
    "  --network K=V,...   ranks_per_host (4), hosts_per_switch (0: one switch), uplink_gbit (of "
    "a\n"
    "                      switch; 0: no limit), latency_us (27), hop_us (1), message_us (3),\n"
    "                      burst (0: bytes that a port may save up), memory_gb (8), socket_gb "
    "(10), reduce_gb (8): GB/s of one processor\n"
    "\n"
    "bytes is the size of the whole buffer (the parts of all ranks). time is the time of the\n"
    "slowest rank in each call. algbw is bytes / time. busbw is the load of each link under an\n"
    "optimal algorithm: algbw times 2 (n-1) / n for all_reduce, and times (n-1) / n for\n"
    "reduce_scatter, all_gather and all_to_all.\n";

std::string to_string(Operation operation) {
  for (const auto& [one, text] : kOperations) {
    if (one == operation) return text;
  }
  return "an unknown operation";
}

bool is_reduction(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kReduce;
}

Result<BenchOptions> parse_command_line(int count, char** words) {
  BenchOptions options;
  opterr = 0;
  optind = 1;
  for (;;) {
    const int at = std::min(optind, count - 1);
    const int which = ::getopt_long(count, words, "", kOptions.data(), nullptr);
    if (which == -1) break;
    if (which == '?') {
      return Error{ErrorCode::kBadArgument,
                   std::string("'") + words[at] + "' is not an option, or its argument is missing",
                   "see --help"};
    }
    const std::string value = optarg == nullptr ? "" : optarg;
    if (take(which, value, options)) continue;
    return wrong(kOptions[static_cast<std::size_t>(which - kOp)].name, value, expected_of(which));
  }
  const int width = options.simulation.network.ranks_per_host;
  for (const int ranks : options.simulation.ranks) {
    if (!options.simulate || ranks % width == 0) continue;
    return Error{ErrorCode::kBadArgument,
                 std::to_string(ranks) + " ranks are not a multiple of the " +
                     std::to_string(width) + " ranks of a host",
                 "set --ranks or --network ranks_per_host=N"};
  }
  if (optind < count) {
    return Error{ErrorCode::kBadArgument,
                 std::string("'") + words[optind] + "' is an unexpected argument", "see --help"};
  }
  return options;
}

std::vector<std::uint64_t> sizes_of(const BenchOptions& options, std::uint64_t unit) {
  std::vector<std::uint64_t> sizes;
  auto exact = static_cast<double>(std::max<std::uint64_t>(options.min_bytes, 1));
  while (exact <= static_cast<double>(options.max_bytes) + 0.5) {
    const auto bytes = static_cast<std::uint64_t>(std::llround(exact));
    const std::uint64_t whole = std::max(bytes / unit, std::uint64_t{1}) * unit;
    if (sizes.empty() || whole > sizes.back()) sizes.push_back(whole);
    if (options.min_bytes == options.max_bytes) break;
    exact *= options.factor;
  }
  return sizes;
}

}  // namespace muster::collective::bench
