#include "engine/metric_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/number.h"
#include "base/unique_fd.h"
#include "job/metric.h"

namespace muster::engine {

namespace {

/// The next word of `text`, taken from its front; empty at its end.
std::string_view take_word(std::string_view& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return text = {};
  text.remove_prefix(begin);
  const size_t end = std::min(text.find_first_of(" \t\r"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

/// As from_chars reads it: the same in every locale.
std::optional<double> value_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "NAME=VALUE" into `sample`; false: it is no such word.
bool take_value(std::string_view word, MetricSample& sample) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos || !job::is_metric_name(word.substr(0, equals))) {
    return false;
  }
  const auto value = value_of(word.substr(equals + 1));
  if (!value) return false;
  if (std::isfinite(*value)) sample.values.emplace_back(word.substr(0, equals), *value);
  return true;
}

void append(std::string& out, double value) {
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), written.ptr);
}

}  // namespace

std::string encode_sample(const MetricSample& sample) {
  std::string line = std::to_string(sample.time.time_since_epoch().count());
  line += sample.rank ? " " + std::to_string(*sample.rank) : " -";
  for (const auto& [name, value] : sample.values) {
    line.append(" ").append(name).append("=");
    append(line, value);
  }
  return line + "\n";
}

std::optional<MetricSample> decode_sample(std::string_view line) {
  const auto time = base::number_of<int64_t>(take_word(line));
  if (!time) return std::nullopt;
  MetricSample sample{
      .time = base::Time(std::chrono::nanoseconds(*time)), .rank = {}, .values = {}};
  const std::string_view rank = take_word(line);
  if (rank != "-") {
    sample.rank = base::number_of<int>(rank);
    if (!sample.rank) return std::nullopt;
  }
  while (true) {
    const std::string_view word = take_word(line);
    if (word.empty()) return sample;
    if (!take_value(word, sample)) return std::nullopt;
  }
}

std::optional<MetricSample> reported_sample(std::string_view text, base::Time now) {
  MetricSample sample{.time = now, .rank = {}, .values = {}};
  while (true) {
    const std::string_view word = take_word(text);
    if (word.empty()) break;
    if (word.starts_with("rank=")) {
      sample.rank = base::number_of<int>(word.substr(5));
      if (!sample.rank || *sample.rank < 0) return std::nullopt;
    } else if (!take_value(word, sample)) {
      return std::nullopt;
    }
  }
  if (sample.values.empty()) return std::nullopt;
  return sample;
}

base::Result<MetricReader::Read> MetricReader::read() {
  Read result;
  const base::UniqueFd file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return result;
    return base::system_error("cannot open '" + file_.string() + "'", errno);
  }
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return base::system_error("cannot read metrics", errno);
  if (facts.st_ino != inode_ || facts.st_size < offset_) {
    result.anew = true;
    offset_ = 0;
    inode_ = facts.st_ino;
  }
  std::string text(static_cast<size_t>(facts.st_size - offset_), '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), offset_);
  if (count < 0) return base::system_error("cannot read '" + file_.string() + "'", errno);
  text.resize(static_cast<size_t>(count));
  size_t at = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    auto sample = decode_sample(std::string_view(text).substr(at, end - at));
    if (sample) result.samples.push_back(*std::move(sample));
    at = end + 1;
  }
  offset_ += static_cast<int64_t>(at);
  return result;
}

}  // namespace muster::engine
