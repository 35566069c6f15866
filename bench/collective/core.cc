#include "core.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "arguments.h"
#include "quiet.h"

namespace bench {
namespace {

using std::chrono::steady_clock;

constexpr int kSpins = 20'000;  // about a millisecond, then the thread yields the core
constexpr std::chrono::milliseconds kBeforeHelp{1};
constexpr std::chrono::seconds kPatience{120};

// Two cores that request the same line without a pause slow each other down.
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

// Each line has one writer. It has 128 bytes, since the processor fetches neighbouring lines in
// pairs.
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
  if (ranks < 2 || ranks > kMostRanks || rank < 0 || rank >= ranks) fail("invalid rank");
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
      if (waited > kPatience) fail("a rank did not reach the barrier");
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
    // The other ranks sleep instead of waiting at a barrier, where they would compete with the two.
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

// The barriers before and after guarantee that no rank reads a value before it is posted, or posts
// the next value before all ranks have read this one.
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

namespace {

// 16 ranks of at most 15 sum to 240: bfloat16 holds whole numbers up to 256.
constexpr int kValues = 16;
constexpr std::uint64_t kPeriod = 61;
constexpr std::uint64_t kBlock = kPeriod * 32;  // elements that are written or compared at a time

int value_of(std::uint64_t element, int rank) {
  const std::uint64_t place = (element + 7 * static_cast<std::uint64_t>(rank)) % kPeriod;
  return static_cast<int>(place * place % kPeriod % kValues);
}

// Whole numbers below 2048 are exact in binary16: exponent and mantissa are taken from the float32.
std::uint16_t float16_bits(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = ((bits >> 23) & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>(exponent << 10 | (bits >> 13 & 0x3ff));
}

void store(Type type, int value, unsigned char* at) {
  const auto wide = static_cast<float>(value);
  const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(wide) >> 16);
  const std::uint16_t half = float16_bits(wide);
  if (type == Type::kFloat32) std::memcpy(at, &wide, sizeof wide);
  if (type == Type::kBFloat16) std::memcpy(at, &upper, sizeof upper);
  if (type == Type::kFloat16) std::memcpy(at, &half, sizeof half);
}

}  // namespace

Type type_named(const std::string& name) {
  if (name == "float32") return Type::kFloat32;
  if (name == "float16") return Type::kFloat16;
  if (name == "bfloat16") return Type::kBFloat16;
  fail("unknown type: " + name);
}

std::uint64_t size_of(Type type) {
  return type == Type::kFloat32 ? 4 : 2;
}

Pattern::Pattern(Type type, int rank, int ranks)
    : element_(size_of(type)),
      end_(kPeriod * element_),
      own_((kBlock + kPeriod) * element_),
      sum_((kBlock + kPeriod) * element_) {
  for (std::uint64_t i = 0; i < kBlock + kPeriod; i++) {
    int sum = 0;
    for (int other = 0; other < ranks; other++) sum += value_of(i, other);
    store(type, value_of(i, rank), &own_[i * element_]);
    store(type, sum, &sum_[i * element_]);
  }
}

void Pattern::write(void* data, std::uint64_t bytes) const {
  const unsigned char* from = own_.data() + place_;
  auto* to = static_cast<unsigned char*>(data);
  const std::uint64_t block = kBlock * element_;
  for (std::uint64_t done = 0; done < bytes; done += block) {
    std::memcpy(to + done, from, std::min(block, bytes - done));
  }
}

bool Pattern::is_sum(const void* data, std::uint64_t bytes) const {
  const unsigned char* expected = sum_.data() + place_;
  const auto* found = static_cast<const unsigned char*>(data);
  const std::uint64_t block = kBlock * element_;
  for (std::uint64_t done = 0; done < bytes; done += block) {
    if (std::memcmp(found + done, expected, std::min(block, bytes - done)) != 0) return false;
  }
  return true;
}

void read_through(const void* data, std::uint64_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < bytes / sizeof *words; i++) sum += words[i];
  // Makes the sum appear used, so that the compiler keeps the loop.
  asm volatile("" : : "r"(sum));
}

namespace {

constexpr std::uint64_t kBatchedBytes = 1024;
constexpr double kBatchSeconds = 100e-6;
constexpr double kMostWait = 0.02;     // share of a sample spent waiting for the core
constexpr double kMostForeign = 0.10;  // share of the cores' time used by other processes
constexpr int kTries = 2;
constexpr std::uint64_t kLongBytes = 64 << 20;  // few calls: each takes 10 ms and more
constexpr std::size_t kPrintedSamples = 100;

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

int rank_from_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  fail("the rank is unknown: set --rank=R");
}

struct Buffers {
  void* in;
  void* out;
  std::uint64_t bytes;
};

struct Sample {
  double seconds;     // of the slowest rank, for one call
  double wait_share;  // of the rank that waited most for its core
};

struct Outcome {
  std::vector<Sample> samples;
  double probe_before = 0;
  double probe_after = 0;
  double foreign = 0;
  std::uint64_t batch = 1;
};

// The calls of one size in one place.
class Burst {
 public:
  Burst(const Plan& plan, Page& page, const Subject& subject, const Buffers& buffers)
      : plan_(plan),
        page_(page),
        subject_(subject),
        buffers_(buffers),
        pattern_(plan.type, plan.rank, plan.ranks),
        call_(subject.prepare(buffers.in, buffers.out, buffers.bytes)) {}

  Outcome run() {
    warm_up();
    Outcome outcome = once();
    for (int i = 1; i < kTries && outcome.foreign > kMostForeign; i++) outcome = once();
    return outcome;
  }

 private:
  void write() {
    pattern_.advance();
    pattern_.write(buffers_.in, buffers_.bytes);
  }

  void read() {
    if (!subject_.is_sum) return read_through(buffers_.out, buffers_.bytes);
    if (!pattern_.is_sum(buffers_.out, buffers_.bytes)) fail("the result is wrong");
  }

  // The first call connects and allocates. The last call shows how long a call takes.
  void warm_up() {
    const int calls = buffers_.bytes < kLongBytes ? 10 : 1;
    double took = 0;
    double all = 0;
    for (int i = 0; i < calls && all < plan_.burst_seconds; i++) all += took = take().seconds;
    if (buffers_.bytes > kBatchedBytes) return;
    batch_ = static_cast<std::uint64_t>(std::clamp(kBatchSeconds / took, 1.0, 512.0));
  }

  Outcome once() {
    Outcome outcome;
    outcome.batch = batch_;
    const steady_clock::time_point start = steady_clock::now();
    const double idle = idle_time(page_.cores());
    const double own = page_.sum(own_processor_time());
    outcome.probe_before = page_.probe();
    double timed = 0;
    do {
      outcome.samples.push_back(take());
      timed += outcome.samples.back().seconds * static_cast<double>(batch_);
    } while (page_.from_first(is_enough(outcome, timed, start) ? 0 : 1) != 0);
    outcome.probe_after = page_.probe();
    rest(page_.from_first(seconds_since(start)));

    const double own_used = page_.sum(own_processor_time()) - own;
    const double all = seconds_since(start) * static_cast<double>(page_.cores().size());
    const double busy = all - (idle_time(page_.cores()) - idle);
    outcome.foreign = page_.from_first(std::max(0.0, busy - own_used) / all);
    return outcome;
  }

  // Writing and verifying may take longer than the calls, so the time of the whole burst is
  // limited, too.
  bool is_enough(const Outcome& outcome, double timed, steady_clock::time_point start) const {
    if (outcome.samples.size() < (buffers_.bytes < kLongBytes ? 5 : 2)) return false;
    return timed > plan_.burst_seconds || seconds_since(start) > 3 * plan_.burst_seconds;
  }

  // Rests in one piece: the host judges the load over longer spans.
  void rest(double seconds) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  Sample take() {
    if (batch_ == 1) write();
    const std::uint64_t wait = run_queue_wait();
    // Two barriers: after the first all ranks are awake, so that they leave the second one
    // together.
    page_.meet();
    page_.meet();
    const steady_clock::time_point start = steady_clock::now();
    if (batch_ == 1) {
      call_();
    } else {
      for (std::uint64_t i = 0; i < batch_; i++) {
        write();
        call_();
        read();
      }
    }
    const double took = seconds_since(start);
    const double waited = static_cast<double>(run_queue_wait() - wait) / 1e9;
    if (batch_ == 1) read();
    const double slowest = page_.largest(took);
    const double most_waited = page_.largest(waited);
    return {slowest / static_cast<double>(batch_), most_waited / slowest};
  }

  const Plan& plan_;
  Page& page_;
  const Subject& subject_;
  Buffers buffers_;
  Pattern pattern_;
  Subject::Call call_;
  std::uint64_t batch_ = 1;
};

void print(const Plan& plan, const std::string& place, std::uint64_t bytes, const Outcome& outcome,
           bool counts_waits) {
  std::vector<double> kept;
  for (const Sample& sample : outcome.samples) {
    if (!counts_waits || sample.wait_share <= kMostWait) kept.push_back(sample.seconds * 1e6);
  }
  std::printf("{\"bytes\": %llu, \"place\": \"%s\", \"type\": \"%s\", \"probe\": [%.1f, %.1f], ",
              static_cast<unsigned long long>(bytes), place.c_str(), plan.type_name.c_str(),
              outcome.probe_before, outcome.probe_after);
  std::printf("\"foreign\": %.3f, \"batch\": %llu, \"count\": %zu, \"dropped\": %zu, \"us\": [",
              outcome.foreign, static_cast<unsigned long long>(outcome.batch), kept.size(),
              outcome.samples.size() - kept.size());
  // Samples are taken evenly from the burst, so that the printed ones have the same distribution.
  const std::size_t step = std::max<std::size_t>(1, kept.size() / kPrintedSamples);
  for (std::size_t i = 0; i < kept.size(); i += step) {
    std::printf("%s%.4f", i == 0 ? "" : ", ", kept[i]);
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

void* allocate(const Subject& subject, std::uint64_t bytes) {
  const std::uint64_t rounded = (bytes + 63) / 64 * 64;
  void* memory = subject.allocate ? subject.allocate(rounded) : std::aligned_alloc(64, rounded);
  if (memory == nullptr) fail("no memory for " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0, bytes);
  return memory;
}

void release(const Subject& subject, void* memory) {
  if (subject.release) {
    subject.release(memory);
  } else {
    std::free(memory);
  }
}

}  // namespace

Plan plan_from(const Arguments& arguments) {
  errno = 0;
  if (sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) != 0) {
    fail("run it without real-time priority and niceness, as users do");
  }
  Plan plan;
  plan.page = arguments.text("page", "");
  plan.ranks = static_cast<int>(arguments.number("ranks", 2));
  plan.cores = static_cast<int>(arguments.number("cores", 2));
  const std::string rank = arguments.text("rank", "");
  plan.rank = rank.empty() ? rank_from_environment() : std::atoi(rank.c_str());
  plan.type_name = arguments.text("type", "float32");
  plan.type = type_named(plan.type_name);
  plan.places = arguments.list("places", "in");
  for (const std::string& size : arguments.list("sizes", "4")) {
    plan.sizes.push_back(std::strtoull(size.c_str(), nullptr, 10));
  }
  plan.burst_seconds = static_cast<double>(arguments.number("burst", 50)) / 1000;
  plan.has_threads = arguments.number("threads", 0) != 0;
  return plan;
}

void measure(const Plan& plan, Page& page, const Subject& subject) {
  const bool counts_waits = !plan.has_threads && !page.is_crowded();
  for (const std::uint64_t bytes : plan.sizes) {
    for (const std::string& place : plan.places) {
      Buffers buffers{allocate(subject, bytes), nullptr, bytes};
      buffers.out = place == "in" ? buffers.in : allocate(subject, bytes);
      const Outcome outcome = Burst(plan, page, subject, buffers).run();
      if (plan.rank == 0) print(plan, place, bytes, outcome, counts_waits);
      page.meet();
      if (buffers.out != buffers.in) release(subject, buffers.out);
      release(subject, buffers.in);
    }
  }
}

}  // namespace bench
