#include "page.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "arguments.h"

namespace bench {
namespace {

using std::chrono::steady_clock;

constexpr int kSpins = 20'000;  // about a millisecond, then others may have the core
constexpr std::chrono::milliseconds kBeforeHelp{1};
constexpr std::chrono::seconds kPatience{120};

// Two cores that ask for the same line without a pause slow each other down.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) fail("sched_getaffinity failed");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity failed");
}

}  // namespace

// One writer each; 128 bytes, since neighbouring lines are fetched in pairs.
struct alignas(128) Page::Line {
  std::atomic<std::uint64_t> count;
  std::atomic<double> value;
};

struct Page::Memory {
  Line arrived[kMostRanks];
  Line said[kMostRanks];
  Line ball[2];
};

Page::Page(const std::string& path, int rank, int ranks, int cores) : rank_(rank), ranks_(ranks) {
  static_assert(sizeof(Memory) <= kPageBytes);
  if (ranks < 2 || ranks > kMostRanks || rank < 0 || rank >= ranks) fail("no such rank");
  cores_ = allowed_cores();
  if (cores < 2 || cores_.size() < static_cast<std::size_t>(cores)) fail("too few cores");
  cores_.resize(static_cast<std::size_t>(cores));
  pin_to(cores_[static_cast<std::size_t>(rank) % cores_.size()]);

  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) fail("cannot open " + path);
  void* memory = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) fail("cannot map " + path);
  memory_ = static_cast<Memory*>(memory);
}

Page::~Page() {
  munmap(memory_, kPageBytes);
}

void Page::meet() {
  turn_++;
  memory_->arrived[rank_].count.store(turn_, std::memory_order_release);
  const int before_yield = is_crowded() ? 16 : kSpins;
  int spins = 0;
  steady_clock::time_point since;
  for (int other = 0; other < ranks_; other++) {
    while (memory_->arrived[other].count.load(std::memory_order_acquire) < turn_) {
      relax();
      if (++spins < before_yield) continue;
      if (spins == before_yield) since = steady_clock::now();
      sched_yield();
      const steady_clock::duration waited = steady_clock::now() - since;
      if (waited > kPatience) fail("a rank did not come to the barrier");
      if (help_ && waited > kBeforeHelp) help_();
    }
  }
}

void Page::bounce(int turns) {
  for (int i = 0; i < turns; i++) {
    ball_++;
    if (rank_ == 0) memory_->ball[0].count.store(ball_, std::memory_order_release);
    while (memory_->ball[1 - rank_].count.load(std::memory_order_acquire) < ball_) relax();
    if (rank_ == 1) memory_->ball[1].count.store(ball_, std::memory_order_release);
  }
}

double Page::probe() {
  constexpr int kTurns = 100;
  constexpr int kBatches = 15;
  meet();
  if (rank_ > 1) {
    // Asleep and not at a barrier, where they would take turns with the two.
    while (memory_->ball[1].count.load(std::memory_order_acquire) < ball_ + kTurns * kBatches) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    ball_ += kTurns * kBatches;
    return from_first(0);
  }
  std::vector<double> nanoseconds;
  for (int batch = 0; batch < kBatches; batch++) {
    const steady_clock::time_point start = steady_clock::now();
    bounce(kTurns);
    const std::chrono::duration<double, std::nano> took = steady_clock::now() - start;
    nanoseconds.push_back(took.count() / (2 * kTurns));
  }
  std::nth_element(nanoseconds.begin(), nanoseconds.begin() + kBatches / 2, nanoseconds.end());
  return from_first(nanoseconds[kBatches / 2]);
}

// Behind a barrier at both ends: nobody reads before it is said, nor says more before it is read.
void Page::post(double value) {
  meet();
  memory_->said[rank_].value.store(value, std::memory_order_relaxed);
  meet();
}

double Page::from_first(double value) {
  post(value);
  return memory_->said[0].value.load(std::memory_order_relaxed);
}

double Page::sum(double value) {
  post(value);
  double all = 0;
  for (int other = 0; other < ranks_; other++) {
    all += memory_->said[other].value.load(std::memory_order_relaxed);
  }
  return all;
}

double Page::largest(double value) {
  post(value);
  double most = value;
  for (int other = 0; other < ranks_; other++) {
    most = std::max(most, memory_->said[other].value.load(std::memory_order_relaxed));
  }
  return most;
}

}  // namespace bench
