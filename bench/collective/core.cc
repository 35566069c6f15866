#include "core.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "quiet.h"

namespace bench {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kBatchedBytes = 1024;
constexpr double kBatchSeconds = 100e-6;
constexpr double kMostWait = 0.02;     // of a sample, spent waiting for the core
constexpr double kMostForeign = 0.10;  // of the cores' time, used by others
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
  fail("which rank is this? --rank=R");
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

// One size in one place.
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

  // The first call connects and allocates; the last shows how long one takes.
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

  // Writing and verifying may take longer than the calls: the whole burst has its bounds, too.
  bool is_enough(const Outcome& outcome, double timed, steady_clock::time_point start) const {
    if (outcome.samples.size() < (buffers_.bytes < kLongBytes ? 5 : 2)) return false;
    return timed > plan_.burst_seconds || seconds_since(start) > 3 * plan_.burst_seconds;
  }

  // In pieces would be no rest: the host looks at longer spans.
  void rest(double seconds) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  Sample take() {
    if (batch_ == 1) write();
    const std::uint64_t wait = run_queue_wait();
    // Twice: after the first everyone is awake, so that everyone leaves the second at once.
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
  // Evenly over the burst, so that what is printed has the same distribution.
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
    fail("under real-time priority or niceness the figures would be nobody's");
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
