#include "engine/shim/metric_intake.h"

#include <algorithm>
#include <utility>

#include "job/metric.h"

namespace muster::engine {

namespace {

constexpr std::chrono::seconds kSecond{1};
constexpr size_t kShownOfReport = 80;

/// As much of a report as a log shows of it: nothing in it may steer a terminal.
std::string shown(std::string_view text) {
  std::string printable(text.substr(0, kShownOfReport));
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return printable + (text.size() > kShownOfReport ? "..." : "");
}

}  // namespace

MetricIntake::MetricIntake(MetricWriter& writer, std::function<void(std::string)> notice)
    : writer_(writer), notice_(std::move(notice)) {}

void MetricIntake::say_once(const std::string& topic, const std::string& text) {
  if (said_.insert(topic).second) notice_("metrics: " + text);
}

void MetricIntake::take(std::string_view text, std::optional<int> rank, base::Time now) {
  begin_second(now);
  if (text.size() > kLongestReport) {
    return say_once(
        "long", "a report of more than " + std::to_string(kLongestReport) + " bytes is left out");
  }
  if (written_ < kMostReports) {
    ++written_;
    return write(text, rank, now);
  }
  waiting_.push_back({std::string(text), rank, now});
  if (waiting_.size() <= kMostReports) return;
  waiting_.pop_front();
  ++left_out_;
  say_once("many", "more than " + std::to_string(kMostReports) +
                       " reports a second came: some are left out, the last ones are kept");
}

// Also where the clock was set back: nothing is to wait for the time that has already been.
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
    notice_("metrics: " + std::to_string(left_out_) + " reports of the program were left out");
  }
}

bool MetricIntake::may_have(const std::string& name) {
  if (job::is_sampled(name)) {
    say_once("sampled",
             "'" + name + "' is what Muster measures itself: reports of it are left out");
    return false;
  }
  if (names_.count(name) > 0) return true;
  if (names_.size() == kMostNames) {
    say_once("names", "a task may report " + std::to_string(kMostNames) + " different names: '" +
                          name + "' and more are left out");
    return false;
  }
  names_.insert(name);
  return true;
}

void MetricIntake::write(std::string_view text, std::optional<int> rank, base::Time time) {
  auto sample = reported_sample(text, time);
  if (!sample) {
    return say_once("malformed",
                    "this report is not understood and left out, as others like it: '" +
                        shown(text) + "' (write NAME=NUMBER ...)");
  }
  std::erase_if(sample->values, [&](const auto& value) { return !may_have(value.first); });
  if (sample->values.empty()) return;
  if (!sample->rank) sample->rank = rank;
  writer_.write(*sample);
}

}  // namespace muster::engine
