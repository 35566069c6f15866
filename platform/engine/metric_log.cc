#include "engine/metric_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/unique_fd.h"
#include "base/units.h"
#include "job/metric.h"

namespace muster::engine {

namespace {

constexpr std::string_view kBetween = " ,\t\r\n";

// A shim keeps the file shorter. But tasks without a sandbox can write to it, so the reader limits
// its memory.
constexpr int64_t kMostReadAtOnce = 2 * kMaxMetricLog;

// Long enough to contain the time of the last line, which differs in a rewritten file.
constexpr size_t kRemembered = 256;

/// Removes and returns the first word of `text`; empty at the end.
std::string_view take_field(std::string_view& text) {
  const size_t begin = text.find_first_not_of(kBetween);
  if (begin == std::string_view::npos) return text = {};
  text.remove_prefix(begin);
  const size_t end = std::min(text.find_first_of(kBetween), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

/// Parsed by from_chars, which is independent of the locale.
std::optional<double> decimal_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Adds "NAME=VALUE" to `sample`; false: the word is malformed.
bool take_value(std::string_view word, MetricSample& sample) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos || !job::is_metric_name(word.substr(0, equals))) {
    return false;
  }
  const auto value = decimal_of(word.substr(equals + 1));
  if (!value) return false;
  if (std::isfinite(*value)) sample.values.emplace_back(word.substr(0, equals), *value);
  return true;
}

void append_decimal(std::string& out, double value) {
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), written.ptr);
}

std::vector<MetricSample> samples_in(std::string_view text) {
  std::vector<MetricSample> samples;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    auto sample = decode_sample(text.substr(0, end));
    if (sample) samples.push_back(*std::move(sample));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return samples;
}

struct Piece {
  std::string text;
  bool more = false;  ///< the file continues after it
};

base::Result<Piece> read_from(int file, int64_t offset, int64_t most) {
  const int64_t left = std::max(::lseek(file, 0, SEEK_END) - offset, int64_t{0});
  most = std::min(most, kMostReadAtOnce);
  Piece piece{.text = std::string(static_cast<size_t>(std::min(left, most)), '\0'),
              .more = left > most};
  const ssize_t count = ::pread(file, piece.text.data(), piece.text.size(), offset);
  if (count < 0) return base::system_error("cannot read the metrics of a task", errno);
  piece.text.resize(static_cast<size_t>(count));
  return piece;
}

}  // namespace

std::string encode_sample(const MetricSample& sample) {
  std::string line = std::to_string(sample.time.time_since_epoch().count());
  line += sample.rank ? " " + std::to_string(*sample.rank) : " -";
  for (const auto& [name, value] : sample.values) {
    line.append(" ").append(name).append("=");
    append_decimal(line, value);
  }
  return line + "\n";
}

std::optional<MetricSample> decode_sample(std::string_view line) {
  const auto time = base::number_of<int64_t>(take_field(line));
  if (!time) return std::nullopt;
  MetricSample sample{
      .time = base::Time(std::chrono::nanoseconds(*time)), .rank = {}, .values = {}};
  const std::string_view rank = take_field(line);
  if (rank != "-") {
    sample.rank = base::number_of<int>(rank);
    if (!sample.rank) return std::nullopt;
  }
  while (true) {
    const std::string_view word = take_field(line);
    if (word.empty()) return sample;
    if (!take_value(word, sample)) return std::nullopt;
  }
}

std::optional<MetricSample> reported_sample(std::string_view text, base::Time now) {
  MetricSample sample{.time = now, .rank = {}, .values = {}};
  bool has_values = false;
  while (true) {
    const std::string_view word = take_field(text);
    if (word.empty()) break;
    if (word.starts_with("rank=")) {
      sample.rank = base::number_of<int>(word.substr(5));
      if (!sample.rank || *sample.rank < 0) return std::nullopt;
    } else if (take_value(word, sample)) {
      has_values = true;
    } else {
      return std::nullopt;
    }
  }
  return has_values ? std::optional(sample) : std::nullopt;
}

base::Result<MetricReader::Read> MetricReader::read(int64_t most) {
  Read result;
  const base::UniqueFd file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return result;
    return base::system_error("cannot open '" + file_.string() + "'", errno);
  }
  const auto before = static_cast<int64_t>(last_.size());
  MUSTER_TRY(Piece piece, read_from(file.get(), offset_ - before, before + most));
  if (!piece.text.starts_with(last_)) {
    result.anew = true;
    MUSTER_TRY(piece, read_from(file.get(), 0, most));
    offset_ = 0;
  } else {
    piece.text.erase(0, last_.size());
  }
  std::string& text = piece.text;
  result.more = piece.more;
  size_t whole = text.rfind('\n') + 1;  // 0 without a newline
  // A line of this length is not a shim's; it is skipped, because it could never be read whole.
  if (whole == 0 && piece.more) whole = text.size();
  text.resize(whole);
  if (whole > 0) {
    offset_ += static_cast<int64_t>(whole);
    last_ = text.substr(whole - std::min(whole, kRemembered));
  }
  result.samples = samples_in(text);
  return result;
}

}  // namespace muster::engine
