// How long an all-reduce takes, by size of the buffer.
//
//   mpirun -np 2 all_reduce_bench
//
// Rank 0 prints, for each size, the median and the tenth percentile of its calls, and how many
// bytes of the buffer were reduced in a second. Buffers are averages of ones and stay so: what is
// reduced is checked. They are written anew before each call, as a training step would.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "muster/collective/communicator.h"

namespace muster::collective {
namespace {

constexpr std::size_t kSizes[] = {4, 64 << 10, 1 << 20, 4 << 20, 64 << 20};
constexpr std::size_t kBytesEachSize = std::size_t{1} << 30;

int report(const Error& error) {
  std::fprintf(stderr, "all_reduce_bench: %s\n", error.to_string().c_str());
  return 1;
}

// One call, in microseconds.
Result<double> time_once(Communicator& world, std::vector<float>& values) {
  std::fill(values.begin(), values.end(), 1.0F);
  if (Status entered = world.barrier(); !entered) return entered.error();
  const auto begin = std::chrono::steady_clock::now();
  const Status reduced = world.all_reduce(values.data(), values.size(), ReduceOp::kAverage);
  const auto end = std::chrono::steady_clock::now();
  if (!reduced) return reduced.error();
  if (std::any_of(values.begin(), values.end(), [](float value) { return value != 1; })) {
    return Error{ErrorCode::kMismatch, "the average of ones is not one"};
  }
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

Status measure(Communicator& world, std::size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  std::vector<double> times;
  const std::size_t calls = std::clamp<std::size_t>(kBytesEachSize / bytes, 10, 1000);
  for (std::size_t i = 0; i < calls; ++i) {
    const Result<double> time = time_once(world, values);
    if (!time) return time.error();
    times.push_back(*time);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  if (world.rank() == 0) {
    std::printf("%9zu bytes  median %10.1f us  p10 %10.1f us  %8.3f GB/s\n", bytes, median,
                times[times.size() / 10], static_cast<double>(bytes) / median / 1000);
  }
  return {};
}

int run() {
  const Result<Options> options = bootstrap_from_environment();
  if (!options) return report(options.error());
  Result<Communicator> world = Communicator::connect(*options);
  if (!world) return report(world.error());
  for (const std::size_t bytes : kSizes) {
    if (Status measured = measure(*world, bytes); !measured) return report(measured.error());
  }
  return 0;
}

}  // namespace
}  // namespace muster::collective

int main() {
  return muster::collective::run();
}
