#include "engine/shim/task_metrics.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "engine/shim/channels.h"
#include "engine/shim/process_tree.h"
#include "job/metric.h"
#include "launch/task_plan.h"

namespace muster::engine {

// --- the file

namespace {

constexpr std::chrono::minutes kKeptWhole{1};
// At this distance, even a year has few lines.
constexpr std::chrono::hours kWidest{24};

struct Line {
  std::string_view text;  ///< including the newline
  base::Time time;
  size_t kind = 0;
};

/// The rank and names of a line, without the values: " - cpu_percent memory_bytes".
std::string kind_of(std::string_view line) {
  std::string kind;
  bool in_value = false;
  for (const char c : line.substr(std::min(line.find(' '), line.size()))) {
    if (c == '=') in_value = true;
    if (c == ' ') in_value = false;
    if (!in_value) kind += c;
  }
  return kind;
}

base::Time time_of_line(std::string_view line) {
  const auto count = base::number_of<int64_t>(line.substr(0, line.find(' ')));
  return base::Time(std::chrono::nanoseconds(count.value_or(0)));
}

/// The lines of a log, newest first.
std::vector<Line> lines_newest_first(std::string_view log) {
  std::vector<Line> lines;
  std::unordered_map<std::string, size_t> kinds;
  for (size_t end = log.find('\n'); end != std::string_view::npos; end = log.find('\n')) {
    const std::string_view text = log.substr(0, end + 1);
    const size_t kind = kinds.emplace(kind_of(text), kinds.size()).first->second;
    lines.push_back({.text = text, .time = time_of_line(text), .kind = kind});
    log.remove_prefix(end + 1);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

size_t total_size_of(const std::vector<Line>& lines) {
  size_t size = 0;
  for (const Line& line : lines) size += line.text.size();
  return size;
}

/// The lines from time `whole` on, and those older lines that are at least `distance` away from the
/// next kept line of their kind.
std::vector<Line> spaced(const std::vector<Line>& lines, base::Time whole,
                         std::chrono::nanoseconds distance) {
  std::vector<Line> kept;
  std::unordered_map<size_t, base::Time> next;
  for (const Line& line : lines) {
    const auto [found, is_newest] = next.emplace(line.kind, line.time);
    if (!is_newest && line.time < whole && found->second - line.time < distance) continue;
    found->second = line.time;
    kept.push_back(line);
  }
  return kept;
}

std::vector<Line> thinned(const std::vector<Line>& lines, base::Time now, size_t most) {
  std::vector<Line> kept = lines;
  for (const base::Time whole : {now - kKeptWhole, base::Time::max()}) {
    std::chrono::nanoseconds distance = std::chrono::seconds(1);
    for (; total_size_of(kept) > most && distance <= kWidest; distance *= 2) {
      kept = spaced(kept, whole, distance);
    }
  }
  for (size_t size = total_size_of(kept); size > most; kept.pop_back())
    size -= kept.back().text.size();
  return kept;
}

}  // namespace

std::string thinned_log(std::string_view log, base::Time now, size_t most) {
  const std::vector<Line> kept = thinned(lines_newest_first(log), now, most);
  std::string text;
  text.reserve(total_size_of(kept));
  for (auto line = kept.rbegin(); line != kept.rend(); ++line) text += line->text;
  return text;
}

MetricWriter::MetricWriter(std::filesystem::path file, int64_t most)
    : path_(std::move(file)), most_(most) {}

bool MetricWriter::is_open() {
  if (file_) return true;
  file_ = base::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  size_ = file_ ? ::lseek(file_.get(), 0, SEEK_END) : 0;
  return static_cast<bool>(file_);
}

// Thins the file to three quarters of its limit: thinning reads and writes the whole file, so it
// must be rare. Readers see either the old file or the new one.
bool MetricWriter::thin(base::Time now) {
  const auto log = base::read_file(path_);
  if (!log) return false;
  const std::string text = thinned_log(*log, now, static_cast<size_t>(most_ / 4 * 3));
  if (!base::write_file(path_, text)) return false;
  file_.reset();
  return is_open();
}

void MetricWriter::write(const MetricSample& sample) {
  if (!is_open()) return;
  const std::string line = encode_sample(sample);
  const auto length = static_cast<int64_t>(line.size());
  if (size_ + length > most_ && (!thin(sample.time) || size_ + length > most_)) return;
  if (base::write_all(file_.get(), line)) {
    size_ += length;
  } else if (::ftruncate(file_.get(), size_) == 0) {
    ::lseek(file_.get(), size_, SEEK_SET);
  }
}

// --- reports

namespace {

constexpr std::chrono::seconds kSecond{1};
constexpr size_t kShownOfReport = 80;

/// The beginning of a report for a notice in the log, without control characters.
std::string shown(std::string_view text) {
  std::string printable(text.substr(0, kShownOfReport));
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return printable + (text.size() > kShownOfReport ? "..." : "");
}

}  // namespace

MetricIntake::MetricIntake(MetricWriter& writer, std::function<void(std::string)> notice)
    : writer_(writer), notice_(std::move(notice)) {}

void MetricIntake::notice_once(const std::string& topic, const std::string& text) {
  if (noticed_.insert(topic).second) notice_("metrics: " + text);
}

void MetricIntake::take(std::string_view text, std::optional<int> rank, base::Time now) {
  begin_second(now);
  if (text.size() > kLongestReport) {
    return notice_once(
        "long", "ignored a report of more than " + std::to_string(kLongestReport) + " bytes");
  }
  if (written_ < kMostReports) {
    ++written_;
    return write(text, rank, now);
  }
  waiting_.push_back({std::string(text), rank, now});
  if (waiting_.size() <= kMostReports) return;
  waiting_.pop_front();
  ++left_out_;
  notice_once("many", "more than " + std::to_string(kMostReports) +
                          " reports in a second: some are dropped, the newest are kept");
}

// Also begins a new second if the clock was set back: otherwise reports would wait until the clock
// has caught up.
void MetricIntake::begin_second(base::Time now) {
  if (now >= second_ && now < second_ + kSecond) return;
  second_ = now;
  written_ = waiting_.size();
  for (const Report& report : std::exchange(waiting_, {})) {
    write(report.text, report.rank, report.time);
  }
}

std::optional<base::Time> MetricIntake::due() const {
  return waiting_.empty() ? std::nullopt : std::optional(second_ + kSecond);
}

void MetricIntake::write_waiting(base::Time now) {
  if (!waiting_.empty()) begin_second(now);
}

void MetricIntake::finish(base::Time now) {
  second_ = {};
  write_waiting(now);
  if (left_out_ > 0) {
    notice_("metrics: " + std::to_string(left_out_) + " reports of the program were dropped");
  }
}

bool MetricIntake::may_have(const std::string& name) {
  if (job::is_sampled(name)) {
    notice_once("sampled", "ignored '" + name + "' in reports: Muster measures it itself");
    return false;
  }
  if (names_.count(name) > 0) return true;
  if (names_.size() == kMostNames) {
    notice_once("names", "ignored '" + name + "' and further names: a task may report " +
                             std::to_string(kMostNames) + " different names");
    return false;
  }
  names_.insert(name);
  return true;
}

void MetricIntake::write(std::string_view text, std::optional<int> rank, base::Time time) {
  auto sample = reported_sample(text, time);
  if (!sample) {
    return notice_once("malformed", "ignored a malformed report: '" + shown(text) +
                                        "' (expected NAME=NUMBER ...); the next ones are ignored "
                                        "without a message");
  }
  std::erase_if(sample->values, [&](const auto& value) { return !may_have(value.first); });
  if (sample->values.empty()) return;
  if (!sample->rank) sample->rank = rank;
  writer_.write(*sample);
}

// --- reports in printed lines

namespace {

// The part of a line before the report: the launcher's tag and the marker.
constexpr size_t kLongestLineTag = 128;
constexpr size_t kLongestLine = kLongestLineTag + kMetricMarker.size() + kLongestReport;

/// Uses memmem(3): std::string_view::find() would stop at each of the many colons in a log.
size_t find_marker(std::string_view text, size_t from) {
  const void* found =
      ::memmem(text.data() + from, text.size() - from, kMetricMarker.data(), kMetricMarker.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

/// The text after the last carriage return: a progress bar overwrites the text before it.
std::string_view behind_returns(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The number that `text` ends with.
std::optional<int> number_at_end(std::string_view text) {
  const size_t last_other = text.find_last_not_of("0123456789");
  return base::number_of<int>(text.substr(last_other + 1));  // npos + 1 is 0
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

struct Tag {
  bool is_one = false;
  std::optional<int> rank;
};

/// The rank in the brackets of a tag: [1,0] and [prterun-host-7@1,0] contain job and rank, [0] and
/// [rank0] the rank. Other texts, such as [default0] of torchrun, are not ranks of the job.
Tag tag_in_brackets(std::string_view inside) {
  const size_t comma = inside.rfind(',');
  const std::string_view rank = comma != std::string_view::npos ? inside.substr(comma + 1)
                                : inside.starts_with("rank")    ? inside.substr(4)
                                                                : inside;
  return {.is_one = true, .rank = is_number(rank) ? number_at_end(rank) : std::nullopt};
}

Tag read_tag(std::string_view text) {
  text = without_blanks(text);
  if (text.empty()) return {.is_one = true};
  if (text.size() > kLongestLineTag) return {};
  if (text.ends_with(':')) text.remove_suffix(1);
  const size_t stream = std::min(text.rfind("<stdout>"), text.rfind("<stderr>"));
  const bool names_stream = stream != std::string_view::npos;
  if (names_stream) text = text.substr(0, stream);
  const size_t bracket = text.rfind('[');
  if (text.ends_with(']') && bracket != std::string_view::npos && (bracket == 0 || names_stream)) {
    return tag_in_brackets(text.substr(bracket + 1, text.size() - bracket - 2));
  }
  if (is_number(text)) return {.is_one = true, .rank = number_at_end(text)};
  return {.is_one = names_stream};
}

}  // namespace

std::optional<PrintedReport> report_in_line(std::string_view line) {
  line = behind_returns(line);
  const size_t at = find_marker(line, 0);
  if (at == std::string_view::npos) return std::nullopt;
  const Tag tag = read_tag(line.substr(0, at));
  if (!tag.is_one) return std::nullopt;
  return PrintedReport{.text = line.substr(at + kMetricMarker.size()), .rank = tag.rank};
}

void MetricLines::begin_line(std::string_view piece) {
  line_.clear();
  too_long_ = false;
  continue_line(piece);
}

void MetricLines::continue_line(std::string_view piece) {
  // Text before a carriage return is overwritten. A carriage return at the end may be part of CRLF.
  const size_t last =
      piece.size() < 2 ? std::string_view::npos : piece.rfind('\r', piece.size() - 2);
  if (last != std::string_view::npos) {
    piece.remove_prefix(last + 1);
    line_.clear();
    too_long_ = false;
  }
  too_long_ = too_long_ || line_.size() + piece.size() > kLongestLine;
  if (too_long_) {
    line_.clear();
  } else {
    line_ += piece;
  }
}

void MetricLines::look_at(std::string_view bytes, const Found& found) {
  const auto take_line = [&](std::string_view line) {
    if (const auto report = report_in_line(line)) found(*report);
  };
  if (!line_.empty() || too_long_) {
    const size_t end = bytes.find('\n');
    continue_line(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    take_line(line_);
    bytes.remove_prefix(end + 1);
  }
  const size_t whole = bytes.rfind('\n') + 1;  // 0: there is no newline
  for (size_t at = find_marker(bytes, 0); at < whole;) {
    const size_t before = bytes.rfind('\n', at);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const size_t end = bytes.find('\n', at);
    take_line(bytes.substr(begin, end - begin));
    at = find_marker(bytes, end);
  }
  begin_line(bytes.substr(whole));
}

void MetricLines::end(const Found& found) {
  if (const auto report = report_in_line(line_)) found(*report);
  begin_line({});
}

// --- all of a task's metrics

namespace {

// Limit of reports that are read at once: the task's output must not wait for a flood of reports.
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
  // If the folder's file system has no sockets, the program must print its reports.
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
  if (polled[1].revents != 0) measures_gpus_ ? read_gpu_samples() : read_slow_look();
  intake_.write_waiting(clock_.now());
  if (sampling_starts_ && Steady::now() >= *sampling_starts_) sample();
}

void TaskMetrics::read_reports() {
  std::array<char, kLongestReport + 1> buffer;
  for (int i = 0; reports_ && i < kMostReportsAtOnce; ++i) {
    const ssize_t count = ::recv(reports_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0) return;
    intake_.take({buffer.data(), static_cast<size_t>(count)}, std::nullopt, clock_.now());
  }
}

void TaskMetrics::sample() {
  sampling_starts_.reset();
  measures_gpus_ = measures_gpus_ && start_gpu_sampler();
  if (!measures_gpus_) begin_sample();
}

bool TaskMetrics::start_gpu_sampler() {
  has_sampled_ = false;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto output = make_output_pipe();
  if (error || !output) return false;
  base::SpawnOptions options{.argv = {"muster-gpu-sampler"},
                             .program = (self.parent_path() / "muster-gpu-sampler").string(),
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
  child_ = *std::move(child);
  samples_ = std::move(output->here);
  return true;
}

void TaskMetrics::read_gpu_samples() {
  // Each line arrives whole: the sampler writes it at once, and it is shorter than PIPE_BUF.
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(samples_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {  // the program has failed; samples without GPUs may work
    end_child();
    const bool could_not_run = !has_sampled_;
    measures_gpus_ = !could_not_run;
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

void TaskMetrics::begin_sample() {
  if (!sampler_) sampler_.emplace(::getpid(), 0, started_);
  sample_begun_ = Steady::now();
  if (!sampler_->begin(clock_.now(), sample_begun_)) return finish_sample(std::nullopt);
  if (!start_slow_look()) sampling_starts_ = Steady::now() + plan_.interval;
}

// A fork costs less than a new program, and the child has all that it needs. It keeps no descriptor but
// the pipe: the end of this process must end its lock and its connections, whatever the child waits for.
bool TaskMetrics::start_slow_look() {
  auto output = make_output_pipe();
  if (!output) return false;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    for (const pid_t fd : numbered_entries("/proc/self/fd")) {
      if (fd != output->there.get()) ::close(fd);
    }
    const auto written = base::write_all(output->there.get(), encode(sampler_->look_slowly()));
    ::_exit(written ? 0 : 1);
  }
  child_.pid = pid;
  samples_ = std::move(output->here);
  slow_look_.clear();
  return true;
}

void TaskMetrics::read_slow_look() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(samples_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    slow_look_.append(buffer.data(), static_cast<size_t>(count));
    return;
  }
  end_child();
  if (const auto slow = decode_slow_look(std::exchange(slow_look_, {}))) return finish_sample(slow);
  sampling_starts_ = Steady::now() + plan_.interval;
}

void TaskMetrics::finish_sample(const std::optional<SlowLook>& slow) {
  writer_.write(sampler_->finish(slow));
  sampling_starts_ = Steady::now() + rest_after(sample_begun_, plan_.interval);
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

void TaskMetrics::end_child() {
  if (!samples_) return;
  samples_.reset();
  ::kill(child_.pid, SIGKILL);  // not reaped yet, so the pid is still its own
  [[maybe_unused]] const auto ended = base::wait_for(child_);
  child_ = {};
}

void TaskMetrics::stop_sampling() {
  sampling_starts_.reset();
  end_child();
}

void TaskMetrics::finish() {
  stop_sampling();
  read_reports();
  intake_.finish(clock_.now());
}

}  // namespace muster::engine
