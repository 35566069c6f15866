#include "engine/shim/sampler.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/units.h"
#include "engine/metric_log.h"
#include "engine/shim/process_usage.h"
#include "engine/shim/socket_usage.h"
#include "job/metric.h"

namespace muster::engine {

using Steady = std::chrono::steady_clock;

namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

class Sampler {
 public:
  Sampler(const SamplerPlan& plan, LookAtGpus gpus)
      : processes_(plan.shim, ::getpid()), gpus_(std::move(gpus)), last_(plan.started) {}

  MetricSample take() {
    const Steady::time_point now = Steady::now();
    const double passed = std::max(seconds(now - std::exchange(last_, now)), 1e-3);
    MetricSample sample{.time = base::SystemClock().now(), .rank = {}, .values = {}};
    const auto put = [&](std::string_view name, double value) {
      sample.values.emplace_back(name, value);
    };
    const ProcessUsage::Usage usage = processes_.look();
    put(job::kCpuPercent, 100 * seconds(usage.cpu) / passed);
    put(job::kMemoryBytes, static_cast<double>(usage.memory_bytes));
    if (const auto sockets = tcp_sockets()) {
      const Traffic traffic =
          sockets_.look(*sockets, [&] { return socket_inodes(usage.processes); });
      put(job::kNetworkReceived, static_cast<double>(traffic.received) / passed);
      put(job::kNetworkSent, static_cast<double>(traffic.sent) / passed);
    }
    if (!gpus_) return sample;
    for (const auto& [name, value] : gpus_()) put(name, value);
    return sample;
  }

 private:
  ProcessUsage processes_;
  SocketUsage sockets_;
  LookAtGpus gpus_;
  Steady::time_point last_;
};

/// False: nobody reads any more.
bool wait(Steady::duration duration) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(duration);
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, static_cast<int>(whole.count())) <= 0;
}

}  // namespace

std::vector<std::string> arguments_of(const SamplerPlan& plan) {
  std::vector<std::string> arguments{std::to_string(plan.shim),
                                     std::to_string(plan.started.time_since_epoch().count()),
                                     std::to_string(plan.interval.count()), plan.nvml};
  arguments.insert(arguments.end(), plan.gpus.begin(), plan.gpus.end());
  return arguments;
}

base::Result<SamplerPlan> read_sampler_plan(const std::vector<std::string>& arguments) {
  constexpr size_t kFirstGpu = 4;
  const base::Error none{.code = base::ErrorCode::kInvalid,
                         .what = "this names no task to measure"};
  if (arguments.size() < kFirstGpu) return none;
  const auto shim = base::number_of<pid_t>(arguments[0]);
  const auto started = base::number_of<int64_t>(arguments[1]);
  const auto interval = base::number_of<int>(arguments[2]);
  if (!shim || !started || !interval || *interval <= 0) return none;
  return SamplerPlan{.shim = *shim,
                     .started = Steady::time_point(Steady::duration(*started)),
                     .interval = std::chrono::milliseconds(*interval),
                     .nvml = arguments[3],
                     .gpus = {arguments.begin() + kFirstGpu, arguments.end()}};
}

int run_sampler(const SamplerPlan& plan, LookAtGpus gpus) {
  ::signal(SIGPIPE, SIG_IGN);
  Sampler sampler(plan, std::move(gpus));
  while (true) {
    const Steady::time_point begin = Steady::now();
    if (!base::write_all(STDOUT_FILENO, encode_sample(sampler.take()))) return 0;
    const Steady::time_point end = Steady::now();
    const Steady::duration rest =
        std::max<Steady::duration>(begin + plan.interval - end, kRestForWork * (end - begin));
    if (!wait(rest)) return 0;
  }
}

}  // namespace muster::engine
