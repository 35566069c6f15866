// muster-collective-bench: measures the time of a collective by size; see --help.
//
// Measures a collective as a training step would use it: buffers are written before each call and
// read after it, so they are in the caches of the rank that works on them. All ranks enter
// together, after a barrier, and the time of a call is that of its slowest rank. The results of
// every call are checked.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench_options.h"
#include "muster/collective/communicator.h"
#include "pattern.h"

namespace muster::collective::bench {
namespace {

constexpr std::uint64_t kBytesEachSize = std::uint64_t{1} << 30;

int report(const Error& error) {
  std::fprintf(stderr, "muster-collective-bench: %s\n", error.to_string().c_str());
  return error.code == ErrorCode::kBadArgument ? 2 : 1;
}

// The memory of one buffer of a call, from the shared arena or ordinary.
class Buffer {
 public:
  Buffer(Communicator& world, std::uint64_t bytes, bool in_arena) : world_(world) {
    if (in_arena) {
      shared_ = world.allocate_shared(bytes);
      data_ = static_cast<std::byte*>(shared_);
    } else {
      own_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      data_ = own_.get();
    }
  }
  ~Buffer() {
    if (shared_ != nullptr) world_.free_shared(shared_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }

 private:
  Communicator& world_;
  std::unique_ptr<std::byte[]> own_;
  void* shared_ = nullptr;
  std::byte* data_ = nullptr;
};

// One size of one operation: buffers, the call, and the check.
struct Case {
  Communicator& world;
  const BenchOptions& options;
  std::uint64_t bytes;  // of the whole buffer
  std::byte* in = nullptr;
  std::byte* out = nullptr;

  std::uint64_t ranks() const { return static_cast<std::uint64_t>(world.size()); }
  std::uint64_t count() const { return bytes / size_of(options.type); }
  std::uint64_t part() const { return count() / ranks(); }
  std::uint64_t first() const { return static_cast<std::uint64_t>(world.rank()) * part(); }

  // The offset of this rank's own data before the call: all of `in`, or its part of an all_gather.
  void prepare() const;
  Status call() const;
  bool is_right() const;

 private:
  Status ping_pong() const;
  bool is_right_part_by_part() const;
};

void Case::prepare() const {
  const std::size_t width = size_of(options.type);
  if (options.operation == Operation::kAllGather) {
    std::byte* const own = options.in_place ? out + first() * width : in;
    fill(own, part(), options.type, world.rank());
  } else {
    fill(in, count(), options.type, world.rank());
  }
}

Status Case::call() const {
  const Reduction reduction = options.op;
  const std::size_t width = size_of(options.type);
  switch (options.operation) {
    case Operation::kAllReduce:
      return world.all_reduce(in, out, count(), options.type, reduction);
    case Operation::kReduceScatter:
      return world.reduce_scatter(in, out, part(), options.type, reduction);
    case Operation::kAllGather:
      return world.all_gather(options.in_place ? out + first() * width : in, part() * width, out);
    case Operation::kBroadcast:
      return world.broadcast(in, bytes, 0);
    case Operation::kReduce:
      return world.reduce(in, out, count(), options.type, reduction, 0);
    case Operation::kAllToAll:
      return world.all_to_all(in, out, part() * width);
    case Operation::kSendReceive:
      return ping_pong();
    case Operation::kBarrier:
      return world.barrier();
  }
  return {};
}

// To the other rank and back: the time of a call is twice the time of a message.
Status Case::ping_pong() const {
  if (world.rank() > 1) return {};
  if (world.rank() == 0) {
    if (Status sent = world.send(in, bytes, 1); !sent) return sent;
    return world.receive(out, bytes, 1);
  }
  if (Status received = world.receive(out, bytes, 0); !received) return received;
  return world.send(in, bytes, 0);
}

bool Case::is_right_part_by_part() const {
  const std::size_t width = size_of(options.type);
  const std::uint64_t from = options.operation == Operation::kAllToAll ? first() : 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::byte* const theirs = out + static_cast<std::uint64_t>(rank) * part() * width;
    if (!is_pattern(theirs, part(), options.type, rank, from)) return false;
  }
  return true;
}

bool Case::is_right() const {
  switch (options.operation) {
    case Operation::kAllReduce:
      return is_reduced(out, count(), options.type, options.op, world.size());
    case Operation::kReduceScatter:
      return is_reduced(out, part(), options.type, options.op, world.size(), first());
    case Operation::kReduce:
      return world.rank() != 0 || is_reduced(out, count(), options.type, options.op, world.size());
    case Operation::kBroadcast:
      return is_pattern(in, count(), options.type, 0);
    case Operation::kSendReceive:
      return world.rank() > 1 || is_pattern(out, count(), options.type, 1 - world.rank());
    case Operation::kAllGather:
    case Operation::kAllToAll:
      return is_right_part_by_part();
    case Operation::kBarrier:
      return true;
  }
  return true;
}

// The time of one call on this rank, in microseconds.
Result<double> time_once(const Case& one) {
  one.prepare();
  if (Status entered = one.world.barrier(); !entered) return entered.error();
  const auto begin = std::chrono::steady_clock::now();
  const Status done = one.call();
  const auto end = std::chrono::steady_clock::now();
  if (!done) return done.error();
  if (!one.is_right()) {
    return Error{ErrorCode::kSystem, "a result of " + to_string(one.options.operation) + " of " +
                                         std::to_string(one.bytes) + " bytes is wrong on rank " +
                                         std::to_string(one.world.rank())};
  }
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

struct Times {
  double median = 0;
  double p10 = 0;
};

// The times of the slowest rank of each call, equal on every rank.
Result<Times> measure(const Case& one) {
  const int by_size =
      static_cast<int>(std::clamp<std::uint64_t>(kBytesEachSize / one.bytes, 10, 1000));
  const int calls = one.options.iterations > 0 ? one.options.iterations : by_size;
  std::vector<double> times;
  for (int i = 0; i < one.options.warmup + calls; ++i) {
    const Result<double> time = time_once(one);
    if (!time) return time.error();
    if (i >= one.options.warmup) times.push_back(*time);
  }
  if (Status all = one.world.all_reduce(times.data(), times.size(), ReduceOp::kMax); !all) {
    return all.error();
  }
  std::sort(times.begin(), times.end());
  return Times{times[times.size() / 2], times[times.size() / 10]};
}

double bus_factor(Operation operation, int ranks) {
  const double n = ranks;
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * (n - 1) / n;
    case Operation::kReduceScatter:
    case Operation::kAllGather:
    case Operation::kAllToAll:
      return (n - 1) / n;
    case Operation::kSendReceive:
      return 2;  // the bytes go to the other rank and back
    case Operation::kBarrier:
      return 0;
    default:
      return 1;
  }
}

void print_head(const Communicator& world, const BenchOptions& options) {
  if (options.json) return;
  std::printf("# %s, %d ranks on %d %s, %s buffers%s\n", to_string(options.operation).c_str(),
              world.size(), world.cross_size(), world.cross_size() == 1 ? "host" : "hosts",
              options.in_arena ? "shared" : "ordinary", options.in_place ? ", in place" : "");
  std::printf("# %s\n", world.explain(options.type, options.max_bytes).c_str());
  std::printf("%12s %12s %9s %8s %12s %12s %9s %9s\n", "bytes", "count", "type", "op", "median us",
              "p10 us", "algbw", "busbw");
}

void print(const Case& one, const Times& times) {
  const bool reduces = is_reduction(one.options.operation);
  const std::string op = reduces ? std::string(to_string(one.options.op)) : "-";
  const double bandwidth = static_cast<double>(one.bytes) / times.median / 1000;  // GB/s
  const double bus = bandwidth * bus_factor(one.options.operation, one.world.size());
  const std::string type(to_string(one.options.type));
  if (one.options.json) {
    std::printf(
        "{\"operation\": \"%s\", \"bytes\": %llu, \"count\": %llu, \"type\": \"%s\", \"op\": "
        "\"%s\", \"ranks\": %d, \"median_us\": %.3f, \"p10_us\": %.3f, \"algbw_gbps\": %.4f, "
        "\"busbw_gbps\": %.4f}\n",
        to_string(one.options.operation).c_str(), static_cast<unsigned long long>(one.bytes),
        static_cast<unsigned long long>(one.count()), type.c_str(), op.c_str(), one.world.size(),
        times.median, times.p10, bandwidth, bus);
  } else {
    std::printf("%12llu %12llu %9s %8s %12.2f %12.2f %9.3f %9.3f\n",
                static_cast<unsigned long long>(one.bytes),
                static_cast<unsigned long long>(one.count()), type.c_str(), op.c_str(),
                times.median, times.p10, bandwidth, bus);
  }
  std::fflush(stdout);
}

Status run_size(Communicator& world, const BenchOptions& options, std::uint64_t bytes) {
  const Buffer in(world, bytes, options.in_arena);
  const Buffer out(world, options.in_place ? 1 : bytes, options.in_arena);
  if (in.data() == nullptr || out.data() == nullptr) {
    return Error{ErrorCode::kSystem,
                 "cannot allocate " + std::to_string(bytes) + " bytes of shared memory",
                 "run without --arena, or set MUSTER_COLLECTIVE_ARENA_BYTES"};
  }
  const Case one{world, options, bytes, in.data(), options.in_place ? in.data() : out.data()};
  const Result<Times> times = measure(one);
  if (!times) return times.error();
  if (world.rank() == 0) print(one, *times);
  return {};
}

Status check(const Communicator& world, const BenchOptions& options) {
  if (options.operation == Operation::kSendReceive && world.size() < 2) {
    return Error{ErrorCode::kBadArgument, "send_receive requires two ranks or more"};
  }
  if (options.operation == Operation::kAllToAll && options.in_place) {
    return Error{ErrorCode::kBadArgument, "an all_to_all cannot work in place"};
  }
  return {};
}

// Measures every size, rounded to a whole number of elements for each rank.
Status run(Communicator& world, BenchOptions options) {
  if (Status fine = check(world, options); !fine) return fine;
  const bool is_split = options.operation == Operation::kReduceScatter ||
                        options.operation == Operation::kAllGather ||
                        options.operation == Operation::kAllToAll;
  const std::uint64_t unit =
      size_of(options.type) * (is_split ? static_cast<std::uint64_t>(world.size()) : 1);
  if (options.operation == Operation::kBarrier) options.min_bytes = options.max_bytes = unit;
  if (options.operation == Operation::kSendReceive) options.in_place = false;
  if (world.rank() == 0 && !options.explain) print_head(world, options);
  for (const std::uint64_t bytes : sizes_of(options, unit)) {
    if (options.explain) {
      if (world.rank() == 0) {
        std::printf("%12llu  %s\n", static_cast<unsigned long long>(bytes),
                    world.explain(options.type, bytes).c_str());
      }
    } else if (Status done = run_size(world, options, bytes); !done) {
      return done;
    }
  }
  return {};
}

void simulate_all_reduce(BenchOptions options) {
  options.simulation.json = options.json;
  if (!options.has_sizes) {
    options.min_bytes = 4 << 10;
    options.max_bytes = 256 << 20;
    options.factor = 16;
  }
  model::print_simulation(options.simulation, sizes_of(options, sizeof(float)));
}

int start(int count, char** words) {
  const Result<BenchOptions> options = parse_command_line(count, words);
  if (!options) return report(options.error());
  if (options->help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (options->simulate) {
    simulate_all_reduce(*options);
    return 0;
  }
  const Result<Options> complete = bootstrap_from_environment({.transport = options->transport});
  if (!complete) return report(complete.error());
  Result<Communicator> world = Communicator::connect(*complete);
  if (!world) return report(world.error());
  const Status done = run(*world, *options);
  return done ? 0 : report(done.error());
}

}  // namespace
}  // namespace muster::collective::bench

int main(int count, char** words) {
  return muster::collective::bench::start(count, words);
}
