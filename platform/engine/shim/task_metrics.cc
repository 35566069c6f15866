#include "engine/shim/task_metrics.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/shim/channels.h"
#include "engine/shim/folder_socket.h"
#include "engine/shim/poll_wait.h"
#include "engine/shim/sampler.h"
#include "launch/task_plan.h"

namespace muster::engine {

namespace {

// Reports read at once: the task's output must not wait for a flood of them.
constexpr int kMostReportsAtOnce = 256;

}  // namespace

TaskMetrics::TaskMetrics(const TaskFolder& folder, std::filesystem::path generated,
                         SamplingPlan plan, const base::Clock& clock,
                         std::function<void(std::string)> notice)
    : generated_(std::move(generated)),
      plan_(std::move(plan)),
      clock_(clock),
      writer_(folder.metrics()),
      intake_(writer_, std::move(notice)),
      measures_gpus_(!plan_.gpus.empty()) {}

void TaskMetrics::start() {
  // Where its folder can hold no socket, the program has to print its reports.
  if (auto bound = bind_in(generated_.string(), launch::kReportSocket)) {
    reports_ = *std::move(bound);
  }
  started_ = Steady::now();
  if (plan_.interval.count() > 0) sampling_starts_ = started_ + plan_.first;
}

void TaskMetrics::watch(std::vector<pollfd>& polled) const {
  polled.push_back({reports_.get(), POLLIN, 0});
  polled.push_back({samples_.get(), POLLIN, 0});
}

int TaskMetrics::milliseconds_to_wait() const {
  int wait = -1;
  if (sampling_starts_) wait = milliseconds_of(*sampling_starts_ - Steady::now());
  if (const auto due = intake_.due()) {
    wait = sooner(wait, milliseconds_of(*due - clock_.now()));
  }
  return wait;
}

void TaskMetrics::serve(std::span<const pollfd> polled) {
  if (polled[0].revents != 0) read_reports();
  if (polled[1].revents != 0) read_samples();
  intake_.write_waiting(clock_.now());
  if (sampling_starts_ && Steady::now() >= *sampling_starts_) start_sampler();
}

void TaskMetrics::read_reports() {
  std::array<char, kLongestReport + 1> buffer;
  for (int i = 0; reports_ && i < kMostReportsAtOnce; ++i) {
    const ssize_t count = ::recv(reports_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0) return;
    intake_.take({buffer.data(), static_cast<size_t>(count)}, std::nullopt, clock_.now());
  }
}

void TaskMetrics::start_sampler() {
  sampling_starts_.reset();
  has_sampled_ = false;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string other = (self.parent_path() / "muster-gpu-sampler").string();
  measures_gpus_ = measures_gpus_ && !error && start_sampler(other, {"muster-gpu-sampler"});
  // This very program, even where another release has taken its place meanwhile.
  if (!measures_gpus_) start_sampler("/proc/self/exe", {"muster-shim", "--sample"});
}

bool TaskMetrics::start_sampler(const std::string& program, std::vector<std::string> argv) {
  auto output = make_output_pipe();
  if (!output) return false;
  base::SpawnOptions options{.argv = std::move(argv),
                             .program = program,
                             .environment = base::current_environment(),
                             .descriptors = {{output->there.get(), STDOUT_FILENO}}};
  for (std::string& argument : arguments_of({.shim = ::getpid(),
                                             .started = started_,
                                             .interval = plan_.interval,
                                             .nvml = plan_.nvml,
                                             .gpus = plan_.gpus})) {
    options.argv.push_back(std::move(argument));
  }
  auto child = base::spawn(options);
  if (!child) return false;
  sampler_ = *std::move(child);
  samples_ = std::move(output->here);
  return true;
}

void TaskMetrics::read_samples() {
  // Each line was written at once, and is much shorter than what a pipe takes whole.
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(samples_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {  // it has failed: another one may fare better
    stop_sampling();
    const bool could_not_run = measures_gpus_ && !has_sampled_;
    measures_gpus_ = measures_gpus_ && !could_not_run;
    sampling_starts_ = Steady::now();
    if (!could_not_run) *sampling_starts_ += plan_.interval;
    return;
  }
  has_sampled_ = true;
  std::string_view text(buffer.data(), static_cast<size_t>(count));
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (const auto sample = decode_sample(text.substr(0, end))) writer_.write(*sample);
    text.remove_prefix(end + 1);
  }
}

void TaskMetrics::printed(MetricLines& lines, std::string_view bytes, std::optional<int> rank) {
  lines.look_at(bytes, [&](const PrintedReport& report) {
    intake_.take(report.text, rank ? rank : report.rank, clock_.now());
  });
}

void TaskMetrics::printing_ended(MetricLines& lines, std::optional<int> rank) {
  lines.end([&](const PrintedReport& report) {
    intake_.take(report.text, rank ? rank : report.rank, clock_.now());
  });
}

void TaskMetrics::stop_sampling() {
  sampling_starts_.reset();
  if (!samples_) return;
  samples_.reset();
  [[maybe_unused]] const auto sent = base::send_signal(sampler_.pidfd, SIGKILL);
  [[maybe_unused]] const auto ended = base::wait_for(sampler_);
  sampler_ = {};
}

void TaskMetrics::finish() {
  stop_sampling();
  read_reports();
  intake_.finish(clock_.now());
}

}  // namespace muster::engine
